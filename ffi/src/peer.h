/* The tools side of a connection: one peer per attached guest, one per running sidecar. */
#ifndef PLUE_PEER_H
#define PLUE_PEER_H

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "state.h"
#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plue_peer_state {
    PLUE_PEER_WAITING, /* for the answer to CONFIG */
    PLUE_PEER_READY,
    PLUE_PEER_REFUSED, /* it cannot offer its tools */
};

struct plue_peer {
    uint64_t generation; /* tells this connection's calls from those of all others; set once */
    uint64_t configuration PLUE_GUARDED;
    enum plue_peer_state state PLUE_GUARDED;
    const char *refusal_code PLUE_GUARDED;
    char *refusal PLUE_GUARDED;
    struct plue_shared_text *tools PLUE_GUARDED; /* as JSON; NULL until they are known */
    bool has_answered PLUE_GUARDED;              /* it has given a result */
    uint64_t pong_due_ms PLUE_GUARDED;           /* 0: no PING is unanswered */
};

/* The readiness of a peer for calls. */
enum plue_readiness { PLUE_RUNTIME_IS_READY, PLUE_RUNTIME_HAS_FAILED, PLUE_RUNTIME_IS_STARTING };

/* HAS_FAILED sets `*failure`. */
enum plue_readiness plue_peer_readiness(const struct plue_peer *peer,
                                        struct plue_outcome *failure) PLUE_LOCKED;

void plue_peer_open(struct plue_peer *peer) PLUE_LOCKED;

/* What is wrong with $PLUE_TOOLS, where it is what names the tools; NULL: nothing. It is for a sidecar
 * to judge: a guest needs no name. */
const char *plue_peer_fault(void) PLUE_LOCKED;

/* The module of the tools, resolved, on the heap; NULL if none is named. Returns false when out of
 * memory. */
bool plue_peer_find_module(char **module) PLUE_LOCKED;

/* Forgets what was known and makes the frames that ask for it anew: the host's own tools, then
 * CONFIG. NULL: out of memory. */
struct plue_frame *plue_peer_configure(struct plue_peer *peer) PLUE_LOCKED;

/* Frees the peer's memory. With the lock, or if no other thread has the peer. */
void plue_peer_close(struct plue_peer *peer);

/* Ends all calls of the peer with a failure, and aborts the invocations by it. */
void plue_peer_fail(const struct plue_peer *peer, const char *code,
                    const char *message) PLUE_LOCKED;

/* Acts on a frame from the tools side, and may take what is its own. Returns false when it breaks the
 * protocol. The threads in `wakeups` are to be woken once there is no further frame at hand. */
bool plue_peer_receive(struct plue_peer *peer, struct plue_frame_view *view,
                       struct plue_wakeups *wakeups) PLUE_UNLOCKED;

#endif
