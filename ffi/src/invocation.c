#include "invocation.h"

#include "abort.h"
#include "events.h"
#include "platform.h"
#include "plue.h"
#include "settings.h"
#include "text.h"

struct plue_host_tool {
    struct plue_host_tool *next PLUE_GUARDED;
    uint64_t number;
    /* Counts the list, the registering thread, each invocation, and each running `execute`. */
    size_t references PLUE_GUARDED;
    plue_execute_t execute;
    void (*destroy)(void *user_data);
    void *user_data;
    char *id; /* the id that the tools side returned; NULL before; written with the lock held */
    size_t length;
    char definition[];
};

struct plue_invocation {
    struct plue_due due;
    struct plue_invocation *next PLUE_GUARDED; /* in the list of running invocations */
    struct plue_invocation **previous PLUE_GUARDED;
    struct plue_invocation *next_of_call; /* in the call's list, or in the part taken from it */
    uint64_t id;
    uint64_t generation;
    struct plue_host_tool *tool;
    plue_abort_signal_t *signal;
    struct plue_backlog *backlog; /* counts the unsent streamed bytes */
    char *strings[3];             /* params, session id, message id */
    size_t size;                  /* with the strings */
    atomic_bool is_answered;      /* a result or a failure was sent */
    bool has_begun PLUE_GUARDED;
    bool abort_told PLUE_GUARDED;
    void (*on_abort)(plue_invocation_t *invocation, void *user_data) PLUE_GUARDED;
    void *abort_user_data PLUE_GUARDED;
};

static struct plue_host_tool *host_tools PLUE_GUARDED;
/* The generation of the peer that has received the list of tools. */
static uint64_t offered_to PLUE_GUARDED;

/* The function that answers questions. Its number is 0. NULL if there is none. */
static struct plue_host_tool *asker PLUE_GUARDED;
static atomic_bool has_asker;

static uint64_t last_number PLUE_GUARDED;
/* The running invocations, by the last bits of their numbers. */
enum { RUNNING_LISTS = 256 };
static struct plue_invocation *running[RUNNING_LISTS] PLUE_GUARDED;

/* The total size of the invocations that have not begun, in bytes. */
static size_t waiting_size PLUE_GUARDED;

/* Releases a reference. Returns the tool if that was the last one: the caller destroys it without
 * the lock. */
static struct plue_host_tool *release_tool(struct plue_host_tool *tool) PLUE_LOCKED {
    return --tool->references == 0 ? tool : NULL;
}

static void destroy_tool(struct plue_host_tool *tool) PLUE_UNLOCKED {
    if (tool == NULL) {
        return;
    }
    if (tool->destroy != NULL) {
        tool->destroy(tool->user_data);
    }
    free(tool->id);
    free(tool);
}

static struct plue_host_tool *find_tool(uint64_t number) PLUE_LOCKED {
    struct plue_host_tool *tool = number == 0 ? asker : host_tools;
    while (tool != NULL && tool->number != number) {
        tool = tool->next;
    }
    return tool;
}

/* Removes the tool from the list. Returns false if another thread has removed it. */
static bool remove_tool(const struct plue_host_tool *tool) PLUE_LOCKED {
    for (struct plue_host_tool **at = &host_tools; *at != NULL; at = &(*at)->next) {
        if (*at == tool) {
            *at = tool->next;
            return true;
        }
    }
    return false;
}

static struct plue_frame *register_frame(const struct plue_host_tool *tool, uint8_t flags) {
    const char *strings[] = {tool->definition};
    return plue_frame_of(PLUE_FRAME_REGISTER, flags, 0, &tool->number, 1, strings, 1);
}

struct plue_frame *plue_host_tools_frames(uint64_t generation) {
    struct plue_frame *first = NULL;
    offered_to = generation;
    struct plue_frame **end = &first;
    for (struct plue_host_tool *tool = host_tools; tool != NULL; tool = tool->next) {
        *end = register_frame(tool, 0);
        if (*end == NULL) {
            break; /* out of memory: the tool is missing on this peer */
        }
        end = &(*end)->next;
    }
    return first;
}

/* Releases a reference, and destroys the tool if that was the last one. */
static void drop_tool(struct plue_host_tool *tool) PLUE_UNLOCKED {
    plue_lock();
    struct plue_host_tool *last = release_tool(tool);
    plue_unlock();
    destroy_tool(last);
}

