#include "call.h"

#include "abort.h"
#include "cancellation.h"
#include "frame.h"
#include "platform.h"
#include "runtime.h"
#include "settings.h"
#include "state.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EVENTS_SIZE = 16 << 20 };

/* ------------------------------------------------------------------------------- the table */

enum { BUCKETS = 256 };
static struct plue_call *table[BUCKETS];
static uint64_t last_id;

static void add_to_table(struct plue_call *call) {
    call->id = ++last_id;
    call->next_in_table = table[call->id % BUCKETS];
    table[call->id % BUCKETS] = call;
}

static void remove_from_table(struct plue_call *call) {
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

void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups) {
    call->done = true;
    call->outcome = outcome;
    plue_wakeups_add(wakeups, call->waiter);
}

void plue_calls_fail(uint64_t generation, const char *code, const char *message) {
    struct plue_wakeups wakeups = {0};
    for (int i = 0; i < BUCKETS; i++) {
        for (struct plue_call *call = table[i]; call != NULL; call = call->next_in_table) {
            if (call->generation == generation && !call->done) {
                plue_call_finish(call, plue_outcome_failure(code, message), &wakeups);
            }
        }
    }
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
    if (event == NULL || event->size > MAX_EVENTS_SIZE - call->events_size) {
        call->dropped_events++;
        return false;
    }
    *call->events_end = event;
    call->events_end = &event->next;
    call->events_size += event->size;
    plue_wakeups_add(wakeups, call->waiter);
    return true;
}

/* Hands the first waiting event to the host. The lock is given up in between. */
static void deliver_event(struct plue_call *call, const plue_tool_context_t *context) {
    struct plue_event *event = call->first_event;
    size_t size = event->size;
    call->first_event = event->next;
    if (call->first_event == NULL) {
        call->events_end = &call->first_event;
    }
    pthread_mutex_unlock(&plue_lock);
    if (context->metadata_callback != NULL) {
        context->metadata_callback(event->json, context->user_data);
    }
    free(event);
    pthread_mutex_lock(&plue_lock);
    call->events_size -= size;
}

/* Frees and counts what waits although the call is over. Without the lock, because it can be much,
 * and nobody knows the call any more. */
static void drop_events(struct plue_call *call) {
    while (call->first_event != NULL) {
        struct plue_event *event = call->first_event;
        call->first_event = event->next;
        call->dropped_events++;
        free(event);
    }
}

static void report_dropped(const struct plue_call *call, const plue_tool_context_t *context) {
    if (call->dropped_events == 0 || context->metadata_callback == NULL) {
        return;
    }
    char json[80];
    snprintf(json, sizeof json, "{\"type\":\"dropped\",\"count\":%" PRIu64 "}",
             call->dropped_events);
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
    if (plue_frame_strings_size(texts, 4) > PLUE_FRAME_MAX) {
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
    struct plue_frame *frame = plue_frame_of_strings(PLUE_FRAME_EXEC, flags, 0, texts, 4);
    if (frame == NULL) {
        *failure = plue_outcome_out_of_memory();
    }
    return frame;
}

/* Finds a runtime and sends the call to it: takes the frame. Returns false when the call has ended
 * without. plue_lock is held. */
static bool begin(struct plue_call *call, struct plue_frame *frame) {
    struct plue_outcome failure = {NULL, NULL};
    struct plue_peer *peer = plue_runtime_ready(true, &call->aborted, &failure);
    if (peer == NULL) {
        call->outcome = call->aborted ? plue_abort_outcome(call) : failure;
        return false;
    }
    call->generation = peer->generation;
    add_to_table(call);
    plue_frame_set_id(frame, call->id);
    plue_runtime_send(peer, call, frame);
    return true;
}

/* Waits until the call has ended, and delivers its events meanwhile. A call that is aborted lasts
 * until its deadline at most, however many events there are. plue_lock is held. */
static void await_end(struct plue_call *call, const plue_tool_context_t *context) {
    for (;;) {
        bool is_late = call->aborted && plue_now_ms() >= call->abort_deadline_ms;
        if (is_late && !call->done) {
            plue_runtime_suspect(call);
            call->done = true;
            call->outcome = plue_outcome_failure(
                "aborted",
                "The call was aborted; its tool did not stop within the grace period and goes on");
        }
        if (call->done && (is_late || call->first_event == NULL)) {
            return;
        }
        if (call->first_event != NULL) {
            deliver_event(call, context);
        } else if (call->aborted) {
            plue_condition_wait_until(&call->waiter->changed, &plue_lock, call->abort_deadline_ms);
        } else {
            pthread_cond_wait(&call->waiter->changed, &plue_lock);
        }
    }
}

/* Makes the call. Takes the frame. */
static struct plue_outcome run(struct plue_frame *frame, const char *tool_name,
                               const plue_tool_context_t *context) {
    struct plue_call call;
    memset(&call, 0, sizeof call);
    call.events_end = &call.first_event;
    pthread_mutex_lock(&plue_lock);
    if (context->abort_signal != NULL) {
        if (!plue_abort_is_signal(context->abort_signal)) {
            pthread_mutex_unlock(&plue_lock);
            plue_frame_free_all(frame);
            return told(invalid_argument("abort_signal is not a plue_abort_signal_t"), tool_name,
                        context);
        }
        plue_abort_tie(context->abort_signal, &call);
    }
    struct plue_frame *unsent = frame; /* large, maybe, so not freed while the lock is held */
    call.waiter = plue_waiter_take();
    if (call.waiter == NULL) {
        call.outcome = plue_outcome_out_of_memory();
    } else {
        if (begin(&call, frame)) {
            unsent = NULL;
            await_end(&call, context);
            remove_from_table(&call);
        }
        plue_waiter_give_back(call.waiter);
    }
    plue_abort_untie(&call);
    pthread_mutex_unlock(&plue_lock);
    plue_frame_free_all(unsent);
    drop_events(&call);
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
                                   const plue_tool_context_t *context) {
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

static struct plue_outcome list(void) {
    if (plue_is_forked()) {
        return forked();
    }
    static const bool never = false;
    struct plue_outcome outcome = {NULL, NULL};
    pthread_mutex_lock(&plue_lock);
    struct plue_peer *peer = plue_runtime_ready(false, &never, &outcome);
    struct plue_shared_text *tools = peer == NULL ? NULL : plue_shared_text_retain(peer->tools);
    pthread_mutex_unlock(&plue_lock);
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
