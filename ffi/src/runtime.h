/* Which peer runs the calls: the attached guest, or the sidecar, which is started when needed. */
#ifndef PLUE_RUNTIME_H
#define PLUE_RUNTIME_H

#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "plue.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the peer that calls go to, once it is ready. The lock is given up while this waits, and
 * the wait ends when the signal is aborted, which may be NULL.
 * `will_block`: the caller is going to wait for JavaScript, which must not happen on its thread.
 * NULL: with the reason in `failure`, or aborted. */
struct plue_peer *plue_runtime_ready(bool will_block, const plue_abort_signal_t *signal,
                                     struct plue_outcome *failure) PLUE_LOCKED;

/* Sends a call, which carries the signal, to the peer, and gives the lock back. Takes the frame. */
void plue_runtime_send_and_unlock(struct plue_peer *peer, const plue_abort_signal_t *signal,
                                  struct plue_frame *frame)
    PLUE_CHECKED(release_capability(plue_mutex));

/* Is told that the tool of a call of that peer has outlived its grace period. */
void plue_runtime_suspect(uint64_t generation) PLUE_LOCKED;

#endif