struct plue_host_tool *plue_host_tools_take(void) {
    struct plue_host_tool *taken = host_tools;
    host_tools = NULL;
    return taken;
}

void plue_host_tools_destroy(struct plue_host_tool *taken) {
    while (taken != NULL) {
        plue_lock();
        struct plue_host_tool *next = taken->next;
        plue_unlock();
        drop_tool(taken);
        taken = next;
    }
}

static struct plue_outcome invalid_tool(const char *message) {
    return plue_outcome_failure("invalid_argument", message);
}

/* Returns NULL on failure, and writes the reason to `failure`. */
static struct plue_host_tool *make_tool(const char *definition, plue_execute_t execute,
                                        struct plue_outcome *failure) {
    size_t length = definition == NULL ? 0 : strlen(definition);
    if (plue_is_forked()) {
        *failure = plue_forked_failure();
    } else if (definition == NULL || execute == NULL) {
        *failure = invalid_tool(execute == NULL ? "execute is NULL" : "definition_json is NULL");
    } else if (!plue_text_is_utf8(definition, length)) {
        *failure = invalid_tool("definition_json is not UTF-8");
    } else if (length > PLUE_FRAME_MAX - 2 * PLUE_EXEC_OVERHEAD) {
        *failure = invalid_tool("definition_json is larger than 256 MiB");
    } else {
        struct plue_host_tool *tool = calloc(1, sizeof *tool + length + 1);
        if (tool != NULL) {
            memcpy(tool->definition, definition, length);
            tool->length = length;
            tool->execute = execute;
            return tool;
        }
        *failure = plue_outcome_out_of_memory();
    }
    return NULL;
}

static void append_tool(struct plue_host_tool *tool) PLUE_LOCKED {
    struct plue_host_tool **end = &host_tools;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    tool->next = NULL;
    *end = tool;
}

/* The caller keeps a reference. */
static void add_tool(struct plue_host_tool *tool) PLUE_UNLOCKED {
    plue_lock();
    tool->number = ++last_number;
    tool->references = 2;
    append_tool(tool);
    plue_unlock();
}

static struct plue_outcome answer_to(struct plue_frame *frame) PLUE_UNLOCKED {
    return frame == NULL ? plue_outcome_out_of_memory() : plue_above.run(frame);
}

static struct plue_frame *unregister_frame(const struct plue_host_tool *tool) {
    return plue_frame_of(PLUE_FRAME_UNREGISTER, 0, 0, &tool->number, 1, NULL, 0);
}

/* Removes the tool of a failed registration from the tools side, which may have it: a sidecar that
 * started after a crash has received the list with it, and a slow one may register it later. */
static void withdraw_tool(const struct plue_host_tool *tool) PLUE_UNLOCKED {
    struct plue_frame *frame = unregister_frame(tool);
    plue_lock();
    uint64_t generation = offered_to;
    plue_unlock();
    if (frame != NULL) {
        plue_above.send(generation, frame);
    }
}

/* Stores the tool's id. `json` is the id as a JSON string without escapes, so only the quotes are
 * removed. Returns false if a shutdown has removed the tool from the list. */
static bool note_id(struct plue_host_tool *tool, const char *json) PLUE_UNLOCKED {
    size_t length = strlen(json);
    plue_lock();
    tool->id = length < 2 ? NULL : plue_text_copy(json + 1, length - 2);
    bool is_listed = find_tool(tool->number) == tool;
    plue_unlock();
    return is_listed;
}

static struct plue_outcome register_tool(struct plue_host_tool *tool) PLUE_UNLOCKED {
    add_tool(tool);
    struct plue_outcome outcome = answer_to(register_frame(tool, PLUE_REGISTER_WANTS_ANSWER));
    if (outcome.status == PLUE_OK && !note_id(tool, outcome.json)) {
        plue_outcome_free(outcome);
        outcome = plue_outcome_failure("shutdown", "plue_shutdown() was called");
    }
    if (outcome.status != PLUE_OK) {
        plue_lock();
        bool was_listed = remove_tool(tool);
        plue_unlock();
        withdraw_tool(tool);
        if (was_listed) {
            drop_tool(tool);
        }
    }
    drop_tool(tool);
    return outcome;
}

