/* The tools side as libplue knows it: one peer per attached guest, one per running sidecar. */
#ifndef PLUE_PEER_H
#define PLUE_PEER_H

#include "frame.h"
#include "outcome.h"
#include "shared_text.h"
#include "waiter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plue_peer_state {
    PLUE_PEER_WAITING, /* for the answer to CONFIG */
    PLUE_PEER_READY,
    PLUE_PEER_REFUSED, /* it cannot offer its tools */
};

struct plue_peer {
    uint64_t generation; /* tells this connection's calls from those of all others */
    uint64_t configuration;
    enum plue_peer_state state;
    const char *refusal_code;
    char *refusal;
    struct plue_shared_text *tools; /* their list as JSON; NULL until it is known */
    bool has_answered;    /* it has given a result */
    uint64_t pong_due_ms; /* 0: no PING is unanswered */
};

/* All but plue_peer_receive() are called with plue_lock held. */

/* Begins a connection. */
void plue_peer_open(struct plue_peer *peer);

/* What is wrong with $PLUE_TOOLS, where it is what names the tools; NULL: nothing. It is for a sidecar
 * to judge: a guest needs no name. */
const char *plue_peer_fault(void);

/* Forgets what was known and makes the CONFIG frame that asks for it anew. NULL: out of memory. */
struct plue_frame *plue_peer_configure(struct plue_peer *peer);

/* Frees what the peer holds. */
void plue_peer_close(struct plue_peer *peer);

/* What a call gets while the peer is PLUE_PEER_REFUSED. */
struct plue_outcome plue_peer_refusal(const struct plue_peer *peer);

/* Acts on a frame from the tools side. Returns false when it breaks the protocol. The threads in
 * `wakeups` are to be woken once there is no further frame at hand. */
bool plue_peer_receive(struct plue_peer *peer, const struct plue_frame_view *view,
                       struct plue_wakeups *wakeups);

#endif
