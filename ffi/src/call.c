#include "call.h"

#include "abort.h"
#include "platform.h"

enum { MAX_EVENTS_SIZE = 16 << 20 };

void plue_wakeups_carry_out(struct plue_wakeups *wakeups) {
    for (size_t i = 0; i < wakeups->count; i++) {
        plue_unpark(wakeups->words[i]);
    }
    wakeups->count = 0;
}

static void add_wakeup(struct plue_wakeups *wakeups, const atomic_uint *word) {
    if (wakeups->count == sizeof wakeups->words / sizeof *wakeups->words) {
        plue_wakeups_carry_out(wakeups);
    }
    wakeups->words[wakeups->count++] = word;
}

/* Sets the news, and wakes the thread or queues the event that handles them. Returns what the
 * thread does at present. After PLUE_CALL_DONE the call may have been freed. */
static unsigned set_news(struct plue_call *call, unsigned news,
                         struct plue_wakeups *wakeups) PLUE_LOCKED {
    const atomic_uint *word = &call->news;
    struct plue_due *due = call->due;
    plue_order_release(word);
    unsigned before = atomic_fetch_or(&call->news, news);
    bool is_new = (before & news) != news;
    if (is_new && due != NULL) {
        plue_events_add(due);
    } else if (is_new && (before & PLUE_CALL_WAITS)) {
        add_wakeup(wakeups, word);
    }
    return before;
}

void plue_call_notify(struct plue_call *call, unsigned news, struct plue_wakeups *wakeups) {
    struct plue_sidecar *sidecar = call->sidecar;
    if (set_news(call, news, wakeups) & PLUE_CALL_LEADS) {
        plue_above.wake_leader(sidecar);
    }
}

enum { BUCKETS = 256 };
static struct plue_call *table[BUCKETS] PLUE_GUARDED;
static uint64_t last_id PLUE_GUARDED;

void plue_call_add(struct plue_call *call) {
    call->id = ++last_id;
    call->next_in_table = table[call->id % BUCKETS];
    table[call->id % BUCKETS] = call;
}

static void remove_from_table(struct plue_call *call) PLUE_LOCKED {
    struct plue_call **at = &table[call->id % BUCKETS];
    while (*at != call) {
        at = &(*at)->next_in_table;
    }
    *at = call->next_in_table;
}

bool plue_calls_are_running(void) {
    for (int i = 0; i < BUCKETS; i++) {
        if (table[i] != NULL) {
            return true;
        }
    }
    return false;
}

struct plue_call *plue_call_find(uint64_t generation, uint64_t id) {
    struct plue_call *call = table[id % BUCKETS];
    while (call != NULL && call->id != id) {
        call = call->next_in_table;
    }
    return call != NULL && call->generation == generation ? call : NULL;
}

/* The bytes of the frames of all open calls. */
static size_t bytes_in_flight PLUE_GUARDED;

size_t plue_calls_size(void) {
    return bytes_in_flight;
}

void plue_call_tie(struct plue_call *call, size_t size) {
    call->events_end = &call->first_event;
    call->size = size;
    bytes_in_flight += size;
    if (call->signal == NULL) {
        return;
    }
    struct plue_call **calls = plue_abort_calls(call->signal);
    call->next_of_signal = *calls;
    call->previous_of_signal = calls;
    if (*calls != NULL) {
        (*calls)->previous_of_signal = &call->next_of_signal;
    }
    *calls = call;
}

void plue_call_close(struct plue_call *call) {
    bytes_in_flight -= call->size;
    call->size = 0;
    if (call->previous_of_signal == NULL) {
        return;
    }
    *call->previous_of_signal = call->next_of_signal;
    if (call->next_of_signal != NULL) {
        call->next_of_signal->previous_of_signal = call->previous_of_signal;
    }
    call->previous_of_signal = NULL;
}

void plue_call_forget(struct plue_call *call) {
    remove_from_table(call);
    plue_call_close(call);
}

void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups) {
    call->answered = true;
    call->outcome = outcome;
    plue_call_forget(call);
    /* No reading caller has to be woken: this thread is the reader. */
    set_news(call, PLUE_CALL_DONE, wakeups);
}

bool plue_calls_hand_over(uint64_t generation, const atomic_uint *word) {
    struct plue_wakeups wakeups = {.count = 0};
    bool is_found = false;
    plue_lock();
    /* Starts with the newest call, which is likely to run, and so to read, for longest. */
    for (uint64_t i = 0; i < BUCKETS; i++) {
        struct plue_call *call = table[(last_id - i) % BUCKETS];
        while (call != NULL && (call->generation != generation || &call->news == word ||
                                !(atomic_load(&call->news) & PLUE_CALL_WAITS))) {
            call = call->next_in_table;
        }
        if (call != NULL) {
            set_news(call, PLUE_CALL_LEAD, &wakeups);
            is_found = true;
            break;
        }
    }
    plue_unlock();
    plue_wakeups_carry_out(&wakeups);
    return is_found;
}

void plue_calls_fail(uint64_t generation, const char *code, const char *message) {
    struct plue_wakeups wakeups = {.count = 0};
    struct plue_shared_text *text = plue_shared_text_new(message, strlen(message));
    for (int i = 0; i < BUCKETS; i++) {
        struct plue_call *next;
        for (struct plue_call *call = table[i]; call != NULL; call = next) {
            next = call->next_in_table;
            if (call->generation == generation) {
                call->failure = code;
                call->message = plue_shared_text_retain(text);
                plue_call_forget(call);
                plue_call_notify(call, PLUE_CALL_DONE, &wakeups);
            }
        }
    }
    plue_shared_text_release(text);
    /* The threads are woken with the lock held, because the caller holds it. This is rare. */
    plue_wakeups_carry_out(&wakeups);
}

struct plue_event *plue_event_new(const void *json, size_t length) {
    struct plue_event *event = malloc(sizeof *event + length + 1);
    if (event == NULL) {
        return NULL;
    }
    event->next = NULL;
    event->size = sizeof *event + length + 1;
    memcpy(event->json, json, length);
    event->json[length] = '\0';
    return event;
}

bool plue_call_add_event(struct plue_call *call, struct plue_event *event,
                         struct plue_wakeups *wakeups) {
    if (event == NULL || event->size > MAX_EVENTS_SIZE - atomic_load(&call->events_size)) {
        atomic_fetch_add(&call->dropped_events, 1);
        return false;
    }
    *call->events_end = event;
    call->events_end = &event->next;
    atomic_fetch_add(&call->events_size, event->size);
    set_news(call, PLUE_CALL_EVENTS, wakeups); /* without wake_leader(): this thread is the reader */
    return true;
}