int plue_register_tool(const char *definition_json, plue_execute_t execute,
                       void (*destroy_user_data)(void *user_data), void *user_data) {
    PLUE_WITHOUT_CANCELLATION;
    struct plue_outcome outcome = {.status = PLUE_OK};
    struct plue_host_tool *tool = make_tool(definition_json, execute, &outcome);
    if (tool == NULL) {
        if (destroy_user_data != NULL) {
            destroy_user_data(user_data);
        }
    } else {
        tool->destroy = destroy_user_data;
        tool->user_data = user_data;
        outcome = register_tool(tool);
    }
    return plue_outcome_status(outcome);
}

static struct plue_outcome unregister_tool(const char *tool_id) PLUE_UNLOCKED {
    if (plue_is_forked()) {
        return plue_forked_failure();
    }
    plue_lock();
    struct plue_host_tool *tool = host_tools;
    while (tool != NULL &&
           (tool->id == NULL || tool_id == NULL || strcmp(tool->id, tool_id) != 0)) {
        tool = tool->next;
    }
    if (tool != NULL) {
        remove_tool(tool);
    }
    plue_unlock();
    if (tool == NULL) {
        return plue_outcome_failure("unknown_tool", "This program has registered no such tool");
    }
    struct plue_outcome outcome = answer_to(unregister_frame(tool));
    if (outcome.status == PLUE_OVERLOADED || outcome.status == PLUE_WOULD_DEADLOCK ||
        outcome.status == PLUE_OUT_OF_MEMORY) {
        /* The request was not sent, so the tools side still has the tool. */
        plue_lock();
        append_tool(tool);
        plue_unlock();
        return outcome;
    }
    drop_tool(tool);
    return outcome;
}

int plue_unregister_tool(const char *tool_id) {
    PLUE_WITHOUT_CANCELLATION;
    return plue_outcome_status(unregister_tool(tool_id));
}

bool plue_questions_are_answered(void) {
    return atomic_load(&has_asker);
}

int plue_set_question(plue_execute_t ask, void (*destroy_user_data)(void *user_data),
                      void *user_data) {
    struct plue_outcome outcome = {.status = PLUE_OK};
    struct plue_host_tool *fresh = NULL;
    if (plue_is_forked()) {
        outcome = plue_forked_failure();
    } else if (ask != NULL) {
        fresh = make_tool("", ask, &outcome);
    }
    struct plue_host_tool *last = NULL;
    plue_lock();
    if (outcome.status == PLUE_OK) {
        last = asker == NULL ? NULL : release_tool(asker);
        asker = fresh;
        atomic_store(&has_asker, fresh != NULL);
    }
    if (fresh != NULL) {
        fresh->references = 1;
        fresh->destroy = destroy_user_data;
        fresh->user_data = user_data;
    }
    plue_unlock();
    destroy_tool(last);
    if (fresh == NULL && destroy_user_data != NULL) {
        destroy_user_data(user_data);
    }
    return plue_outcome_status(outcome);
}

static bool is_invocation_aborted(const struct plue_invocation *invocation) {
    return plue_abort_is_aborted(invocation->signal);
}

static struct plue_invocation *invocation_of(struct plue_due *due) {
    return (struct plue_invocation *)(void *)((char *)due - offsetof(struct plue_invocation, due));
}

static void free_invocation(struct plue_due *due) {
    struct plue_invocation *invocation = invocation_of(due);
    plue_abort_signal_release(invocation->signal);
    plue_backlog_release(invocation->backlog);
    for (int i = 0; i < 3; i++) {
        free(invocation->strings[i]);
    }
    free(invocation);
}

/* The maximum number of bytes that one invocation, or all rejections together, may have in the
 * queue. A single frame may be larger. */
enum { MAX_BACKLOG = 16 << 20 };

/* The kinds of YIELD frames. */
enum { YIELD_RESULT, YIELD_FAILURE, YIELD_METADATA, YIELD_OUTPUT, YIELD_PROGRESS };

