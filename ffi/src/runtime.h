/* Which peer runs the calls: the attached guest, or the sidecar, which is started when needed. */
#ifndef PLUE_RUNTIME_H
#define PLUE_RUNTIME_H

#include "call.h"
#include "frame.h"
#include "guest.h"
#include "outcome.h"
#include "peer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLUE_ABORTS_MAX = 32 };

/* Calls of one peer whose tools are to be told that they are aborted. Starts as {0}. */
struct plue_aborts {
    uint64_t generation;
    size_t count;
    uint64_t ids[PLUE_ABORTS_MAX];
};

/* plue_lock is held for all of it but plue_aborts_send(). */

/* Returns the peer that calls go to, once it is ready. The lock is given up while this waits, and
 * the wait ends when `*cancelled` becomes true and plue_changed is broadcast.
 * `will_block`: the caller is going to wait for JavaScript, which must not happen on its thread.
 * NULL: with the reason in `failure`, or cancelled. */
struct plue_peer *plue_runtime_ready(bool will_block, const bool *cancelled,
                                     struct plue_outcome *failure);

/* Sends the call's EXEC to the peer. The lock is given up in between. Takes the frame. */
void plue_runtime_send(struct plue_peer *peer, struct plue_call *call, struct plue_frame *frame);

/* Adds a call that has been sent to those that are to be aborted. Returns false when it does not fit:
 * there are enough, or they run on another peer. */
bool plue_aborts_add(struct plue_aborts *aborts, const struct plue_call *call);

/* Sends ABORT for those calls, all with the same reason, which may be empty. Without the lock. */
void plue_aborts_send(const struct plue_aborts *aborts, const char *reason);

/* Is told that the tool of a call has outlived its grace period. */
void plue_runtime_suspect(struct plue_call *call);

#endif
