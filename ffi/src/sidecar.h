/* The tools as a child process. At most one runs; it is started when it is needed. */
#ifndef PLUE_SIDECAR_H
#define PLUE_SIDECAR_H

#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "state.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct plue_sidecar;

/* Starts the sidecar if none runs. IS_READY sets `*peer`, HAS_FAILED sets `*failure`. After IS_STARTING:
 * wait for plue_change(), and call again with the same `*waited`, which is false at first; a start that
 * failed in between is then reported instead of tried again. */
enum plue_readiness plue_sidecar_ensure(bool *waited, struct plue_peer **peer,
                                        struct plue_outcome *failure) PLUE_LOCKED;

/* Also true while there is the thread of an ended sidecar. */
bool plue_sidecar_exists(void) PLUE_LOCKED;

/* The running sidecar whose peer has that generation, with its memory and its socket kept; NULL if it has
 * ended. */
struct plue_sidecar *plue_sidecar_hold(uint64_t generation) PLUE_LOCKED;

/* Asks that sidecar for a sign of life, and has it killed if none comes: the tool of one of its calls has
 * outlived its grace period. */
void plue_sidecar_suspect(uint64_t generation) PLUE_LOCKED;

/* Fails the running calls and sends the sidecar SHUTDOWN. Returns it, or NULL if there is none. */
struct plue_sidecar *plue_sidecar_begin_shutdown(void) PLUE_LOCKED;

/* Forgets the sidecar and the failed starts, after plue_sidecar_join(). The sidecar is then to be
 * unheld. */
void plue_sidecar_end_shutdown(void) PLUE_LOCKED;

void plue_sidecar_unhold(struct plue_sidecar *sidecar);

/* Reads for all callers of the sidecar, until the word has another value than `value`, `at_ms` has
 * come, or there is nothing more for callers to read. Returns false if another thread reads. */
bool plue_sidecar_lead(struct plue_sidecar *sidecar, const atomic_uint *word, unsigned value,
                       uint64_t at_ms) PLUE_UNLOCKED;

/* Has the caller that reads look at its word. */
void plue_sidecar_wake_leader(struct plue_sidecar *sidecar);

/* Sends a frame and those linked to it, or queues what the socket does not take. Never blocks.
 * May be called with the lock held, too. */
void plue_sidecar_send(struct plue_sidecar *sidecar, struct plue_frame *frame);

/* Takes out the frame of a call of which nothing was sent. NULL: something was. */
struct plue_frame *plue_sidecar_withdraw(struct plue_sidecar *sidecar, uint64_t call);

void plue_sidecar_join(struct plue_sidecar *sidecar) PLUE_UNLOCKED;

/* In the child of a fork(): closes the copy of the socket, so that the sidecar still sees its
 * host's end. */
void plue_sidecar_abandon(void);

#endif
