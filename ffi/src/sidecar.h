/* The tools as a child process. At most one runs; it is started when it is needed. */
#pragma once

#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "state.h"

struct plue_sidecar;

/* Starts the sidecar if none runs. IS_READY sets `*peer`, HAS_FAILED sets `*failure`. After
 * IS_STARTING, wait for plue_change(), and call this again with the same `waited`; `*waited` is
 * false at first. A start that failed meanwhile is then reported, and not repeated. */
enum plue_readiness plue_sidecar_ensure(bool *waited, struct plue_peer **peer,
                                        struct plue_outcome *failure) PLUE_LOCKED;

/* Returns true even after the sidecar has ended, until its thread was joined. */
bool plue_sidecar_exists(void) PLUE_LOCKED;

/* Returns the running sidecar whose peer has this generation, with a reference, so that its memory
 * and socket stay valid. Returns NULL if it has ended. */
struct plue_sidecar *plue_sidecar_hold(uint64_t generation) PLUE_LOCKED;

/* Called when a tool has outlived the grace period of its call. Sends a ping to this sidecar, and
 * kills it if there is no response. */
void plue_sidecar_suspect(uint64_t generation) PLUE_LOCKED;

/* Fails the running calls and sends the sidecar SHUTDOWN. Returns it, or NULL if there is none. */
struct plue_sidecar *plue_sidecar_begin_shutdown(void) PLUE_LOCKED;

/* Forgets the sidecar and the failed starts, after plue_sidecar_join(). The caller then calls
 * plue_sidecar_unhold(). */
void plue_sidecar_end_shutdown(void) PLUE_LOCKED;

void plue_sidecar_unhold(struct plue_sidecar *sidecar);

/* Reads for all callers of the sidecar, until the word differs from `value`, `at_ms` has passed, or
 * callers must not read any more. Returns false if another thread reads. */
bool plue_sidecar_lead(struct plue_sidecar *sidecar, const atomic_uint *word, unsigned value,
                       uint64_t at_ms) PLUE_UNLOCKED;

/* Wakes the caller that reads, so that it checks its word. */
void plue_sidecar_wake_leader(struct plue_sidecar *sidecar);

/* Sends a frame and the frames linked to it, or queues them if the socket is full. Never blocks.
 * May be called with the lock held. */
void plue_sidecar_send(struct plue_sidecar *sidecar, struct plue_frame *frame);

/* Removes the unsent frame of a call from the queue. Returns NULL if a part of it was sent. */
struct plue_frame *plue_sidecar_withdraw(struct plue_sidecar *sidecar, uint64_t call);

void plue_sidecar_join(struct plue_sidecar *sidecar) PLUE_UNLOCKED;

/* Closes the copy of the socket in the child of a fork(), so that the sidecar notices the end of
 * its host. */
void plue_sidecar_abandon(void);
