#include "abort.h"

#include "frame.h"
#include "platform.h"
#include "state.h"
#include "text.h"

struct abort_reason {
    uint64_t at_ms;
    char *text;
};

/* The reason if memory for the given reason is lacking. The grace period then ends immediately. */
static char no_text[] = "";
static struct abort_reason no_reason = {0, no_text};

static void free_reason(struct abort_reason *reason) {
    if (reason != NULL && reason != &no_reason) {
        free(reason->text);
        free(reason);
    }
}

struct plue_abort_signal {
    /* The low half counts the references of the host, the high half the references of calls, so a
     * host that releases too often does not remove the reference of a call. */
    atomic_uint_fast64_t references;
    uint64_t id;
    _Atomic(struct abort_reason *) reason; /* NULL until the signal is aborted */
    struct plue_call *calls PLUE_GUARDED;
    struct plue_abort_signal *next_due;
};

static const uint64_t one_of_host = 1;
static const uint64_t one_of_call = UINT64_C(1) << 32;

static uint64_t count_of_host(uint64_t references) {
    return references & (one_of_call - 1);
}

static atomic_uint_fast64_t last_signal_id;

static struct abort_reason *reason_of(const struct plue_abort_signal *signal) {
    if (signal == NULL) {
        return NULL;
    }
    struct abort_reason *reason = atomic_load(&signal->reason);
    plue_order_acquire(&signal->reason);
    return reason;
}

bool plue_abort_is_aborted(const plue_abort_signal_t *signal) {
    return reason_of(signal) != NULL;
}

uint64_t plue_abort_time(const plue_abort_signal_t *signal) {
    return reason_of(signal)->at_ms;
}

const char *plue_abort_reason(const plue_abort_signal_t *signal) {
    return reason_of(signal)->text;
}

uint64_t plue_abort_id(const plue_abort_signal_t *signal) {
    return signal == NULL ? 0 : signal->id;
}

struct plue_frame *plue_abort_frame(const plue_abort_signal_t *signal) {
    const char *reason = plue_abort_reason(signal);
    return plue_frame_new(PLUE_FRAME_ABORT, PLUE_ABORT_OF_SIGNAL, signal->id, reason,
                          strlen(reason));
}

static void give_back(struct plue_abort_signal *signal, uint64_t one) {
    plue_order_release(&signal->references);
    if (atomic_fetch_sub(&signal->references, one) == one) {
        plue_order_acquire(&signal->references);
        free_reason(reason_of(signal));
        free(signal);
    }
}

void plue_abort_carry(plue_abort_signal_t *signal) {
    if (signal != NULL) {
        atomic_fetch_add(&signal->references, one_of_call);
    }
}

void plue_abort_drop(plue_abort_signal_t *signal) {
    if (signal != NULL) {
        give_back(signal, one_of_call);
    }
}

struct plue_call **plue_abort_calls(plue_abort_signal_t *signal) {
    return &signal->calls;
}

/* Aborted signals whose calls are to be notified, each with a reference. */
static _Atomic(struct plue_abort_signal *) first_due;

bool plue_aborts_are_due(void) {
    /* A compare-and-swap, because it must be ordered with the one in make_due(): either this thread
     * finds the new signal, or the thread in make_due() finds the lock free. */
    struct plue_abort_signal *none = NULL;
    return !atomic_compare_exchange_strong(&first_due, &none, NULL);
}

static void make_due(struct plue_abort_signal *signal) {
    signal->next_due = atomic_load(&first_due);
    while (!atomic_compare_exchange_weak(&first_due, &signal->next_due, signal)) {
    }
}

plue_abort_signal_t *plue_aborts_take(void) {
    return atomic_load(&first_due) == NULL ? NULL : atomic_exchange(&first_due, NULL);
}

plue_abort_signal_t *plue_abort_next(const plue_abort_signal_t *signal) {
    return signal->next_due;
}

plue_abort_signal_t *plue_abort_signal_new(void) {
    struct plue_abort_signal *signal = plue_is_forked() ? NULL : calloc(1, sizeof *signal);
    if (signal != NULL) {
        signal->id = atomic_fetch_add(&last_signal_id, 1) + 1;
        atomic_init(&signal->references, one_of_host);
    }
    return signal;
}

plue_abort_signal_t *plue_abort_signal_retain(plue_abort_signal_t *signal) {
    if (signal == NULL || plue_is_forked()) {
        return NULL;
    }
    atomic_fetch_add(&signal->references, one_of_host);
    return signal;
}

void plue_abort_signal_release(plue_abort_signal_t *signal) {
    if (signal == NULL || plue_is_forked()) {
        return;
    }
    /* The host may have released a signal once too often: then only calls have references. */
    if (count_of_host(atomic_load(&signal->references)) > 0) {
        give_back(signal, one_of_host);
    }
}

/* Returns the reason as UTF-8, with the current time. */
static struct abort_reason *make_reason(const char *text) {
    size_t length = text == NULL ? 0 : plue_text_prefix(text, PLUE_MAX_REASON);
    char *repaired = plue_text_repair(text == NULL ? "" : text, length);
    struct abort_reason *reason = repaired == NULL ? NULL : malloc(sizeof *reason);
    if (reason == NULL) {
        free(repaired);
        return &no_reason;
    }
    repaired[plue_text_prefix(repaired, PLUE_MAX_REASON)] = '\0'; /* a replacement is longer */
    *reason = (struct abort_reason){plue_now_ms(), repaired};
    return reason;
}

void plue_abort_signal_abort(plue_abort_signal_t *signal, const char *text) {
    if (signal == NULL || plue_is_forked() || plue_abort_is_aborted(signal)) {
        return;
    }
    PLUE_WITHOUT_CANCELLATION;
    struct abort_reason *reason = make_reason(text);
    struct abort_reason *none = NULL;
    /* The reference is for the list of due signals and for this function. */
    plue_abort_carry(signal);
    plue_order_release(&signal->reason);
    if (atomic_compare_exchange_strong(&signal->reason, &none, reason)) {
        make_due(signal);
        if (plue_try_lock()) {
            plue_unlock();
        }
    } else {
        free_reason(reason);
        plue_abort_drop(signal);
    }
}

int plue_abort_signal_aborted(const plue_abort_signal_t *signal) {
    return !plue_is_forked() && plue_abort_is_aborted(signal);
}
