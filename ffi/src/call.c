#include "call.h"

#include "abort.h"
#include "frame.h"
#include "platform.h"
#include "runtime.h"
#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EVENTS_SIZE = 16 << 20 };

/* ---------------------------------------------------------------------------------- wakeups */

enum { WAKEUPS_WITHOUT_MEMORY = sizeof((struct plue_wakeups *)0)->first / sizeof(atomic_uint *) };

static void wake_all(struct plue_wakeups *wakeups) {
    for (size_t i = 0; i < wakeups->count; i++) {
        plue_unpark(i < WAKEUPS_WITHOUT_MEMORY ? wakeups->first[i]
                                               : wakeups->more[i - WAKEUPS_WITHOUT_MEMORY]);
    }
    wakeups->count = 0;
}

void plue_wakeups_carry_out(struct plue_wakeups *wakeups) {
    wake_all(wakeups);
    free(wakeups->more);
    wakeups->more = NULL;
    wakeups->room_for_more = 0;
}

/* Makes room for one. Without memory it wakes those that there are. */
static void make_room(struct plue_wakeups *wakeups) {
    if (wakeups->count < WAKEUPS_WITHOUT_MEMORY + wakeups->room_for_more) {
        return;
    }
    size_t room = wakeups->room_for_more == 0 ? 256 : 2 * wakeups->room_for_more;
    const atomic_uint **more = realloc(wakeups->more, room * sizeof *more);
    if (more == NULL) {
        wake_all(wakeups);
        return;
    }
    wakeups->more = more;
    wakeups->room_for_more = room;
}

static void add_wakeup(struct plue_wakeups *wakeups, const atomic_uint *word) {
    make_room(wakeups);
    if (wakeups->count < WAKEUPS_WITHOUT_MEMORY) {
        wakeups->first[wakeups->count] = word;
    } else {
        wakeups->more[wakeups->count - WAKEUPS_WITHOUT_MEMORY] = word;
    }
    wakeups->count++;
}

void plue_call_notify(struct plue_call *call, unsigned news, struct plue_wakeups *wakeups) {
    /* After this store a call that is done may be gone. */
    const atomic_uint *word = &call->news;
    if ((atomic_fetch_or(&call->news, news) & news) == 0) {
        add_wakeup(wakeups, word);
    }
}

/* ------------------------------------------------------------------------------- the table */

enum { BUCKETS = 256 };
static struct plue_call *table[BUCKETS] PLUE_GUARDED;
static uint64_t last_id PLUE_GUARDED;

static void add_to_table(struct plue_call *call) PLUE_LOCKED {
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

/* Takes the call from all who know it, and has its thread return. */
static void end(struct plue_call *call, struct plue_wakeups *wakeups) PLUE_LOCKED {
    remove_from_table(call);
    plue_abort_untie(call);
    plue_call_notify(call, PLUE_CALL_DONE, wakeups);
}

void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups) {
    call->answered = true;
    call->outcome = outcome;
    end(call, wakeups);
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
                end(call, &wakeups);
            }
        }
    }
    plue_shared_text_release(text);
    /* With the lock held, because the caller holds it; this is rare. */
    plue_wakeups_carry_out(&wakeups);
}

/* -------------------------------------------------------------------------------- metadata */

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
    plue_call_notify(call, PLUE_CALL_EVENTS, wakeups);
    return true;
}

static struct plue_event *take_events(struct plue_call *call) PLUE_UNLOCKED {
    plue_lock();
    struct plue_event *events = call->first_event;
    call->first_event = NULL;
    call->events_end = &call->first_event;
    atomic_fetch_and(&call->news, ~(unsigned)PLUE_CALL_EVENTS);
    plue_unlock();
    return events;
}

/* When the call's time is over: once it is aborted, at the end of the grace period. */
static uint64_t deadline_of(const struct plue_call *call) {
    return plue_abort_is_aborted(call->signal) ? plue_abort_time(call->signal) + call->grace_ms
                                               : PLUE_NEVER_MS;
}

static bool is_late(const struct plue_call *call) {
    uint64_t deadline = deadline_of(call);
    return deadline != PLUE_NEVER_MS && plue_now_ms() >= deadline;
}

