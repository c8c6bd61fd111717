#include "abort.h"

#include "cancellation.h"
#include "guest.h"
#include "platform.h"
#include "runtime.h"
#include "settings.h"
#include "state.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Lives as long as the host has a reference, or a call carries it. The two are counted apart, so
 * that a host that gives one reference back too often takes none from a call. */
struct plue_abort_signal {
    struct plue_abort_signal *next_alive;
    size_t references; /* the host's */
    bool aborted;
    char *reason; /* may be NULL */
    struct plue_call *calls;
};

/* A longer reason is cut: it is copied for each call, with the lock held. */
enum { MAX_REASON = 64 << 10 };

/* All signals that are alive, by address: a pointer that a host hands in is looked up here before
 * it is followed, so that a wrong one is an error and not a crash. */
enum { BUCKETS = 256 };
static struct plue_abort_signal *alive[BUCKETS];

static struct plue_abort_signal **bucket_of(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    return &alive[(address >> 4 ^ address >> 12) % BUCKETS];
}

bool plue_abort_is_signal(const void *pointer) {
    for (struct plue_abort_signal *at = *bucket_of(pointer); at != NULL; at = at->next_alive) {
        if (at == pointer) {
            return true;
        }
    }
    return false;
}

static void forget(struct plue_abort_signal *signal) {
    struct plue_abort_signal **at = bucket_of(signal);
    while (*at != signal) {
        at = &(*at)->next_alive;
    }
    *at = signal->next_alive;
}

static void free_if_unused(struct plue_abort_signal *signal) {
    if (signal->references > 0 || signal->calls != NULL) {
        return;
    }
    forget(signal);
    free(signal->reason);
    free(signal);
}

/* Tells the call that it is aborted; if its tool runs, tells that too. One that is done may still
 * have events to deliver, for which it has the grace period as well. */
static void abort_call(struct plue_call *call, struct plue_wake *wake) {
    if (call->aborted) {
        return;
    }
    call->aborted = true;
    call->abort_deadline_ms = plue_now_ms() + plue_settings.abort_grace_ms;
    if (call->done) {
        return; /* its thread is in a callback, or about to return */
    }
    if (call->sent) {
        plue_runtime_abort(call, wake);
        pthread_cond_signal(&call->waiter->changed);
    } else {
        /* It waits for its runtime. */
        pthread_cond_broadcast(&plue_changed);
    }
}

void plue_abort_tie(plue_abort_signal_t *signal, struct plue_call *call) {
    call->signal = signal;
    call->aborted = signal->aborted;
    call->next_of_signal = signal->calls;
    call->previous_of_signal = &signal->calls;
    if (signal->calls != NULL) {
        signal->calls->previous_of_signal = &call->next_of_signal;
    }
    signal->calls = call;
}

void plue_abort_untie(struct plue_call *call) {
    if (call->signal == NULL) {
        return;
    }
    *call->previous_of_signal = call->next_of_signal;
    if (call->next_of_signal != NULL) {
        call->next_of_signal->previous_of_signal = call->previous_of_signal;
    }
    free_if_unused(call->signal);
    call->signal = NULL;
}

const char *plue_abort_reason(const struct plue_call *call) {
    return call->signal->reason == NULL ? "" : call->signal->reason;
}

struct plue_outcome plue_abort_outcome(const struct plue_call *call) {
    const char *reason = plue_abort_reason(call);
    return plue_outcome_failure("aborted", *reason == '\0' ? "The call was aborted" : reason);
}

/* -------------------------------------------------------------------------- public functions */

plue_abort_signal_t *plue_abort_signal_new(void) {
    if (plue_is_forked()) {
        return NULL;
    }
    struct plue_abort_signal *signal = calloc(1, sizeof *signal);
    if (signal == NULL) {
        return NULL;
    }
    signal->references = 1;
    pthread_mutex_lock(&plue_lock);
    struct plue_abort_signal **bucket = bucket_of(signal);
    signal->next_alive = *bucket;
    *bucket = signal;
    pthread_mutex_unlock(&plue_lock);
    return signal;
}

plue_abort_signal_t *plue_abort_signal_retain(plue_abort_signal_t *signal) {
    if (plue_is_forked()) {
        return NULL;
    }
    pthread_mutex_lock(&plue_lock);
    bool is_signal = plue_abort_is_signal(signal);
    if (is_signal) {
        signal->references++;
    }
    pthread_mutex_unlock(&plue_lock);
    return is_signal ? signal : NULL;
}

void plue_abort_signal_release(plue_abort_signal_t *signal) {
    if (plue_is_forked()) {
        return;
    }
    pthread_mutex_lock(&plue_lock);
    /* Without one there is nothing to give back: only calls hold the signal. */
    if (plue_abort_is_signal(signal) && signal->references > 0) {
        signal->references--;
        free_if_unused(signal);
    }
    pthread_mutex_unlock(&plue_lock);
}

/* A copy of the reason as UTF-8, or NULL: there is none, or there is no memory. */
static char *copy_reason(const char *reason) {
    if (reason == NULL) {
        return NULL;
    }
    char *copy = plue_text_repair(reason, plue_text_prefix(reason, MAX_REASON));
    if (copy != NULL) {
        copy[plue_text_prefix(copy, MAX_REASON)] = '\0'; /* a replacement is longer */
    }
    return copy;
}

void plue_abort_signal_abort(plue_abort_signal_t *signal, const char *reason) {
    if (plue_is_forked()) {
        return;
    }
    int cancellation = plue_cancellation_off();
    char *copy = copy_reason(reason);
    struct plue_wake wake = {0};
    pthread_mutex_lock(&plue_lock);
    if (plue_abort_is_signal(signal) && !signal->aborted) {
        signal->aborted = true;
        signal->reason = copy;
        copy = NULL;
        for (struct plue_call *call = signal->calls; call != NULL; call = call->next_of_signal) {
            abort_call(call, &wake);
        }
    }
    pthread_mutex_unlock(&plue_lock);
    plue_guest_wake(&wake);
    free(copy);
    plue_cancellation_restore(cancellation);
}

int plue_abort_signal_aborted(const plue_abort_signal_t *signal) {
    if (plue_is_forked()) {
        return 0;
    }
    pthread_mutex_lock(&plue_lock);
    int aborted = plue_abort_is_signal(signal) && signal->aborted;
    pthread_mutex_unlock(&plue_lock);
    return aborted;
}
