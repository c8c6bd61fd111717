#include "runtime.h"

#include "abort.h"
#include "guest.h"
#include "platform.h"
#include "settings.h"
#include "sidecar.h"

#include <stdio.h>
#include <string.h>

enum hosting { NO_RUNTIME, GUEST, SIDECAR };

/* AUTO is sticky: once a guest was there, its registry is the one that the host means. A sidecar
 * that took over silently would offer other tools. */
static enum hosting current_hosting(void) PLUE_LOCKED {
    int mode = plue_settings.mode;
    if (mode == PLUE_MODE_SIDECAR) {
        return SIDECAR;
    }
    if (plue_guest_peer() != NULL) {
        return GUEST;
    }
    return mode == PLUE_MODE_AUTO && !plue_guest_was_attached() ? SIDECAR : NO_RUNTIME;
}

/* What a look at the runtime says. */
enum verdict { IS_READY, HAS_FAILED, MUST_WAIT };

static enum verdict look_at_guest(bool will_block, struct plue_peer **peer,
                                  struct plue_outcome *failure) PLUE_LOCKED {
    *peer = plue_guest_peer();
    bool would_wait = will_block || (*peer)->state == PLUE_PEER_WAITING;
    if (would_wait && plue_guest_is_this_thread()) {
        *failure = plue_outcome_failure(
            "would_deadlock",
            "Called on the JavaScript thread, which would have to run the tool: call from another");
        return HAS_FAILED;
    }
    switch ((*peer)->state) {
    case PLUE_PEER_READY:
        return IS_READY;
    case PLUE_PEER_REFUSED:
        *failure = plue_peer_refusal(*peer);
        return HAS_FAILED;
    default:
        return MUST_WAIT;
    }
}

static enum verdict look_at_sidecar(bool *waited, struct plue_peer **peer,
                                    struct plue_outcome *failure) PLUE_LOCKED {
    switch (plue_sidecar_ensure(waited, peer, failure)) {
    case PLUE_SIDECAR_READY:
        return IS_READY;
    case PLUE_SIDECAR_FAILED:
        return HAS_FAILED;
    default:
        return MUST_WAIT;
    }
}

static struct plue_outcome too_slow(void) PLUE_LOCKED {
    char text[100];
    snprintf(text, sizeof text, "The JavaScript runtime was not ready within %u ms",
             (unsigned)plue_settings.start_timeout_ms);
    return plue_outcome_failure("runtime_unavailable", text);
}

struct plue_peer *plue_runtime_ready(bool will_block, const plue_abort_signal_t *signal,
                                     struct plue_outcome *failure) {
    /* A sidecar's own thread watches its start; this is the bound for a guest. */
    uint64_t limit = plue_now_ms() + plue_settings.start_timeout_ms;
    bool waited = false;
    while (!plue_abort_is_aborted(signal)) {
        if (plue_stopping) {
            *failure = plue_outcome_failure("shutdown", "plue_shutdown() was called");
            return NULL;
        }
        /* Again after a wait: a shutdown in between has forgotten it. */
        plue_settings.in_use = true;
        enum hosting hosting = current_hosting();
        enum verdict verdict;
        struct plue_peer *peer = NULL;
        if (hosting == GUEST) {
            verdict = look_at_guest(will_block, &peer, failure);
        } else if (hosting == SIDECAR) {
            verdict = look_at_sidecar(&waited, &peer, failure);
        } else {
            *failure =
                plue_outcome_failure("runtime_unavailable", "No JavaScript runtime is attached");
            verdict = HAS_FAILED;
        }
        if (verdict != MUST_WAIT) {
            return verdict == IS_READY ? peer : NULL;
        }
        if (hosting == SIDECAR) {
            plue_wait_for_change(PLUE_NEVER_MS);
        } else if (plue_now_ms() < limit) {
            plue_wait_for_change(limit);
        } else {
            *failure = too_slow();
            return NULL;
        }
    }
    return NULL;
}

void plue_runtime_send_and_unlock(struct plue_peer *peer, const plue_abort_signal_t *signal,
                                  struct plue_frame *frame) {
    if (peer == plue_guest_peer()) {
        plue_guest_enqueue(frame);
        plue_unlock();
        return;
    }
    /* Writing to the socket takes microseconds that other calls need not wait for. */
    struct plue_sidecar *sidecar = plue_sidecar_hold(peer->generation);
    plue_unlock();
    plue_sidecar_send(sidecar, frame);
    /* The signal may have been told before the call was sent. */
    struct plue_frame *abort = plue_abort_is_aborted(signal) ? plue_abort_frame(signal) : NULL;
    if (abort != NULL) {
        plue_sidecar_send(sidecar, abort);
    }
    plue_sidecar_unhold(sidecar);
}

void plue_runtime_suspect(uint64_t generation) {
    struct plue_sidecar *sidecar = plue_sidecar_of(generation);
    if (sidecar != NULL) {
        plue_sidecar_ping(sidecar);
    }
}