/* Hands the events that wait to the host, and drops those whose time is over. */
static void deliver_events(struct plue_call *call,
                           const plue_tool_context_t *context) PLUE_UNLOCKED {
    struct plue_event *event = take_events(call);
    while (event != NULL) {
        struct plue_event *next = event->next;
        if (is_late(call)) {
            atomic_fetch_add(&call->dropped_events, 1);
        } else if (context->metadata_callback != NULL) {
            context->metadata_callback(event->json, context->user_data);
        }
        atomic_fetch_sub(&call->events_size, event->size);
        free(event);
        event = next;
    }
}

static void report_dropped(struct plue_call *call, const plue_tool_context_t *context) {
    uint64_t dropped = atomic_load(&call->dropped_events);
    if (dropped == 0 || context->metadata_callback == NULL) {
        return;
    }
    char json[80];
    snprintf(json, sizeof json, "{\"type\":\"dropped\",\"count\":%" PRIu64 "}", dropped);
    context->metadata_callback(json, context->user_data);
}

/* Tells of a call that failed in this library. */
static struct plue_outcome told(struct plue_outcome failure, const char *tool_name,
                                const plue_tool_context_t *context) {
    char *json = context->metadata_callback == NULL ? NULL
                                                    : plue_outcome_event(&failure, tool_name);
    if (json != NULL) {
        context->metadata_callback(json, context->user_data);
        free(json);
    }
    return failure;
}

/* ------------------------------------------------------------------------------- execution */

static struct plue_outcome invalid_argument(const char *message) {
    return plue_outcome_failure("invalid_argument", message);
}

/* Checks the texts of a call and makes its frame. NULL: with the reason in `failure`. */
static struct plue_frame *make_frame(const char *tool_name, const char *params_json,
                                     const plue_tool_context_t *context,
                                     struct plue_outcome *failure) {
    if (tool_name == NULL) {
        *failure = invalid_argument("tool_name is NULL");
        return NULL;
    }
    const char *texts[] = {tool_name, params_json, context->session_id, context->message_id};
    static const char *const faults[] = {
        "tool_name is not UTF-8",
        "params_json is not UTF-8",
        "session_id is not UTF-8",
        "message_id is not UTF-8",
    };
    if (plue_frame_strings_size(texts, 4) > PLUE_FRAME_MAX - PLUE_EXEC_OVERHEAD) {
        *failure = invalid_argument("The arguments are larger than 256 MiB");
        return NULL;
    }
    for (size_t i = 0; i < 4; i++) {
        if (texts[i] != NULL && !plue_text_is_utf8(texts[i], strlen(texts[i]))) {
            *failure = invalid_argument(faults[i]);
            return NULL;
        }
    }
    uint8_t flags = context->metadata_callback == NULL ? 0 : PLUE_EXEC_WANTS_METADATA;
    struct plue_frame *frame =
        plue_frame_of_call(flags, plue_abort_id(context->abort_signal), texts);
    if (frame == NULL) {
        *failure = plue_outcome_out_of_memory();
    }
    return frame;
}

/* Gives the call to a runtime, and takes the frame. Returns false if the call has ended before. */
static bool begin(struct plue_call *call, struct plue_frame **frame) PLUE_UNLOCKED {
    plue_lock();
    plue_abort_tie(call);
    call->events_end = &call->first_event;
    call->grace_ms = plue_settings.abort_grace_ms;
    struct plue_peer *peer = plue_runtime_ready(true, call->signal, &call->outcome);
    if (peer == NULL) {
        plue_abort_untie(call);
        plue_unlock();
        return false;
    }
    call->generation = peer->generation;
    add_to_table(call);
    plue_frame_set_id(*frame, call->id);
    plue_runtime_send_and_unlock(peer, call->signal, *frame);
    *frame = NULL;
    return true;
}

/* Ends a call whose time is over, unless it has just ended. */
static void give_up(struct plue_call *call) PLUE_UNLOCKED {
    struct plue_wakeups wakeups = {.count = 0};
    struct plue_outcome outcome = plue_outcome_failure(
        "aborted",
        "The call was aborted; its tool did not stop within the grace period and goes on");
    plue_lock();
    if (!(atomic_load(&call->news) & PLUE_CALL_DONE)) {
        plue_runtime_suspect(call->generation);
        call->outcome = outcome;
        outcome = (struct plue_outcome){NULL, NULL};
        end(call, &wakeups);
    }
    plue_unlock();
    plue_outcome_free(outcome);
}

