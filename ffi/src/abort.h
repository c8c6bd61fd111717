/* Abort signals.
 *
 * A signal is aborted by one atomic store. Its calls are notified by the thread that has the lock: the
 * thread that aborts if the lock is free, else the thread that releases it. So plue_abort_signal_...()
 * wait for no other thread. */
#pragma once

#include "frame.h"
#include "plue.h"
#include "state.h"

/* ---- signals; NULL is a signal that is never aborted ---- */

bool plue_abort_is_aborted(const plue_abort_signal_t *signal);

/* Returns the time at which the signal was aborted, by plue_now_ms(). */
uint64_t plue_abort_time(const plue_abort_signal_t *signal);

/* Returns the given reason, which may be empty. A reason above this size has been cut. */
enum { PLUE_MAX_REASON = 64 << 10 };
const char *plue_abort_reason(const plue_abort_signal_t *signal);

/* Returns the id of the signal in frames; 0 for NULL. */
uint64_t plue_abort_id(const plue_abort_signal_t *signal);

/* Takes and releases a call's reference, which keeps the signal after the host's last release. */
void plue_abort_carry(plue_abort_signal_t *signal);
void plue_abort_drop(plue_abort_signal_t *signal);

/* The head of the list of the open calls that carry the signal. call.c maintains the list. */
struct plue_call;
struct plue_call **plue_abort_calls(plue_abort_signal_t *signal) PLUE_LOCKED;

/* Makes a frame that aborts the calls of an aborted signal. Returns NULL when out of memory. */
struct plue_frame *plue_abort_frame(const plue_abort_signal_t *signal);

/* ---- signals whose calls are to be notified ---- */

bool plue_aborts_are_due(void);

/* Takes all signals from the list: returns the first, and plue_abort_next() returns the others.
 * Each has a reference, which plue_abort_drop() releases. */
plue_abort_signal_t *plue_aborts_take(void) PLUE_LOCKED;
plue_abort_signal_t *plue_abort_next(const plue_abort_signal_t *signal);
