/* Chooses the peer that runs the calls: the attached guest, or the sidecar, started if needed. */
#pragma once

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "plue.h"
#include "sidecar.h"
#include "state.h"

/* The maximum wait of a caller for JavaScript. The JavaScript thread itself must wait for nothing. */
enum plue_patience { PLUE_WAITS_FOR_TOOL, PLUE_WAITS_FOR_START, PLUE_WAITS_FOR_NOTHING };

/* Finds the peer that receives calls, and starts the runtime if there is none. `*waited` must be
 * false for the first call. After IS_STARTING, call this again after the next plue_change().
 * `limit_ms` limits the start of a guest. */
enum plue_readiness plue_runtime_look(enum plue_patience patience, uint64_t limit_ms, bool *waited,
                                      struct plue_peer **peer,
                                      struct plue_outcome *failure) PLUE_LOCKED;

/* Returns the time at which a start with the limit `limit_ms` must be checked. Returns
 * PLUE_NEVER_MS for a sidecar: its own thread checks the limit, and calls plue_change(). */
uint64_t plue_runtime_start_deadline(uint64_t limit_ms) PLUE_LOCKED;

/* Waits until the peer that receives calls is ready, and returns it. The lock is released while
 * this waits. The wait ends if the signal, which may be NULL, is aborted. Returns NULL if it was
 * aborted, or on failure, with the reason in `failure`. */
struct plue_peer *plue_runtime_ready(enum plue_patience patience, const plue_abort_signal_t *signal,
                                     struct plue_outcome *failure) PLUE_LOCKED;

/* Sends a call, which carries the signal, to the sidecar, or to the guest if `sidecar` is NULL.
 * Releases the lock. Takes ownership of the frame. */
void plue_runtime_send_and_unlock(struct plue_sidecar *sidecar, const plue_abort_signal_t *signal,
                                  struct plue_frame *frame)
    PLUE_CHECKED(release_capability(plue_mutex));

/* Sends a frame to the peer of this generation, if it still exists. Takes ownership of it. */
void plue_runtime_send(uint64_t generation, struct plue_frame *frame) PLUE_UNLOCKED;

/* The work for aborted signals that remains after the lock was released. */
struct plue_aborts {
    struct plue_wakeups wakeups;
    struct plue_sidecar *sidecar; /* a reference to the receiver of the frames */
    struct plue_frame *frames;
};

/* Notifies the calls of aborted signals, and returns the remaining work. */
struct plue_aborts plue_runtime_take_aborts(void) PLUE_LOCKED;
void plue_runtime_send_aborts(struct plue_aborts *aborts);
