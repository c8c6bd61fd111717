#include "runtime.h"

#include "abort.h"
#include "platform.h"
#include "settings.h"
#include "sidecar.h"
#include "state.h"

#include <stdio.h>
#include <string.h>

enum hosting { NO_RUNTIME, GUEST, SIDECAR };

/* AUTO is sticky: once a guest was there, its registry is the one that the host means. A sidecar
 * that took over silently would offer other tools. */
static enum hosting current_hosting(void) {
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
                                  struct plue_outcome *failure) {
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
                                    struct plue_outcome *failure) {
    switch (plue_sidecar_ensure(waited, peer, failure)) {
    case PLUE_SIDECAR_READY:
        return IS_READY;
    case PLUE_SIDECAR_FAILED:
        return HAS_FAILED;
    default:
        return MUST_WAIT;
    }
}

static struct plue_outcome too_slow(void) {
    char text[100];
    snprintf(text, sizeof text, "The JavaScript runtime was not ready within %u ms",
             (unsigned)plue_settings.start_timeout_ms);
    return plue_outcome_failure("runtime_unavailable", text);
}

struct plue_peer *plue_runtime_ready(bool will_block, const bool *cancelled,
                                     struct plue_outcome *failure) {
    /* A sidecar's own thread watches its start; this is the bound for a guest. */
    uint64_t limit = plue_now_ms() + plue_settings.start_timeout_ms;
    bool waited = false;
    while (!*cancelled) {
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
            pthread_cond_wait(&plue_changed, &plue_lock);
        } else if (plue_now_ms() < limit) {
            plue_condition_wait_until(&plue_changed, &plue_lock, limit);
        } else {
            *failure = too_slow();
            return NULL;
        }
    }
    return NULL;
}

void plue_runtime_send(struct plue_peer *peer, struct plue_call *call, struct plue_frame *frame) {
    if (peer == plue_guest_peer()) {
        struct plue_wake wake = {0};
        plue_guest_enqueue(frame, &wake);
        call->sent = true;
        plue_guest_wake_and_relock(&wake);
        return;
    }
    /* Writing to the socket takes microseconds that other calls need not wait for. */
    struct plue_sidecar *sidecar = plue_sidecar_hold(peer->generation);
    pthread_mutex_unlock(&plue_lock);
    plue_sidecar_send(sidecar, frame);
    plue_sidecar_unhold(sidecar);
    pthread_mutex_lock(&plue_lock);
    call->sent = true;
    if (call->aborted && !call->done) {
        /* Not sent earlier, because ABORT must not overtake EXEC. */
        struct plue_aborts aborts = {0};
        plue_aborts_add(&aborts, call);
        pthread_mutex_unlock(&plue_lock);
        plue_aborts_send(&aborts, plue_abort_reason(call));
        pthread_mutex_lock(&plue_lock);
    }
}

bool plue_aborts_add(struct plue_aborts *aborts, const struct plue_call *call) {
    if (aborts->count == PLUE_ABORTS_MAX ||
        (aborts->count > 0 && aborts->generation != call->generation)) {
        return false;
    }
    aborts->generation = call->generation;
    aborts->ids[aborts->count] = call->id;
    aborts->count++;
    return true;
}

void plue_aborts_send(const struct plue_aborts *aborts, const char *reason) {
    struct plue_wake wake = {0};
    if (aborts->count == 0) {
        return;
    }
    struct plue_frame *frames = plue_frame_repeated(PLUE_FRAME_ABORT, aborts->ids, aborts->count,
                                                    reason, strlen(reason));
    if (frames == NULL) {
        return; /* the grace period still frees the callers */
    }
    pthread_mutex_lock(&plue_lock);
    struct plue_sidecar *sidecar = NULL;
    struct plue_peer *guest = plue_guest_peer();
    if (guest != NULL && guest->generation == aborts->generation) {
        plue_guest_enqueue(frames, &wake);
        frames = NULL;
    } else {
        sidecar = plue_sidecar_hold(aborts->generation);
    }
    pthread_mutex_unlock(&plue_lock);
    plue_guest_wake(&wake);
    if (sidecar != NULL) {
        plue_sidecar_send(sidecar, frames);
        plue_sidecar_unhold(sidecar);
    } else {
        plue_frame_free_all(frames);
    }
}

void plue_runtime_suspect(struct plue_call *call) {
    struct plue_sidecar *sidecar = plue_sidecar_of(call->generation);
    if (sidecar != NULL) {
        plue_sidecar_ping(sidecar);
    }
}
