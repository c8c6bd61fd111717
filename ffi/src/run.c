#include "run.h"

#include "abort.h"
#include "frame.h"
#include "guest.h"
#include "invocation.h"
#include "peer.h"
#include "platform.h"
#include "runtime.h"
#include "settings.h"
#include "sidecar.h"
#include "text.h"

/* The maximum number of events delivered at once, because a host's loop has other work. */
enum { MAX_EVENTS = 256 };

static struct plue_event *take_events(struct plue_call *call) PLUE_UNLOCKED {
    plue_lock();
    struct plue_event *events = call->first_event;
    struct plue_event **rest = &call->first_event;
    for (int i = 0; i < MAX_EVENTS && *rest != NULL; i++) {
        rest = &(*rest)->next;
    }
    call->first_event = *rest;
    *rest = NULL;
    if (call->first_event == NULL) {
        call->events_end = &call->first_event;
        atomic_fetch_and(&call->news, ~(unsigned)PLUE_CALL_EVENTS);
    }
    plue_unlock();
    return events;
}

/* The time limit of the call or, after an abort, the end of the grace period if that is earlier. */
uint64_t plue_call_deadline(const struct plue_call *call) {
    uint64_t limit = call->timeout_at_ms;
    if (!plue_abort_is_aborted(call->signal)) {
        return limit;
    }
    uint64_t grace = plue_abort_time(call->signal) + call->grace_ms;
    return limit == PLUE_NEVER_MS || grace < limit ? grace : limit;
}

static bool is_late(const struct plue_call *call) {
    uint64_t deadline = plue_call_deadline(call);
    return deadline != PLUE_NEVER_MS && plue_now_ms() >= deadline;
}