/* Returns NULL if the text is too large for a frame, or out of memory. */
static struct plue_frame *yield_frame(const struct plue_invocation *invocation, uint8_t kind,
                                      uint64_t first, uint64_t second, const char *text) {
    char *repaired = NULL;
    if (!plue_text_is_utf8(text, strlen(text))) {
        repaired = plue_text_repair(text, strlen(text));
        text = repaired == NULL ? "" : repaired;
    }
    const char *strings[] = {text};
    const uint64_t numbers[] = {first, second};
    struct plue_frame *frame = NULL;
    if (strlen(text) <= PLUE_FRAME_MAX - 2 * PLUE_EXEC_OVERHEAD) {
        frame = plue_frame_of(PLUE_FRAME_YIELD, kind, invocation->id, numbers, 2, strings, 1);
    }
    free(repaired);
    return frame;
}

/* Sends a result or a failure. Returns false if the text is too large for a frame. */
static bool send_answer(const struct plue_invocation *invocation, uint8_t kind, int status,
                        const char *text) PLUE_UNLOCKED {
    struct plue_frame *frame = yield_frame(invocation, kind, (uint64_t)status, 0, text);
    if (frame != NULL) {
        plue_above.send(invocation->generation, frame);
    }
    return frame != NULL;
}

static void link_invocation(struct plue_invocation *invocation) PLUE_LOCKED {
    struct plue_invocation **first = &running[invocation->id % RUNNING_LISTS];
    invocation->next = *first;
    invocation->previous = first;
    if (*first != NULL) {
        (*first)->previous = &invocation->next;
    }
    *first = invocation;
}

/* Ends an invocation. Frees it unless a thread is reporting it. */
static void end_invocation(struct plue_invocation *invocation) PLUE_UNLOCKED {
    plue_lock();
    *invocation->previous = invocation->next;
    if (invocation->next != NULL) {
        invocation->next->previous = invocation->previous;
    }
    struct plue_host_tool *last = release_tool(invocation->tool);
    bool is_free = plue_events_end(&invocation->due);
    plue_unlock();
    destroy_tool(last);
    if (is_free) {
        free_invocation(&invocation->due);
    }
}

enum step { RUN, REFUSE, TELL_ABORT, NOTHING };

static enum step next_step(struct plue_invocation *invocation) PLUE_LOCKED {
    if (invocation->due.is_over) {
        return NOTHING;
    }
    if (!invocation->has_begun) {
        invocation->has_begun = true;
        waiting_size -= invocation->size;
        if (is_invocation_aborted(invocation)) {
            return REFUSE;
        }
        /* `execute` may use its user_data after it has ended the invocation. */
        invocation->tool->references++;
        return RUN;
    }
    if (is_invocation_aborted(invocation) && invocation->on_abort != NULL &&
        !invocation->abort_told) {
        invocation->abort_told = true;
        return TELL_ABORT;
    }
    return NOTHING;
}

/* Calls the host's function, on a thread that dispatches events or that called the tool. */
static void tell_invocation(struct plue_due *due, int *told) PLUE_UNLOCKED {
    struct plue_invocation *invocation = invocation_of(due);
    plue_lock();
    enum step step = next_step(invocation);
    void (*on_abort)(plue_invocation_t *, void *) = invocation->on_abort;
    void *user_data = invocation->abort_user_data;
    plue_unlock();
    if (step == RUN) {
        struct plue_host_tool *tool = invocation->tool;
        tool->execute(invocation, invocation->strings[0], tool->user_data);
        drop_tool(tool);
        ++*told;
    } else if (step == REFUSE) {
        plue_invocation_fail(invocation, PLUE_ABORTED, "The call was aborted before it began");
    } else if (step == TELL_ABORT) {
        on_abort(invocation, user_data);
        ++*told;
    }
}

void plue_invocations_run(struct plue_call *call) {
    plue_lock();
    struct plue_invocation *last_first = call->invocations;
    call->invocations = NULL;
    atomic_fetch_and(&call->news, ~(unsigned)PLUE_CALL_INVOKED);
    struct plue_invocation *invocation = NULL;
    while (last_first != NULL) {
        struct plue_invocation *next = last_first->next_of_call;
        last_first->next_of_call = invocation;
        invocation = last_first;
        last_first = next;
    }
    plue_unlock();
    while (invocation != NULL) {
        struct plue_invocation *next = invocation->next_of_call;
        int told = 0;
        plue_events_tell(&invocation->due, &told);
        invocation = next;
    }
}

