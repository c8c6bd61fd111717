#include "runtime.h"

#include "abort.h"
#include "guest.h"
#include "platform.h"
#include "settings.h"
#include "sidecar.h"

enum hosting { NO_RUNTIME, GUEST, SIDECAR };

/* AUTO does not return to the sidecar after a guest was attached: the host uses the guest's
 * registry, and a sidecar would silently offer other tools. */
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

static enum plue_readiness look_at_guest(enum plue_patience patience, struct plue_peer **peer,
                                         struct plue_outcome *failure) PLUE_LOCKED {
    *peer = plue_guest_peer();
    bool would_wait = patience == PLUE_WAITS_FOR_TOOL ||
                      (patience == PLUE_WAITS_FOR_START && (*peer)->state == PLUE_PEER_WAITING);
    if (would_wait && plue_guest_is_this_thread()) {
        *failure = plue_outcome_failure(
            "would_deadlock",
            "Called on the JavaScript thread, which would have to run the tool: call from another");
        return PLUE_RUNTIME_HAS_FAILED;
    }
    return plue_peer_readiness(*peer, failure);
}

static struct plue_outcome too_slow(void) PLUE_LOCKED {
    return plue_outcome_failure_of("runtime_unavailable",
                                   "The JavaScript runtime was not ready within %u ms",
                                   (unsigned)plue_settings.start_timeout_ms);
}

enum plue_readiness plue_runtime_look(enum plue_patience patience, uint64_t limit_ms, bool *waited,
                                      struct plue_peer **peer, struct plue_outcome *failure) {
    if (plue_stopping) {
        *failure = plue_outcome_failure("shutdown", "plue_shutdown() was called");
        return PLUE_RUNTIME_HAS_FAILED;
    }
    /* The field is set each time, because a shutdown may have reset it. */
    plue_settings.in_use = true;
    switch (current_hosting()) {
    case GUEST: {
        enum plue_readiness readiness = look_at_guest(patience, peer, failure);
        if (readiness == PLUE_RUNTIME_IS_STARTING && plue_now_ms() >= limit_ms) {
            *failure = too_slow();
            return PLUE_RUNTIME_HAS_FAILED;
        }
        return readiness;
    }
    case SIDECAR:
        return plue_sidecar_ensure(waited, peer, failure);
    default:
        *failure = plue_outcome_failure("runtime_unavailable", "No JavaScript runtime is attached");
        return PLUE_RUNTIME_HAS_FAILED;
    }
}

uint64_t plue_runtime_start_deadline(uint64_t limit_ms) {
    return current_hosting() == SIDECAR ? PLUE_NEVER_MS : limit_ms;
}

struct plue_peer *plue_runtime_ready(enum plue_patience patience,
                                     const plue_abort_signal_t *signal,
                                     struct plue_outcome *failure) {
    uint64_t limit = plue_now_ms() + plue_settings.start_timeout_ms;
    bool waited = false;
    while (!plue_abort_is_aborted(signal)) {
        struct plue_peer *peer = NULL;
        switch (plue_runtime_look(patience, limit, &waited, &peer, failure)) {
        case PLUE_RUNTIME_IS_READY:
            return peer;
        case PLUE_RUNTIME_HAS_FAILED:
            return NULL;
        default:
            plue_wait_for_change(plue_runtime_start_deadline(limit));
        }
    }
    return NULL;
}

void plue_runtime_send_and_unlock(struct plue_sidecar *sidecar, const plue_abort_signal_t *signal,
                                  struct plue_frame *frame) {
    if (sidecar == NULL) {
        plue_guest_enqueue(frame);
        plue_unlock();
        return;
    }
    /* Releases the lock: other calls need not wait for the write, which takes microseconds. */
    plue_unlock();
    plue_sidecar_send(sidecar, frame);
    /* The ABORT may have been sent before the call's own frame, so it is sent again. */
    struct plue_frame *abort = plue_abort_is_aborted(signal) ? plue_abort_frame(signal) : NULL;
    if (abort != NULL) {
        plue_sidecar_send(sidecar, abort);
    }
}

void plue_runtime_send(uint64_t generation, struct plue_frame *frame) {
    plue_lock();
    struct plue_peer *guest = plue_guest_peer();
    if (guest != NULL && guest->generation == generation) {
        plue_guest_enqueue(frame);
        plue_unlock();
        return;
    }
    struct plue_sidecar *sidecar = plue_sidecar_hold(generation);
    plue_unlock();
    if (sidecar == NULL) {
        plue_frame_free_all(frame);
        return;
    }
    plue_sidecar_send(sidecar, frame);
    plue_sidecar_unhold(sidecar);
}

/* Wakes the calls, and makes the frames for the peers that run them. */
static void notify_calls(struct plue_abort_signal *signal, struct plue_aborts *aborts) PLUE_LOCKED {
    struct plue_peer *guest = plue_guest_peer();
    uint64_t guests = guest == NULL ? 0 : guest->generation;
    bool is_in_guest = false;
    bool is_starting = false;
    for (struct plue_call *call = *plue_abort_calls(signal); call != NULL; call = call->next_of_signal) {
        plue_call_notify(call, PLUE_CALL_ABORTED, &aborts->wakeups);
        if (call->generation == 0) {
            is_starting = is_starting || call->due == NULL; /* a submitted call does not wait here */
        } else if (call->generation == guests) {
            is_in_guest = true;
        } else if (aborts->sidecar == NULL) {
            aborts->sidecar = plue_sidecar_hold(call->generation);
        }
    }
    if (is_starting) {
        plue_change();
    }
    /* If there is no memory for a frame, callers still return after the grace period. */
    struct plue_frame *frame = is_in_guest ? plue_abort_frame(signal) : NULL;
    if (frame != NULL) {
        plue_guest_enqueue(frame);
    }
    frame = aborts->sidecar != NULL ? plue_abort_frame(signal) : NULL;
    if (frame != NULL) {
        frame->next = aborts->frames;
        aborts->frames = frame;
    }
}

struct plue_aborts plue_runtime_take_aborts(void) {
    struct plue_aborts aborts = {.frames = NULL};
    struct plue_abort_signal *signal = plue_aborts_take();
    while (signal != NULL) {
        struct plue_abort_signal *next = plue_abort_next(signal);
        notify_calls(signal, &aborts);
        plue_abort_drop(signal);
        signal = next;
    }
    return aborts;
}

void plue_runtime_send_aborts(struct plue_aborts *aborts) {
    if (aborts->frames != NULL) {
        plue_sidecar_send(aborts->sidecar, aborts->frames);
    }
    if (aborts->sidecar != NULL) {
        plue_sidecar_unhold(aborts->sidecar);
    }
    plue_wakeups_carry_out(&aborts->wakeups);
}

int plue_start(void) {
    PLUE_WITHOUT_CANCELLATION;
    if (plue_is_forked()) {
        return plue_outcome_status(plue_forked_failure());
    }
    struct plue_outcome outcome = {.status = PLUE_OK};
    plue_lock();
    plue_runtime_ready(PLUE_WAITS_FOR_START, NULL, &outcome);
    plue_unlock();
    return plue_outcome_status(outcome);
}