/* Delivers the waiting events. Drops them when the call's time is over. */
static void deliver_events(struct plue_call *call,
                           const plue_tool_context_t *context) PLUE_UNLOCKED {
    struct plue_event *event = take_events(call);
    while (event != NULL) {
        struct plue_event *next = event->next;
        if (is_late(call)) {
            atomic_fetch_add(&call->dropped_events, 1);
        } else if (context->metadata_callback != NULL) {
            context->metadata_callback(event->json, context->user_data);
            call->told++;
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
    call->told++;
}

/* Reports a call that failed in this library to the metadata callback of the call. */
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

static struct plue_outcome bad_argument(const char *name, const char *fault) {
    return plue_outcome_failure_of("invalid_argument", "%s is %s", name, fault);
}

const char *plue_request_tool(const struct plue_request *request) {
    bool has_tool =
        request->operation == PLUE_CALL_TOOL || request->operation == PLUE_START_TASK;
    return has_tool ? request->name : NULL;
}

struct plue_frame *plue_call_frame(const struct plue_request *request,
                                   const plue_tool_context_t *context,
                                   struct plue_outcome *failure) {
    static const char *const names[] = {"tool_name", "ticket",  "tool_name",
                                        "task_id",   "task_id", "task_id"};
    static const char *const jsons[] = {"params_json",  "answers_json", "params_json",
                                        "answers_json", "answers_json", "answers_json"};
    if (request->name == NULL) {
        *failure = bad_argument(names[request->operation], "NULL");
        return NULL;
    }
    const char *texts[] = {request->name, request->json, context->session_id, context->message_id};
    const char *const fields[] = {names[request->operation], jsons[request->operation],
                                  "session_id", "message_id"};
    if (plue_frame_strings_size(texts, 4) > PLUE_FRAME_MAX - PLUE_EXEC_OVERHEAD) {
        *failure =
            plue_outcome_failure("invalid_argument", "The arguments are larger than 256 MiB");
        return NULL;
    }
    for (size_t i = 0; i < 4; i++) {
        if (texts[i] != NULL && !plue_text_is_utf8(texts[i], strlen(texts[i]))) {
            *failure = bad_argument(fields[i], "not UTF-8");
            return NULL;
        }
    }
    uint8_t flags = context->metadata_callback == NULL ? 0 : PLUE_EXEC_WANTS_METADATA;
    flags |= (uint8_t)(request->operation << PLUE_EXEC_OPERATION_SHIFT);
    flags |= plue_questions_are_answered() ? PLUE_EXEC_ANSWERS_QUESTIONS : 0;
    const uint64_t signal = plue_abort_id(context->abort_signal);
    struct plue_frame *frame = plue_frame_of(PLUE_FRAME_EXEC, flags, 0, &signal, 1, texts, 4);
    if (frame == NULL) {
        *failure = plue_outcome_out_of_memory();
    }
    return frame;
}

static struct plue_outcome too_many_bytes(size_t size) PLUE_LOCKED {
    size_t limit = plue_settings.max_bytes_in_flight;
    if (size > limit) {
        return plue_outcome_failure_of("invalid_argument",
                                       "The arguments have %zu bytes; max_bytes_in_flight is %zu",
                                       size, limit);
    }
    return plue_outcome_failure_of(
        "overloaded",
        "The arguments have %zu bytes, the arguments of running calls %zu; max_bytes_in_flight is "
        "%zu: call again when a call has ended",
        size, plue_calls_size(), limit);
}

bool plue_call_open(struct plue_call *call, const struct plue_frame *frame) {
    size_t limit = plue_settings.max_bytes_in_flight;
    if (frame->length > limit || plue_calls_size() > limit - frame->length) {
        call->outcome = too_many_bytes(frame->length);
        return false;
    }
    plue_call_tie(call, frame->length);
    call->grace_ms = plue_settings.abort_grace_ms;
    call->timeout_ms = plue_settings.call_timeout_ms;
    return true;
}

void plue_call_begin_and_unlock(struct plue_call *call, struct plue_peer *peer,
                                struct plue_frame *frame) {
    call->generation = peer->generation;
    if (call->timeout_ms > 0) {
        call->timeout_at_ms = plue_now_ms() + call->timeout_ms;
    }
    plue_call_add(call);
    plue_frame_set_id(frame, call->id);
    call->sidecar = plue_sidecar_hold(peer->generation);
    plue_runtime_send_and_unlock(call->sidecar, call->signal, frame);
}

/* Passes the call with its frame to a runtime. Returns false if the call ended before that. */
static bool begin(struct plue_call *call, struct plue_frame **frame) PLUE_UNLOCKED {
    plue_lock();
    if (!plue_call_open(call, *frame)) {
        plue_unlock();
        return false;
    }
    struct plue_peer *peer = plue_runtime_ready(PLUE_WAITS_FOR_TOOL, call->signal, &call->outcome);
    if (peer == NULL) {
        plue_call_close(call);
        plue_unlock();
        return false;
    }
    struct plue_frame *given = *frame;
    *frame = NULL;
    plue_call_begin_and_unlock(call, peer, given);
    return true;
}

static struct plue_outcome aborted(const plue_abort_signal_t *signal) {
    const char *reason = plue_abort_reason(signal);
    return plue_outcome_failure("aborted", *reason == '\0' ? "The call was aborted" : reason);
}

static struct plue_outcome too_late(const struct plue_call *call, bool has_begun) {
    if (plue_abort_is_aborted(call->signal) && !has_begun) {
        return aborted(call->signal);
    }
    if (plue_abort_is_aborted(call->signal)) {
        return plue_outcome_failure("aborted", "The call was aborted; its tool did not stop within "
                                               "the grace period and still runs");
    }
    return plue_outcome_failure_of("timeout", "The call took longer than %u ms (call_timeout_ms)",
                                   (unsigned)call->timeout_ms);
}

/* Removes the unsent frame of a call from the queue: the frame would use memory, and the tool would
 * run although the call has ended. Returns NULL if the frame has been sent. */
static struct plue_frame *withdraw(struct plue_call *call) PLUE_UNLOCKED {
    if (call->sidecar != NULL) {
        return plue_sidecar_withdraw(call->sidecar, call->id);
    }
    plue_lock();
    struct plue_frame *frame = plue_guest_withdraw(call->id);
    plue_unlock();
    return frame;
}

/* Ends a call that has reached its deadline, unless it has just ended. */
static void give_up(struct plue_call *call) PLUE_UNLOCKED {
    struct plue_frame *unsent = withdraw(call);
    struct plue_outcome outcome = too_late(call, unsent == NULL);
    struct plue_frame *abort = NULL; /* not needed if the signal's ABORT was sent */
    if (unsent == NULL && !plue_abort_is_aborted(call->signal)) {
        abort = plue_frame_new(PLUE_FRAME_ABORT, 0, call->id, outcome.message,
                               strlen(outcome.message));
    }
    plue_lock();
    bool is_running = !(atomic_load(&call->news) & PLUE_CALL_DONE);
    if (is_running) {
        call->outcome = outcome;
        plue_call_forget(call);
        atomic_fetch_or(&call->news, PLUE_CALL_DONE);
        plue_sidecar_suspect(call->generation);
    }
    if (is_running && abort != NULL && call->sidecar == NULL) {
        plue_guest_enqueue(abort);
        abort = NULL;
    }
    plue_unlock();
    if (is_running && abort != NULL) {
        plue_sidecar_send(call->sidecar, abort);
        abort = NULL;
    }
    plue_frame_free_all(abort);
    plue_frame_free_all(unsent);
    if (!is_running) {
        plue_outcome_free(outcome);
    }
}

/* Sets the state of the thread. Returns false if `news` has changed since `known` was read. */
static bool begin_to(struct plue_call *call, unsigned known, unsigned does) {
    return atomic_compare_exchange_strong(&call->news, &known, known | does);
}

static void stop_to(struct plue_call *call, unsigned does) {
    atomic_fetch_and(&call->news, ~does);
}

/* Waits until `news` differs from `known`. Reads the sidecar's socket meanwhile, if no other thread
 * does. */
static void await_news(struct plue_call *call, unsigned known) PLUE_UNLOCKED {
    uint64_t deadline = plue_call_deadline(call);
    unsigned waits = PLUE_CALL_WAITS;
    if (call->sidecar != NULL) {
        unsigned leads = PLUE_CALL_LEADS;
        bool has_led = begin_to(call, known, leads) &&
                       plue_sidecar_lead(call->sidecar, &call->news, known | leads, deadline);
        stop_to(call, leads);
        if (has_led) {
            return;
        }
        waits |= leads;
    }
    if (begin_to(call, known, waits)) {
        /* The reading thread may have stopped before this one was marked as waiting. */
        if (call->sidecar == NULL ||
            !plue_sidecar_lead(call->sidecar, &call->news, known | waits, deadline)) {
            plue_park(&call->news, known | waits, deadline);
        }
        stop_to(call, waits | PLUE_CALL_LEAD);
    }
}

bool plue_call_attend(struct plue_call *call, const plue_tool_context_t *context) {
    unsigned news = atomic_load(&call->news);
    plue_order_acquire(&call->news);
    if (news & PLUE_CALL_EVENTS) {
        deliver_events(call, context);
    }
    if (news & PLUE_CALL_INVOKED) { /* even while further events arrive */
        plue_invocations_run(call);
    }
    bool has_ended = news & PLUE_CALL_DONE;
    bool has_begun = call->id != 0;
    if (has_begun && !has_ended && is_late(call)) {
        give_up(call);
        return true;
    }
    return news & (PLUE_CALL_EVENTS | PLUE_CALL_INVOKED);
}

/* Waits until the call has ended, and delivers its events meanwhile. */
static void await_end(struct plue_call *call, const plue_tool_context_t *context) PLUE_UNLOCKED {
    for (;;) {
        unsigned news = atomic_load(&call->news);
        if (!plue_call_attend(call, context)) {
            if (news & PLUE_CALL_DONE) {
                return;
            }
            await_news(call, news);
        }
    }
}

/* Makes the outcome of a call that ended with a code and a shared message. */
static struct plue_outcome failed(struct plue_call *call) {
    struct plue_outcome outcome = call->message == NULL
                                      ? plue_outcome_out_of_memory()
                                      : plue_outcome_failure(call->failure, call->message->bytes);
    plue_shared_text_release(call->message);
    return outcome;
}

struct plue_outcome plue_call_conclude(struct plue_call *call, const char *tool_name,
                                       const plue_tool_context_t *context) {
    if (call->sidecar != NULL) {
        plue_sidecar_unhold(call->sidecar);
    }
    if (call->failure != NULL) {
        call->outcome = failed(call);
    } else if (call->id == 0 && plue_abort_is_aborted(call->signal)) {
        plue_outcome_free(call->outcome);
        call->outcome = aborted(call->signal);
    }
    plue_abort_drop(call->signal);
    if (call->outcome.message != NULL && !call->answered) {
        told(call->outcome, tool_name, context);
        call->told += context->metadata_callback != NULL;
    }
    report_dropped(call, context);
    return call->outcome;
}

/* Makes a call, and waits for its end. Takes ownership of the frame. */
static struct plue_outcome run(struct plue_frame *frame, const char *tool_name,
                               const plue_tool_context_t *context) PLUE_UNLOCKED {
    struct plue_call call = {.signal = context->abort_signal};
    plue_abort_carry(call.signal);
    if (!plue_abort_is_aborted(call.signal) && begin(&call, &frame)) {
        await_end(&call, context);
    }
    plue_frame_free_all(frame);
    return plue_call_conclude(&call, tool_name, context);
}

struct plue_outcome plue_run_frame(struct plue_frame *frame) {
    static const plue_tool_context_t none;
    return run(frame, NULL, &none);
}

static struct plue_outcome execute(const struct plue_request *request,
                                   const plue_tool_context_t *context) PLUE_UNLOCKED {
    static const plue_tool_context_t none;
    if (context == NULL) {
        context = &none;
    }
    const char *tool_name = plue_request_tool(request);
    if (plue_is_forked()) {
        return told(plue_forked_failure(), tool_name, context);
    }
    struct plue_outcome failure;
    struct plue_frame *frame = plue_call_frame(request, context, &failure);
    return frame == NULL ? told(failure, tool_name, context) : run(frame, tool_name, context);
}

static struct plue_outcome list(void) PLUE_UNLOCKED {
    if (plue_is_forked()) {
        return plue_forked_failure();
    }
    struct plue_outcome outcome = {.json = NULL};
    plue_lock();
    struct plue_peer *peer = plue_runtime_ready(PLUE_WAITS_FOR_START, NULL, &outcome);
    struct plue_shared_text *tools = peer == NULL ? NULL : plue_shared_text_retain(peer->tools);
    plue_unlock();
    if (tools != NULL) {
        /* The list may be long, so it is copied without the lock. */
        outcome.json = plue_text_copy(tools->bytes, tools->length);
        plue_shared_text_release(tools);
    }
    return outcome.json == NULL ? plue_outcome_out_of_memory() : outcome;
}

char *plue_tool_execute(const char *tool_name, const char *params_json,
                        const plue_tool_context_t *context) {
    PLUE_WITHOUT_CANCELLATION;
    const struct plue_request request = {.name = tool_name, .json = params_json};
    return plue_outcome_answer(execute(&request, context));
}

static int call(const struct plue_request *request, const plue_tool_context_t *context,
                char **json) {
    PLUE_WITHOUT_CANCELLATION;
    struct plue_outcome outcome = execute(request, context);
    if (json == NULL) {
        return plue_outcome_status(outcome);
    }
    *json = plue_outcome_answer(outcome);
    return outcome.status;
}

int plue_tool_call(const char *tool_name, const char *params_json,
                   const plue_tool_context_t *context, char **json) {
    const struct plue_request request = {.name = tool_name, .json = params_json};
    return call(&request, context, json);
}

int plue_tool_resume(const char *ticket, const char *answers_json,
                     const plue_tool_context_t *context, char **json) {
    const struct plue_request request = {PLUE_RESUME_CALL, ticket, answers_json};
    return call(&request, context, json);
}

int plue_tool_start(const char *tool_name, const char *params_json,
                    const plue_tool_context_t *context, char **task_json) {
    const struct plue_request request = {PLUE_START_TASK, tool_name, params_json};
    return call(&request, context, task_json);
}

int plue_tool_poll(const char *task_id, char **task_json) {
    const struct plue_request request = {PLUE_POLL_TASK, task_id, NULL};
    return call(&request, NULL, task_json);
}

int plue_tool_cancel(const char *task_id, char **task_json) {
    const struct plue_request request = {PLUE_CANCEL_TASK, task_id, NULL};
    return call(&request, NULL, task_json);
}

int plue_tool_answer(const char *task_id, const char *answers_json,
                     const plue_tool_context_t *context, char **task_json) {
    const struct plue_request request = {PLUE_ANSWER_TASK, task_id, answers_json};
    return call(&request, context, task_json);
}

char *plue_tool_list(void) {
    PLUE_WITHOUT_CANCELLATION;
    return plue_outcome_answer(list());
}
