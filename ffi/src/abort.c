#include "abort.h"

#include "cancellation.h"
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
    char *reason; /* may be NULL; stays as it is once the signal is aborted */
    struct plue_call *calls;
    struct plue_call *told_calls; /* that they are aborted */
    bool is_telling;              /* a thread goes through the calls */
};

/* A longer reason is cut: it is sent for each call. */
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
    bool is_carried = signal->calls != NULL || signal->told_calls != NULL;
    if (signal->references > 0 || is_carried || signal->is_telling) {
        return;
    }
    forget(signal);
    free(signal->reason);
    free(signal);
}

static const char *reason_of(const struct plue_abort_signal *signal) {
    return signal->reason == NULL ? "" : signal->reason;
}

static void link_call(struct plue_call **first, struct plue_call *call) {
    call->next_of_signal = *first;
    call->previous_of_signal = first;
    if (*first != NULL) {
        (*first)->previous_of_signal = &call->next_of_signal;
    }
    *first = call;
}

static void unlink_call(struct plue_call *call) {
    *call->previous_of_signal = call->next_of_signal;
    if (call->next_of_signal != NULL) {
        call->next_of_signal->previous_of_signal = call->previous_of_signal;
    }
}

void plue_abort_tie(plue_abort_signal_t *signal, struct plue_call *call) {
    call->signal = signal;
    call->aborted = signal->aborted;
    link_call(signal->aborted ? &signal->told_calls : &signal->calls, call);
}

void plue_abort_untie(struct plue_call *call) {
    if (call->signal == NULL) {
        return;
    }
    unlink_call(call);
    free_if_unused(call->signal);
    call->signal = NULL;
}

/* Has the next calls know that they are aborted, as many as can be told to their tools at once. One
 * that is done may still have events to deliver, for which it has the grace period as well; its
 * thread is in a callback, or about to return. plue_lock is held. */
static void mark_calls(struct plue_abort_signal *signal, struct plue_aborts *aborts,
                       struct plue_wakeups *wakeups) {
    uint64_t deadline = plue_now_ms() + plue_settings.abort_grace_ms;
    bool is_one_starting = false;
    for (int i = 0; i < PLUE_ABORTS_MAX && signal->calls != NULL; i++) {
        struct plue_call *call = signal->calls;
        bool is_running = call->sent && !call->done;
        if (is_running && !plue_aborts_add(aborts, call)) {
            break;
        }
        unlink_call(call);
        link_call(&signal->told_calls, call);
        call->aborted = true;
        call->abort_deadline_ms = deadline;
        is_one_starting |= !call->sent;
        if (is_running) {
            plue_wakeups_add(wakeups, call->waiter);
        }
    }
    if (is_one_starting) {
        pthread_cond_broadcast(&plue_changed); /* it may wait for its runtime */
    }
}

/* Tells all calls of an aborted signal, and their tools: some at a time, so that whoever else wants
 * the lock, or waits for what is sent here, does not wait for all of them. plue_lock is held, and is
 * given up in between. */
static void tell_calls(struct plue_abort_signal *signal) {
    signal->is_telling = true;
    while (signal->calls != NULL) {
        struct plue_aborts aborts = {0};
        struct plue_wakeups wakeups = {0};
        mark_calls(signal, &aborts, &wakeups);
        pthread_mutex_unlock(&plue_lock);
        plue_aborts_send(&aborts, reason_of(signal));
        plue_wakeups_carry_out(&wakeups);
        pthread_mutex_lock(&plue_lock);
    }
    signal->is_telling = false;
    free_if_unused(signal);
}

const char *plue_abort_reason(const struct plue_call *call) {
    return reason_of(call->signal);
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
    pthread_mutex_lock(&plue_lock);
    if (plue_abort_is_signal(signal) && !signal->aborted) {
        signal->aborted = true;
        signal->reason = copy;
        copy = NULL;
        tell_calls(signal);
    }
    pthread_mutex_unlock(&plue_lock);
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