/* INVOKE begins with two numbers: the number of the tool, and of the call that invokes it. */
enum { NUMBERS = 2 * sizeof(uint64_t) };

/* Returns NULL when out of memory. */
static struct plue_invocation *make_invocation(uint64_t id, const struct plue_text_view texts[3]) {
    struct plue_invocation *invocation = calloc(1, sizeof *invocation);
    if (invocation == NULL) {
        return NULL;
    }
    invocation->id = id;
    invocation->due.tell = tell_invocation;
    invocation->due.free = free_invocation;
    invocation->signal = plue_abort_signal_new();
    invocation->backlog = plue_backlog_new();
    invocation->size = sizeof *invocation;
    bool is_whole = invocation->signal != NULL && invocation->backlog != NULL;
    for (int i = 0; i < 3; i++) {
        if (texts[i].bytes != NULL) {
            invocation->size += texts[i].length;
            invocation->strings[i] = plue_text_copy(texts[i].bytes, texts[i].length);
            is_whole = is_whole && invocation->strings[i] != NULL;
        }
    }
    if (!is_whole) {
        free_invocation(&invocation->due);
        return NULL;
    }
    return invocation;
}

/* The unsent failures of invocations that were rejected. */
static struct plue_backlog refusals = {.references = 1};

/* Rejects an invocation. Returns false if the tools side leaves too many rejections unread. */
static bool refuse_invocation(uint64_t generation, uint64_t id, int status, const char *message) {
    const struct plue_invocation none = {.id = id, .generation = generation};
    struct plue_frame *frame = yield_frame(&none, YIELD_FAILURE, (uint64_t)status, 0, message);
    if (frame != NULL && !plue_backlog_add(&refusals, frame, MAX_BACKLOG)) {
        plue_frame_free_all(frame);
        return false;
    }
    if (frame != NULL) {
        plue_above.send(generation, frame);
    }
    return true;
}

bool plue_invocation_receive(uint64_t generation, const struct plue_frame_view *view,
                             struct plue_wakeups *wakeups) {
    struct plue_text_view texts[3];
    if (view->length < NUMBERS ||
        !plue_frame_read_strings(view->payload + NUMBERS, view->length - NUMBERS, texts, 3) ||
        texts[0].bytes == NULL) {
        return false;
    }
    struct plue_invocation *invocation = make_invocation(view->id, texts);
    if (invocation == NULL) {
        return refuse_invocation(generation, view->id, PLUE_OVERLOADED,
                                 "The program is out of memory");
    }
    plue_lock();
    invocation->generation = generation;
    invocation->tool = find_tool(plue_read_u64(view->payload));
    size_t most = plue_settings.max_bytes_in_flight;
    bool is_too_much = waiting_size > 0 && waiting_size + invocation->size > most;
    if (invocation->tool != NULL && !is_too_much) {
        waiting_size += invocation->size;
        invocation->tool->references++;
        link_invocation(invocation);
        struct plue_call *call =
            plue_call_find(generation, plue_read_u64(view->payload + sizeof(uint64_t)));
        if (call != NULL && call->due == NULL) {
            invocation->due.is_waiting = true; /* in the call's list */
            invocation->next_of_call = call->invocations;
            call->invocations = invocation;
            plue_call_notify(call, PLUE_CALL_INVOKED, wakeups);
        } else {
            plue_events_add(&invocation->due);
        }
        invocation = NULL;
    }
    plue_unlock();
    if (invocation == NULL) {
        return true;
    }
    free_invocation(&invocation->due);
    return refuse_invocation(generation, view->id, is_too_much ? PLUE_OVERLOADED : PLUE_UNAVAILABLE,
                             is_too_much ? "The program does not run its tools fast enough: more "
                                           "than max_bytes_in_flight wait for plue_events_dispatch()"
                                         : "The tool has been unregistered");
}

/* Aborts the invocation. Adds an event if the host has a callback for aborts. */
static void abort_invocation(struct plue_invocation *invocation, const char *reason) PLUE_LOCKED {
    plue_abort_signal_abort(invocation->signal, reason);
    if (invocation->has_begun && invocation->on_abort != NULL) {
        plue_events_add(&invocation->due);
    }
}