/* Waits until the call has ended, and delivers its events meanwhile. */
static void await_end(struct plue_call *call, const plue_tool_context_t *context) PLUE_UNLOCKED {
    for (;;) {
        unsigned news = atomic_load(&call->news);
        if (news & PLUE_CALL_EVENTS) {
            deliver_events(call, context);
        } else if (news & PLUE_CALL_DONE) {
            return;
        }
        if (!(news & PLUE_CALL_DONE) && is_late(call)) {
            give_up(call);
        } else if (!(news & (PLUE_CALL_DONE | PLUE_CALL_EVENTS))) {
            plue_park(&call->news, news, deadline_of(call));
        }
    }
}

static struct plue_outcome aborted(const plue_abort_signal_t *signal) {
    const char *reason = plue_abort_reason(signal);
    return plue_outcome_failure("aborted", *reason == '\0' ? "The call was aborted" : reason);
}

/* Makes the outcome of a call that failed together with others. */
static struct plue_outcome failed(struct plue_call *call) {
    struct plue_outcome outcome = call->message == NULL
                                      ? plue_outcome_out_of_memory()
                                      : plue_outcome_failure(call->failure, call->message->bytes);
    plue_shared_text_release(call->message);
    return outcome;
}

/* Makes the call. Takes the frame. */
static struct plue_outcome run(struct plue_frame *frame, const char *tool_name,
                               const plue_tool_context_t *context) PLUE_UNLOCKED {
    struct plue_call call = {.signal = context->abort_signal};
    plue_abort_carry(call.signal);
    if (!plue_abort_is_aborted(call.signal) && begin(&call, &frame)) {
        await_end(&call, context);
    }
    plue_frame_free_all(frame);
    if (call.failure != NULL) {
        call.outcome = failed(&call);
    } else if (call.id == 0 && plue_abort_is_aborted(call.signal)) {
        plue_outcome_free(call.outcome);
        call.outcome = aborted(call.signal);
    }
    plue_abort_drop(call.signal);
    if (call.outcome.message != NULL && !call.answered) {
        told(call.outcome, tool_name, context);
    }
    report_dropped(&call, context);
    return call.outcome;
}

static struct plue_outcome forked(void) {
    return plue_outcome_failure("runtime_unavailable", plue_forked_message);
}

static struct plue_outcome execute(const char *tool_name, const char *params_json,
                                   const plue_tool_context_t *context) PLUE_UNLOCKED {
    static const plue_tool_context_t none;
    if (context == NULL) {
        context = &none;
    }
    if (plue_is_forked()) {
        return told(forked(), tool_name, context);
    }
    struct plue_outcome failure;
    struct plue_frame *frame = make_frame(tool_name, params_json, context, &failure);
    return frame == NULL ? told(failure, tool_name, context) : run(frame, tool_name, context);
}

static struct plue_outcome list(void) PLUE_UNLOCKED {
    if (plue_is_forked()) {
        return forked();
    }
    struct plue_outcome outcome = {NULL, NULL};
    plue_lock();
    struct plue_peer *peer = plue_runtime_ready(false, NULL, &outcome);
    struct plue_shared_text *tools = peer == NULL ? NULL : plue_shared_text_retain(peer->tools);
    plue_unlock();
    if (tools != NULL) {
        /* Without the lock: the list of many tools takes its time. */
        outcome.json = plue_text_copy(tools->bytes, tools->length);
        plue_shared_text_release(tools);
    }
    return outcome.json == NULL ? plue_outcome_out_of_memory() : outcome;
}

char *plue_tool_execute(const char *tool_name, const char *params_json,
                        const plue_tool_context_t *context) {
    int cancellation = plue_cancellation_off();
    char *json = plue_outcome_answer(execute(tool_name, params_json, context));
    plue_cancellation_restore(cancellation);
    return json;
}

char *plue_tool_list(void) {
    int cancellation = plue_cancellation_off();
    char *json = plue_outcome_answer(list());
    plue_cancellation_restore(cancellation);
    return json;
}
