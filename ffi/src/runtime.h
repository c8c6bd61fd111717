/* Which peer runs the calls: the attached guest, or the sidecar, which is started when needed. */
#ifndef PLUE_RUNTIME_H
#define PLUE_RUNTIME_H

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "plue.h"
#include "sidecar.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the caller is going to wait for JavaScript, which must not happen on its thread. */
enum plue_patience { PLUE_WAITS_FOR_TOOL, PLUE_WAITS_FOR_START, PLUE_WAITS_FOR_NOTHING };

/* Looks for the peer that calls go to, and starts the runtime if there is none. `*waited` is false the
 * first time; after IS_STARTING, look again when plue_change() was called. `limit_ms` is the bound for
 * a guest's start. */
enum plue_readiness plue_runtime_look(enum plue_patience patience, uint64_t limit_ms, bool *waited,
                                      struct plue_peer **peer,
                                      struct plue_outcome *failure) PLUE_LOCKED;

/* Returns when a start that is to be over at `limit_ms` is to be looked at: never, if a sidecar starts.
 * Its own thread watches that, and calls plue_change(). */
uint64_t plue_runtime_start_deadline(uint64_t limit_ms) PLUE_LOCKED;

/* Returns the peer that calls go to, once it is ready. The lock is given up while this waits, and
 * the wait ends when the signal is aborted, which may be NULL. NULL: with the reason in `failure`, or
 * aborted. */
struct plue_peer *plue_runtime_ready(enum plue_patience patience, const plue_abort_signal_t *signal,
                                     struct plue_outcome *failure) PLUE_LOCKED;

/* Sends a call, which carries the signal, to the sidecar, or to the guest if that is NULL, and gives
 * the lock back. Takes the frame. */
void plue_runtime_send_and_unlock(struct plue_sidecar *sidecar, const plue_abort_signal_t *signal,
                                  struct plue_frame *frame)
    PLUE_CHECKED(release_capability(plue_mutex));

/* Sends a frame to the peer of that generation, if it is still there. Takes the frame. */
void plue_runtime_send(uint64_t generation, struct plue_frame *frame) PLUE_UNLOCKED;

/* The work for aborted signals that is done without the lock. */
struct plue_aborts {
    struct plue_wakeups wakeups;
    struct plue_sidecar *sidecar; /* held; gets the frames */
    struct plue_frame *frames;
};

/* Notifies the calls of aborted signals, and returns what is left to be done. */
struct plue_aborts plue_runtime_take_aborts(void) PLUE_LOCKED;
void plue_runtime_send_aborts(struct plue_aborts *aborts);

#endif
