/* Abort signals.
 *
 * A signal is aborted by one atomic store. Its calls are notified by the thread that has the lock: the
 * thread that aborts if the lock is free, else the thread that releases it. So plue_abort_signal_...()
 * wait for no other thread. */
#ifndef PLUE_ABORT_H
#define PLUE_ABORT_H

#include "frame.h"
#include "plue.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- signals; NULL is a signal that is never aborted ---- */

bool plue_abort_is_aborted(const plue_abort_signal_t *signal);

/* When it was aborted, by plue_now_ms(). */
uint64_t plue_abort_time(const plue_abort_signal_t *signal);

/* The text that was given as the reason; may be empty. */
const char *plue_abort_reason(const plue_abort_signal_t *signal);

/* Tells one signal from all others in frames; 0 is none. */
uint64_t plue_abort_id(const plue_abort_signal_t *signal);

/* Takes and releases the reference of a call, which keeps the signal when the host releases its own. */
void plue_abort_carry(plue_abort_signal_t *signal);
void plue_abort_drop(plue_abort_signal_t *signal);

/* The head of the list of the open calls that carry the signal: call.c keeps it. */
struct plue_call;
struct plue_call **plue_abort_calls(plue_abort_signal_t *signal) PLUE_LOCKED;

/* A frame by which the tools side aborts the calls of an aborted signal. NULL when out of memory. */
struct plue_frame *plue_abort_frame(const plue_abort_signal_t *signal);

/* ---- signals whose calls are to be notified ---- */

bool plue_aborts_are_due(void);

/* Takes all of them: returns the first, and plue_abort_next() the others. Each has a reference, to be
 * released by plue_abort_drop(). */
plue_abort_signal_t *plue_aborts_take(void) PLUE_LOCKED;
plue_abort_signal_t *plue_abort_next(const plue_abort_signal_t *signal);

#endif
