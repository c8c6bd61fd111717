/* The tools side of a connection. Each attached guest and each running sidecar is a peer. */
#pragma once

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "state.h"
#include "text.h"

enum plue_peer_state {
    PLUE_PEER_WAITING, /* CONFIG was not answered yet */
    PLUE_PEER_READY,
    PLUE_PEER_REFUSED, /* the tools cannot be offered */
};

struct plue_peer {
    uint64_t generation; /* identifies the connection; set once */
    uint64_t configuration PLUE_GUARDED;
    enum plue_peer_state state PLUE_GUARDED;
    const char *refusal_code PLUE_GUARDED;
    char *refusal PLUE_GUARDED;
    struct plue_shared_text *tools PLUE_GUARDED; /* the list as JSON; NULL before the first list */
    bool has_answered PLUE_GUARDED;              /* true after the first result */
    uint64_t pong_due_ms PLUE_GUARDED;           /* the deadline of the PONG; 0 if none is expected */
};

/* The readiness of a peer for calls. */
enum plue_readiness { PLUE_RUNTIME_IS_READY, PLUE_RUNTIME_HAS_FAILED, PLUE_RUNTIME_IS_STARTING };

/* HAS_FAILED sets `*failure`. */
enum plue_readiness plue_peer_readiness(const struct plue_peer *peer,
                                        struct plue_outcome *failure) PLUE_LOCKED;

void plue_peer_open(struct plue_peer *peer) PLUE_LOCKED;

/* Returns the problem of $PLUE_TOOLS if that variable names the tools, or NULL. Only the start of a
 * sidecar checks the variable: a guest has its own tools. */
const char *plue_peer_fault(void) PLUE_LOCKED;

/* Sets `*module` to the resolved path or URL of the tools' module, on the heap; to NULL if no option
 * or variable names a module. Returns false when out of memory. */
bool plue_peer_find_module(char **module) PLUE_LOCKED;

/* Resets the peer, and makes the frames that configure it: the host's own tools, then CONFIG.
 * Returns NULL when out of memory. */
struct plue_frame *plue_peer_configure(struct plue_peer *peer) PLUE_LOCKED;

/* Frees the peer's memory. Requires the lock, unless no other thread uses the peer. */
void plue_peer_close(struct plue_peer *peer);

/* Ends all calls of the peer with a failure, and aborts the invocations by it. */
void plue_peer_fail(const struct plue_peer *peer, const char *code,
                    const char *message) PLUE_LOCKED;

/* Handles a frame from the tools side, and may take its separate payload. Returns false if the
 * frame breaks the protocol. Wake the threads in `wakeups` when no further frame waits. */
bool plue_peer_receive(struct plue_peer *peer, struct plue_frame_view *view,
                       struct plue_wakeups *wakeups) PLUE_UNLOCKED;