bool plue_invocation_cancel(uint64_t generation, const struct plue_frame_view *view) {
    char *reason = plue_text_repair_start(view->payload, view->length, PLUE_MAX_REASON);
    plue_lock();
    struct plue_invocation *at = running[view->id % RUNNING_LISTS];
    while (at != NULL && (at->generation != generation || at->id != view->id)) {
        at = at->next;
    }
    if (at != NULL) {
        abort_invocation(at, reason);
    }
    plue_unlock();
    free(reason);
    return true;
}

void plue_invocations_abort(uint64_t generation) {
    for (int i = 0; i < RUNNING_LISTS; i++) {
        for (struct plue_invocation *at = running[i]; at != NULL; at = at->next) {
            if (at->generation == generation) {
                abort_invocation(at, "The runtime has ended");
            }
        }
    }
}

/* Ends an invocation with its answer, unless it already has one. */
static void answer(struct plue_invocation *invocation, uint8_t kind, int status, const char *text,
                   int status_of_large, const char *large) {
    if (plue_is_forked()) {
        return;
    }
    if (!atomic_exchange(&invocation->is_answered, true) &&
        !send_answer(invocation, kind, status, text)) {
        send_answer(invocation, YIELD_FAILURE, status_of_large, large);
    }
    end_invocation(invocation);
}

void plue_invocation_fail(plue_invocation_t *invocation, int status, const char *message) {
    bool is_known = status > PLUE_OK && status <= PLUE_THREW;
    answer(invocation, YIELD_FAILURE, is_known ? status : PLUE_THREW,
           message == NULL ? "The tool failed" : message, PLUE_THREW,
           "The tool failed; its message is too large");
}

void plue_invocation_succeed(plue_invocation_t *invocation, const char *json) {
    answer(invocation, YIELD_RESULT, 0, json == NULL ? "null" : json, PLUE_OUTPUT_TOO_LARGE,
           "The result is too large: request less of it");
}

/* Sends an event. If the tools side reads too slowly, fails and aborts the invocation instead. */
static void stream(struct plue_invocation *invocation, uint8_t kind, uint64_t first,
                   uint64_t second, const char *text) {
    static const char too_fast[] =
        "The tool streams faster than the runtime reads: more than 16 MiB wait";
    if (plue_is_forked() || atomic_load(&invocation->is_answered)) {
        return;
    }
    struct plue_frame *frame = yield_frame(invocation, kind, first, second, text);
    if (frame != NULL && plue_backlog_add(invocation->backlog, frame, MAX_BACKLOG)) {
        plue_above.send(invocation->generation, frame);
        return;
    }
    plue_frame_free_all(frame);
    if (!atomic_exchange(&invocation->is_answered, true)) {
        send_answer(invocation, YIELD_FAILURE, PLUE_OUTPUT_TOO_LARGE, too_fast);
        plue_lock();
        abort_invocation(invocation, too_fast);
        plue_unlock();
    }
}

void plue_invocation_metadata(plue_invocation_t *invocation, const char *json) {
    stream(invocation, YIELD_METADATA, 0, 0, json == NULL ? "null" : json);
}

void plue_invocation_output(plue_invocation_t *invocation, const char *json) {
    stream(invocation, YIELD_OUTPUT, 0, 0, json == NULL ? "null" : json);
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

void plue_invocation_progress(plue_invocation_t *invocation, double done, double total,
                              const char *message) {
    stream(invocation, YIELD_PROGRESS, bits_of(done), bits_of(total),
           message == NULL ? "" : message);
}

const char *plue_invocation_session_id(const plue_invocation_t *invocation) {
    return invocation->strings[1];
}

const char *plue_invocation_message_id(const plue_invocation_t *invocation) {
    return invocation->strings[2];
}

plue_abort_signal_t *plue_invocation_signal(const plue_invocation_t *invocation) {
    return invocation->signal;
}

void plue_invocation_on_abort(plue_invocation_t *invocation,
                              void (*callback)(plue_invocation_t *invocation, void *user_data),
                              void *user_data) {
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    invocation->on_abort = callback;
    invocation->abort_user_data = user_data;
    if (callback != NULL && is_invocation_aborted(invocation)) {
        plue_events_add(&invocation->due);
    }
    plue_unlock();
}
