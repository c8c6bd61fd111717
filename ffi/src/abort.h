/* Abort signals, and how the calls that carry one are told.
 *
 * A signal is aborted by one atomic store. Its calls are told by whoever has the lock: the thread
 * that aborts if the lock is free, else the thread that gives it back. So plue_abort_signal_...()
 * wait for nobody. */
#ifndef PLUE_ABORT_H
#define PLUE_ABORT_H

#include "call.h"
#include "frame.h"
#include "plue.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- signals; NULL is one that is never aborted ---- */

bool plue_abort_is_aborted(const plue_abort_signal_t *signal);

/* When it was aborted, by plue_now_ms(). */
uint64_t plue_abort_time(const plue_abort_signal_t *signal);

/* The text that was given as the reason; may be empty. */
const char *plue_abort_reason(const plue_abort_signal_t *signal);

/* Tells one signal from all others in frames; 0 is none. */
uint64_t plue_abort_id(const plue_abort_signal_t *signal);

/* Takes and gives back the reference of a call: whatever the host releases, the signal lives. */
void plue_abort_carry(plue_abort_signal_t *signal);
void plue_abort_drop(plue_abort_signal_t *signal);

/* Ties a call to the signal that it carries: it is woken when that is aborted. */
void plue_abort_tie(struct plue_call *call) PLUE_LOCKED;
void plue_abort_untie(struct plue_call *call) PLUE_LOCKED;

/* A frame by which the tools side aborts the calls of an aborted signal. NULL when out of memory. */
struct plue_frame *plue_abort_frame(const plue_abort_signal_t *signal);

/* ---- telling ---- */

struct plue_sidecar;

/* What is to be done, without the lock, for signals that were aborted. */
struct plue_aborts {
    struct plue_wakeups wakeups;
    struct plue_sidecar *sidecar; /* held; gets the frames */
    struct plue_frame *frames;
};

/* Whether signals were aborted whose calls nobody has told. */
bool plue_aborts_are_due(void);

/* Tells those calls, and gives what is left to be done. */
struct plue_aborts plue_aborts_take(void) PLUE_LOCKED;
void plue_aborts_carry_out(struct plue_aborts *aborts);

#endif
