/* Which peer runs the calls: the attached guest, or the sidecar, which is started when needed. */
#ifndef PLUE_RUNTIME_H
#define PLUE_RUNTIME_H

#include "call.h"
#include "frame.h"
#include "guest.h"
#include "outcome.h"
#include "peer.h"

#include <stdbool.h>

/* plue_lock is held for all of it. */

/* Returns the peer that calls go to, once it is ready. The lock is given up while this waits, and
 * the wait ends when `*cancelled` becomes true and plue_changed is broadcast.
 * `will_block`: the caller is going to wait for JavaScript, which must not happen on its thread.
 * NULL: with the reason in `failure`, or cancelled. */
struct plue_peer *plue_runtime_ready(bool will_block, const bool *cancelled,
                                     struct plue_outcome *failure);

/* Sends the call's EXEC to the peer. The lock is given up in between. Takes the frame. */
void plue_runtime_send(struct plue_peer *peer, struct plue_call *call, struct plue_frame *frame);

/* Sends ABORT for a call that has been sent. */
void plue_runtime_abort(struct plue_call *call, struct plue_wake *wake);

/* Is told that the tool of a call has outlived its grace period. */
void plue_runtime_suspect(struct plue_call *call);

#endif
