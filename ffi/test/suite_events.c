/* The parts of the host suite about calls that no thread waits for, and tools of the host's own. */
#include "suite.h"

#include "check.h"
#include "plue.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the ends of submitted calls said. */
struct ends {
    int count;
    int status;
    int events;
    char json[400];
    pthread_t thread;
};

static void note_end(int status, const char *json, void *user_data) {
    struct ends *ends = user_data;
    ends->count++;
    ends->status = status;
    ends->thread = pthread_self();
    snprintf(ends->json, sizeof ends->json, "%s", json);
}

static void note_event(const char *json, void *user_data) {
    struct ends *ends = user_data;
    CHECK(ends->count == 0, "an event after the end: %s", json);
    ends->events++;
}

/* Dispatches until the count is there. */
static void dispatch_until(const int *count, int wanted) {
    while (*count < wanted) {
        CHECK(plue_events_dispatch(-1) >= 0, "%s", plue_get_last_error());
    }
}

/* ------------------------------------------------------------------------------ plue_tool_call */

void suite_call(void) {
    char *json = NULL;
    int status = plue_tool_call("echo", "{\"a\":1}", NULL, &json);
    CHECK(status == PLUE_OK && strcmp(json, "{\"a\":1}") == 0, "%d %s", status, json);
    plue_free_json(json);
    CHECK(plue_tool_call("echo", "{}", NULL, NULL) == PLUE_OK, "%s", plue_get_last_error());
    static const struct {
        const char *tool;
        const char *params;
        int status;
        const char *code;
    } failures[] = {
        {"nope", "{}", PLUE_UNKNOWN_TOOL, "unknown_tool"},
        {"echo", "{bad", PLUE_INVALID_ARGUMENTS, "invalid_arguments"},
        {"fail", "{}", PLUE_THREW, "threw"},
        {NULL, "{}", PLUE_INVALID_ARGUMENT, "invalid_argument"},
        {"error_key", "{}", PLUE_OK, "not one"},
    };
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        status = plue_tool_call(failures[i].tool, failures[i].params, NULL, &json);
        CHECK(status == failures[i].status, "%s: %d", json, status);
        CHECK(contains(json, failures[i].code), "%s", json);
        plue_free_json(json);
    }
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_abort_signal_abort(signal, NULL);
    plue_tool_context_t context = {.abort_signal = signal};
    CHECK(plue_tool_call("echo", "{}", &context, NULL) == PLUE_ABORTED, "%s", plue_get_last_error());
    plue_abort_signal_release(signal);
}

/* ---------------------------------------------------------------------------- plue_tool_submit */

static void test_submitted(void) {
    struct ends ends = {.count = 0};
    plue_tool_context_t context = {"S", "M", NULL, note_event, &ends};
    CHECK(plue_tool_submit("progress", "{\"n\":3}", &context, note_end, &ends) == PLUE_OK, "%s",
          plue_get_last_error());
    CHECK(ends.count == 0, "it was told before anybody dispatched");
    dispatch_until(&ends.count, 1);
    CHECK(ends.status == PLUE_OK && ends.events == 3, "%d, %d events", ends.status, ends.events);
    CHECK(contains(ends.json, "\"session\":\"S\""), "%s", ends.json);
    CHECK(pthread_equal(ends.thread, pthread_self()), "another thread");
    CHECK(plue_events_dispatch(0) == 0, "something is left");

    ends = (struct ends){.count = 0};
    CHECK(plue_tool_submit("nope", "{}", NULL, note_end, &ends) == PLUE_OK, "submitting");
    dispatch_until(&ends.count, 1);
    CHECK(ends.status == PLUE_UNKNOWN_TOOL && is_failure(ends.json, "unknown_tool"), "%s", ends.json);
    CHECK(plue_tool_submit(NULL, "{}", NULL, note_end, &ends) == PLUE_INVALID_ARGUMENT, "NULL");
    CHECK(plue_tool_submit("echo", "{}", NULL, NULL, NULL) == PLUE_INVALID_ARGUMENT, "NULL");
    CHECK(contains(plue_get_last_error(), "on_done"), "%s", plue_get_last_error());
}

/* The first calls are submitted while the tools start, and wait for that. */
static void test_submitted_at_start(void) {
    plue_shutdown();
    struct ends ends = {.count = 0};
    for (int i = 0; i < 10; i++) {
        plue_tool_submit("echo", "{\"a\":1}", NULL, note_end, &ends);
    }
    dispatch_until(&ends.count, 10);
    CHECK(ends.status == PLUE_OK && strcmp(ends.json, "{\"a\":1}") == 0, "%s", ends.json);
}

static void test_descriptor(void) {
    struct pollfd descriptor = {.fd = plue_events_fd(), .events = POLLIN};
    CHECK(descriptor.fd > 2 && plue_events_fd() == descriptor.fd, "%d", descriptor.fd);
    CHECK(poll(&descriptor, 1, 0) == 0, "it is readable, and nothing waits");
    struct ends ends = {.count = 0};
    for (int i = 0; i < 100; i++) {
        plue_tool_submit("later", "{}", NULL, note_end, &ends);
    }
    while (ends.count < 100) {
        CHECK(poll(&descriptor, 1, -1) == 1, "poll");
        CHECK(plue_events_dispatch(0) > 0, "it was readable, and nothing waited");
    }
    CHECK(poll(&descriptor, 1, 0) == 0, "it is readable, and nothing waits");
}

static void test_submitted_aborts(void) {
    enum { CALLS = 50 };
    plue_abort_signal_t *signal = plue_abort_signal_new();
    struct ends ends = {.count = 0};
    plue_tool_context_t context = {.abort_signal = signal};
    for (int i = 0; i < CALLS; i++) {
        plue_tool_submit("sleep", "{\"ms\":3600000}", &context, note_end, &ends);
    }
    plue_abort_signal_abort(signal, "stop pressed");
    plue_tool_submit("sleep", "{\"ms\":3600000}", &context, note_end, &ends);
    plue_abort_signal_release(signal);
    dispatch_until(&ends.count, CALLS + 1);
    CHECK(ends.status == PLUE_ABORTED && contains(ends.json, "stop pressed"), "%s", ends.json);
}

static void submit_again(int status, const char *json, void *user_data) {
    struct ends *ends = user_data;
    note_end(status, json, user_data);
    if (ends->count < 5) {
        CHECK(plue_tool_submit("echo", "{}", NULL, submit_again, ends) == PLUE_OK, "submitting");
    } else {
        /* A callback may also wait. */
        expect_answer("echo", "{\"b\":2}", "{\"b\":2}");
    }
}

static void test_submitted_in_callback(void) {
    struct ends ends = {.count = 0};
    plue_tool_submit("echo", "{}", NULL, submit_again, &ends);
    dispatch_until(&ends.count, 5);
}

static atomic_int shared_count;

static void count_end(int status, const char *json, void *user_data) {
    CHECK(status == PLUE_OK, "%s", json);
    (void)user_data;
    atomic_fetch_add(&shared_count, 1);
}

enum { SHARED_CALLS = 4000 };

static void *dispatch_shared(void *unused) {
    while (atomic_load(&shared_count) < SHARED_CALLS) {
        plue_events_dispatch(1);
    }
    return unused;
}

static void *submit_shared(void *unused) {
    for (int i = 0; i < SHARED_CALLS / 4; i++) {
        plue_tool_submit("later", "{}", NULL, count_end, NULL);
    }
    return unused;
}

/* Threads submit and dispatch at the same time. */
static void test_shared_dispatch(void) {
    pthread_t threads[8];
    atomic_store(&shared_count, 0);
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, i < 4 ? submit_shared : dispatch_shared, NULL);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(atomic_load(&shared_count) == SHARED_CALLS, "%d", atomic_load(&shared_count));
}

static void test_submitted_shutdown(void) {
    struct ends ends = {.count = 0};
    for (int i = 0; i < 20; i++) {
        plue_tool_submit("sleep", "{\"ms\":3600000}", NULL, note_end, &ends);
    }
    plue_shutdown();
    dispatch_until(&ends.count, 20);
    CHECK(ends.status == PLUE_SHUTDOWN, "%s", ends.json);
}

void suite_submit(void) {
    test_submitted();
    test_descriptor();
    test_submitted_aborts();
    test_submitted_in_callback();
    test_shared_dispatch();
}

void suite_submit_restarts(void) {
    test_submitted_at_start();
    test_submitted_shutdown();
    test_submitted_at_start();
}

/* ---------------------------------------------------------------------- tools of this program */

static const char adder[] =
    "{\"name\":\"add\",\"namespace\":\"host\",\"description\":\"Adds two numbers.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"]},\"risk\":\"safe\"}";

static atomic_int destroyed;

static void note_destroyed(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&destroyed, 1);
}

/* How often the adder ran on this thread. */
static _Thread_local int runs_here;

static void run_add(plue_invocation_t *invocation, const char *params, void *user_data) {
    CHECK(strcmp(user_data, "adder") == 0, "%s", (char *)user_data);
    runs_here++;
    char json[60];
    snprintf(json, sizeof json, "{\"sum\":%ld}", number_in(params, "a") + number_in(params, "b"));
    plue_invocation_succeed(invocation, json);
}

static void run_verbose(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)params;
    (void)user_data;
    const char *session = plue_invocation_session_id(invocation);
    CHECK(session != NULL && strcmp(session, "S") == 0, "session");
    CHECK(plue_invocation_message_id(invocation) == NULL, "message");
    plue_invocation_metadata(invocation, "{\"m\":1}");
    plue_invocation_progress(invocation, 0.5, 2, "half way");
    plue_invocation_output(invocation, "\"part\"");
    plue_invocation_succeed(invocation, NULL);
}

static void run_failing(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)user_data;
    long status = number_in(params, "status");
    if (status == 0) {
        plue_invocation_succeed(invocation, "not JSON");
    } else {
        plue_invocation_fail(invocation, (int)status, "It said \"no\"");
    }
}

static plue_invocation_t *held;
static atomic_int aborts_told;

static void end_held(plue_invocation_t *invocation, void *user_data) {
    (void)user_data;
    CHECK(plue_abort_signal_aborted(plue_invocation_signal(invocation)), "not aborted");
    atomic_fetch_add(&aborts_told, 1);
    plue_invocation_fail(invocation, PLUE_ABORTED, "stopped");
}

/* Returns before its invocation has ended. */
static void run_held(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)params;
    (void)user_data;
    held = invocation;
    plue_invocation_on_abort(invocation, end_held, NULL);
}

/* Calls another tool, which then waits for this thread. */
static void run_nested(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)user_data;
    char *json = NULL;
    plue_tool_context_t context = {.abort_signal = plue_invocation_signal(invocation)};
    int status = plue_tool_call("host:add", params, &context, &json);
    CHECK(status == PLUE_OK, "%s", json);
    plue_invocation_succeed(invocation, json);
    plue_free_json(json);
}

static char definition_text[300];

static const char *definition(const char *name) {
    snprintf(definition_text, sizeof definition_text,
             "{\"name\":\"host:%s\",\"description\":\"A tool of the host.\","
             "\"parameters\":{\"type\":\"object\"}}",
             name);
    return definition_text;
}

static void expect_registered(const char *text, plue_execute_t execute, void *user_data) {
    int status = plue_register_tool(text, execute, note_destroyed, user_data);
    CHECK(status == PLUE_OK, "%d: %s", status, plue_get_last_error());
}

static void expect_refused(const char *text, const char *part) {
    int before = atomic_load(&destroyed);
    int status = plue_register_tool(text, run_add, note_destroyed, NULL);
    CHECK(status == PLUE_INVALID_ARGUMENT, "%d: %s", status, plue_get_last_error());
    CHECK(contains(plue_get_last_error(), part), "%s", plue_get_last_error());
    CHECK(atomic_load(&destroyed) == before + 1, "%s: not destroyed", part);
}

static void test_registering(void) {
    expect_registered(adder, run_add, "adder");
    char *list = plue_tool_list();
    CHECK(contains(list, "\"host:add\":{\"name\":\"host:add\""), "%.600s", list);
    plue_free_json(list);
    runs_here = 0;
    expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
    CHECK(runs_here == 1, "it ran on another thread than its caller's");
    expect_failure("host:add", "{\"a\":2}", "invalid_arguments", "b");

    expect_refused("{", "not JSON");
    expect_refused("[]", "JSON object");
    expect_refused("{\"name\":\"x\"}", "description");
    expect_refused("{\"name\":\"x\",\"description\":\"d\",\"parameters\":{\"type\":\"nope\"}}",
                   "/type");
    expect_refused("{\"name\":\"x\",\"description\":\"d\",\"colour\":1}", "colour");
    expect_refused(adder, "host:add");
    expect_refused("{\"name\":\"echo\",\"description\":\"d\"}", "echo");
    expect_refused("{\"name\":\"\xff\",\"description\":\"d\"}", "UTF-8");
    expect_refused(NULL, "definition_json");
    CHECK(plue_register_tool(adder, NULL, NULL, NULL) == PLUE_INVALID_ARGUMENT, "NULL");
    expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
}

struct text {
    char all[1000];
};

static void collect(const char *json, void *user_data) {
    struct text *text = user_data;
    size_t length = strlen(text->all);
    snprintf(text->all + length, sizeof text->all - length, "%s\n", json);
}

/* An alias leads to the tool: it runs on this thread, too, which would wait for itself otherwise. */
static void test_alias(void) {
    static const char aliased[] = "{\"name\":\"host:sum\",\"description\":\"Adds.\",\"aliases\":[\"plus\"],"
                                  "\"parameters\":{\"type\":\"object\"}}";
    expect_registered(aliased, run_add, "adder");
    runs_here = 0;
    expect_answer("plus", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
    CHECK(runs_here == 1, "it ran on another thread than its caller's");
}

/* Takes itself back and ends its invocation: what it was registered with is there until it returns. */
static void run_leaving(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)params;
    int before = atomic_load(&destroyed);
    CHECK(plue_unregister_tool("host:leaving") == PLUE_OK, "%s", plue_get_last_error());
    plue_invocation_succeed(invocation, NULL);
    CHECK(atomic_load(&destroyed) == before && strcmp(user_data, "leaving") == 0, "destroyed");
}

static void test_leaving(void) {
    int before = atomic_load(&destroyed);
    expect_registered(definition("leaving"), run_leaving, "leaving");
    expect_answer("host:leaving", "{}", "null");
    CHECK(atomic_load(&destroyed) == before + 1, "not destroyed");
}

static void test_talking(void) {
    struct text text = {""};
    plue_tool_context_t context = {"S", NULL, NULL, collect, &text};
    expect_registered(definition("verbose"), run_verbose, NULL);
    CHECK(plue_tool_call("host:verbose", "{}", &context, NULL) == PLUE_OK, "%s",
          plue_get_last_error());
    CHECK(contains(text.all, "{\"m\":1}\n"), "%s", text.all);
    CHECK(contains(text.all, "\"done\":0.5,\"total\":2,\"message\":\"half way\""), "%s", text.all);
    CHECK(contains(text.all, "{\"type\":\"output\",\"value\":\"part\"}"), "%s", text.all);

    expect_registered(definition("failing"), run_failing, NULL);
    expect_failure("host:failing", "{\"status\":3}", "denied", "It said \"no\"");
    expect_failure("host:failing", "{\"status\":9}", "timeout", "It said");
    expect_failure("host:failing", "{\"status\":99}", "threw", "It said");
    expect_failure("host:failing", "{\"status\":0}", "invalid_result", "not JSON");

    expect_registered(definition("nested"), run_nested, NULL);
    expect_answer("host:nested", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
}

/* Called by others: by a tool in JavaScript, and by a submitted call. */
static void test_dispatching(void) {
    struct ends ends = {.count = 0};
    runs_here = 0;
    plue_tool_submit("relay", "{\"name\":\"host:add\",\"params\":{\"a\":20,\"b\":22}}", NULL, note_end,
                     &ends);
    dispatch_until(&ends.count, 1);
    CHECK(strcmp(ends.json, "{\"sum\":42}") == 0, "%s", ends.json);
    plue_tool_submit("host:add", "{\"a\":1,\"b\":1}", NULL, note_end, &ends);
    dispatch_until(&ends.count, 2);
    CHECK(strcmp(ends.json, "{\"sum\":2}") == 0, "%s", ends.json);
    CHECK(runs_here == 2, "it ran on another thread");
}

static void test_ending_later(void) {
    expect_registered(definition("held"), run_held, NULL);
    struct ends ends = {.count = 0};
    plue_tool_submit("host:held", "{}", NULL, note_end, &ends);
    held = NULL;
    while (held == NULL) {
        plue_events_dispatch(-1);
    }
    plue_invocation_succeed(held, "{\"later\":true}");
    dispatch_until(&ends.count, 1);
    CHECK(strcmp(ends.json, "{\"later\":true}") == 0, "%s", ends.json);

    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal};
    plue_tool_submit("host:held", "{}", &context, note_end, &ends);
    held = NULL;
    while (held == NULL) {
        plue_events_dispatch(-1);
    }
    plue_abort_signal_abort(signal, "enough");
    plue_abort_signal_release(signal);
    dispatch_until(&ends.count, 2);
    CHECK(ends.status == PLUE_ABORTED && contains(ends.json, "enough"), "%s", ends.json);
    while (atomic_load(&aborts_told) == 0) {
        plue_events_dispatch(-1);
    }
}

static void test_unregistering(void) {
    int before = atomic_load(&destroyed);
    CHECK(plue_unregister_tool("host:add") == PLUE_OK, "%s", plue_get_last_error());
    CHECK(atomic_load(&destroyed) == before + 1, "not destroyed");
    expect_failure("host:add", "{\"a\":2,\"b\":3}", "unknown_tool", "host:add");
    CHECK(plue_unregister_tool("host:add") == PLUE_UNKNOWN_TOOL, "twice");
    CHECK(plue_unregister_tool("echo") == PLUE_UNKNOWN_TOOL, "not ours");
    CHECK(plue_unregister_tool(NULL) == PLUE_UNKNOWN_TOOL, "NULL");
    expect_registered(adder, run_add, "adder");
    expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
}

static void *call_added(void *unused) {
    for (int i = 0; i < 200; i++) {
        expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
    }
    return unused;
}

static void test_threads(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, call_added, NULL);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
}

void suite_tools(void) {
    atomic_store(&destroyed, 0);
    test_registering();
    test_alias();
    test_leaving();
    test_talking();
    test_dispatching();
    test_ending_later();
    test_unregistering();
    test_threads();
    for (const char *const *name = (const char *const[]){"add", "sum", "verbose", "failing",
                                                         "nested", "held", NULL};
         *name != NULL; name++) {
        char id[40];
        snprintf(id, sizeof id, "host:%s", *name);
        CHECK(plue_unregister_tool(id) == PLUE_OK, "%s: %s", id, plue_get_last_error());
    }
    /* Refused, taken back before, and registered in the end. */
    CHECK(atomic_load(&destroyed) == 9 + 2 + 6, "%d", atomic_load(&destroyed));
}

/* Copies the value of a key out of JSON. */
static void copy_value(char *value, size_t size, const char *json, const char *key) {
    char start_text[40];
    snprintf(start_text, sizeof start_text, "\"%s\":\"", key);
    const char *start = strstr(json, start_text);
    start = start == NULL ? "" : start + strlen(start_text);
    snprintf(value, size, "%.*s", (int)strcspn(start, "\""), start);
}

/* ---------------------------------------------------------------------------------- questions */

/* Answers as `user_data` says; NULL: not at all. */
static void answer(plue_invocation_t *invocation, const char *question, void *user_data) {
    CHECK(contains(question, "\"key\":\"sure\"") && contains(question, "\"kind\":\"approval\"") &&
              contains(question, "Really?") && contains(question, "\"tool\":\"confirm\""),
          "%s", question);
    runs_here++;
    if (user_data == NULL) {
        plue_invocation_fail(invocation, PLUE_UNAVAILABLE, "Nobody is there");
    } else {
        plue_invocation_succeed(invocation, user_data);
    }
}

/* Takes itself back: what it was set with lives until it has returned and the invocation has ended. */
static void answer_and_leave(plue_invocation_t *invocation, const char *question, void *user_data) {
    (void)question;
    plue_set_question(NULL, NULL, NULL);
    plue_invocation_succeed(invocation, user_data);
    CHECK(atomic_load(&destroyed) == 0, "destroyed while it runs");
}

static void suspend(char *ticket, size_t size) {
    char *json = NULL;
    int status = plue_tool_call("confirm", "{}", NULL, &json);
    CHECK(status == PLUE_INPUT_REQUIRED && is_failure(json, "input_required"), "%d %s", status, json);
    CHECK(contains(json, "\"questions\":[{") && contains(json, "Really?"), "%s", json);
    copy_value(ticket, size, json, "ticket");
    CHECK(*ticket != '\0', "%s", json);
    plue_free_json(json);
}

static void expect_resumed(const char *ticket, const char *answers, int wanted, const char *part) {
    char *json = NULL;
    int status = plue_tool_resume(ticket, answers, NULL, &json);
    CHECK(status == wanted && contains(json, part), "%d %s", status, json);
    plue_free_json(json);
}

void suite_questions(void) {
    char ticket[2000];
    static char accepted[] = "{\"action\":\"accept\"}";
    static char declined[] = "{\"action\":\"decline\"}";
    runs_here = 0;
    atomic_store(&destroyed, 0);
    CHECK(plue_set_question(answer, note_destroyed, accepted) == PLUE_OK, "%s",
          plue_get_last_error());
    expect_answer("confirm", "{}", "\"accept\"");
    CHECK(destroyed == 0, "it answers");
    plue_set_question(answer, note_destroyed, declined);
    CHECK(destroyed == 1, "%d are destroyed", destroyed);
    expect_answer("confirm", "{}", "\"decline\"");
    CHECK(runs_here == 2, "it was asked on another thread");

    struct ends ends = {.count = 0};
    plue_set_question(answer_and_leave, note_destroyed, accepted);
    atomic_store(&destroyed, 0);
    expect_answer("confirm", "{}", "\"accept\"");
    CHECK(atomic_load(&destroyed) == 1, "not destroyed");
    plue_set_question(answer, NULL, declined);
    plue_tool_submit("confirm", "{}", NULL, note_end, &ends);
    dispatch_until(&ends.count, 1);
    CHECK(strcmp(ends.json, "\"decline\"") == 0 && runs_here == 3, "%s", ends.json);

    plue_set_question(answer, NULL, NULL);
    CHECK(destroyed == 1, "%d are destroyed", destroyed);
    suspend(ticket, sizeof ticket);
    plue_set_question(NULL, note_destroyed, NULL);
    CHECK(destroyed == 2, "%d are destroyed", destroyed);
    expect_resumed(ticket, "{\"sure\":{\"action\":\"accept\"}}", PLUE_OK, "\"accept\"");
    expect_resumed(ticket, "{\"sure\":{\"action\":\"accept\"}}", PLUE_TICKET_REFUSED, "ticket");

    static char nonsense[] = "{\"nope\":1}";
    plue_set_question(answer, NULL, nonsense);
    expect_failure("confirm", "{}", "input_unavailable", "must have the \"action\" accept");
    plue_set_question(NULL, NULL, NULL);

    suspend(ticket, sizeof ticket);
    expect_resumed(ticket, "[", PLUE_INVALID_ARGUMENT, "answers_json");
    expect_resumed("nonsense", "{}", PLUE_TICKET_REFUSED, "ticket");
    expect_resumed(NULL, "{}", PLUE_INVALID_ARGUMENT, "ticket is NULL");
    CHECK(plue_tool_submit_resume(ticket, "{\"sure\":{\"action\":\"cancel\"}}", NULL, note_end,
                                  &ends) == PLUE_OK,
          "%s", plue_get_last_error());
    dispatch_until(&ends.count, 2);
    CHECK(strcmp(ends.json, "\"cancel\"") == 0, "%s", ends.json);
}

/* -------------------------------------------------------------------------------------- tasks */

/* Polls until the task is no more at work. */
static void await_task(const char *id, char *json_copy, size_t size) {
    for (;;) {
        char *json = NULL;
        CHECK(plue_tool_poll(id, &json) == PLUE_OK, "%s", json);
        bool is_working = contains(json, "\"status\":\"working\"");
        snprintf(json_copy, size, "%s", json);
        plue_free_json(json);
        if (!is_working) {
            return;
        }
        sleep_us(1000);
    }
}

void suite_tasks(void) {
    char id[100];
    char state[4000];
    char *json = NULL;
    CHECK(plue_tool_start("echo", "{\"a\":1}", NULL, &json) == PLUE_OK, "%s", json);
    copy_value(id, sizeof id, json, "id");
    plue_free_json(json);
    await_task(id, state, sizeof state);
    CHECK(contains(state, "\"status\":\"completed\"") && contains(state, "\"content\":{\"a\":1}"), "%s",
          state);

    CHECK(plue_tool_start("confirm", "{}", NULL, &json) == PLUE_OK, "%s", json);
    copy_value(id, sizeof id, json, "id");
    plue_free_json(json);
    await_task(id, state, sizeof state);
    CHECK(contains(state, "\"status\":\"input_required\"") && contains(state, "Really?"), "%s", state);
    CHECK(plue_tool_answer(id, "{\"sure\":{\"action\":\"accept\"}}", NULL, NULL) == PLUE_OK, "%s",
          plue_get_last_error());
    await_task(id, state, sizeof state);
    CHECK(contains(state, "\"content\":\"accept\""), "%s", state);

    CHECK(plue_tool_start("sleep", "{\"ms\":3600000}", NULL, &json) == PLUE_OK, "%s", json);
    copy_value(id, sizeof id, json, "id");
    plue_free_json(json);
    CHECK(plue_tool_cancel(id, &json) == PLUE_OK, "%s", json);
    CHECK(contains(json, "\"status\":\"cancelled\""), "%s", json);
    plue_free_json(json);

    CHECK(plue_tool_poll("nothing", NULL) == PLUE_UNKNOWN_TASK, "%s", plue_get_last_error());
    CHECK(plue_tool_poll(NULL, NULL) == PLUE_INVALID_ARGUMENT, "%s", plue_get_last_error());
    CHECK(contains(plue_get_last_error(), "task_id is NULL"), "%s", plue_get_last_error());
    CHECK(plue_tool_start("nope", "{}", NULL, NULL) == PLUE_UNKNOWN_TOOL, "%s", plue_get_last_error());
}

static bool is_stopped;

static void run_stop(plue_invocation_t *invocation, const char *params, void *user_data) {
    (void)params;
    (void)user_data;
    is_stopped = true;
    plue_invocation_succeed(invocation, NULL);
}

/* Offers tools to others, until one of them calls host:stop. */
void suite_offer(void) {
    is_stopped = false;
    expect_registered(adder, run_add, "adder");
    expect_registered(definition("held"), run_held, NULL);
    suite_offer_blocks();
    expect_registered(definition("stop"), run_stop, NULL);
    while (!is_stopped) {
        CHECK(plue_events_dispatch(-1) >= 0, "%s", plue_get_last_error());
    }
    plue_unregister_tool("host:add");
    plue_unregister_tool("host:held");
    plue_unregister_tool("host:photo");
    plue_unregister_tool("host:stop");
}

/* The tools outlive the sidecar, and not a shutdown. */
void suite_tools_restarts(void) {
    atomic_store(&destroyed, 0);
    expect_registered(adder, run_add, "adder");
    expect_failure("crash", "{\"code\":7}", "runtime_crashed", "");
    expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
    CHECK(atomic_load(&destroyed) == 0, "%d", atomic_load(&destroyed));
    plue_shutdown();
    CHECK(atomic_load(&destroyed) == 1, "%d", atomic_load(&destroyed));
    expect_failure("host:add", "{\"a\":2,\"b\":3}", "unknown_tool", "host:add");
    expect_registered(adder, run_add, "adder");
    expect_answer("host:add", "{\"a\":2,\"b\":3}", "{\"sum\":5}");
    plue_shutdown();
}

static atomic_bool is_over;
static int registrations;

static void *keep_registering(void *unused) {
    while (!atomic_load(&is_over)) {
        int status = plue_register_tool(adder, run_add, note_destroyed, "adder");
        CHECK(status == PLUE_OK || status == PLUE_SHUTDOWN || status == PLUE_RUNTIME_CRASHED, "%d: %s",
              status, plue_get_last_error());
        registrations++;
        plue_unregister_tool("host:add");
    }
    return unused;
}

/* Each tool is destroyed once, also one that a shutdown takes while it is being registered. */
void suite_tools_shutdown(void) {
    pthread_t thread;
    atomic_store(&destroyed, 0);
    atomic_store(&is_over, false);
    registrations = 0;
    pthread_create(&thread, NULL, keep_registering, NULL);
    for (int i = 0; i < 10; i++) {
        CHECK(plue_start() == PLUE_OK, "%s", plue_get_last_error());
        plue_shutdown();
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    plue_shutdown();
    CHECK(atomic_load(&destroyed) == registrations, "%d of %d", atomic_load(&destroyed), registrations);
}

/* ---------------------------------------------------------------------------------- notices */

static void count(void *user_data) {
    ++*(int *)user_data;
}

static void find_line(const char *line, void *user_data) {
    CHECK(strchr(line, '\n') == NULL, "%s", line);
    *(int *)user_data += strcmp(line, "first of two") == 0 || strcmp(line, "second of two") == 0;
}

/* What the tools print goes to the host, line by line. */
void suite_log(void) {
    int found = 0;
    plue_set_log(find_line, &found);
    expect_answer("print", "{\"text\":\"first of two\\nsecond of two\"}", "null");
    dispatch_until(&found, 2);
    plue_set_log(NULL, NULL);
}

static void leave_log(const char *line, void *user_data) {
    (void)line;
    ++*(int *)user_data;
    plue_set_log(NULL, NULL);
}

/* Has the tools print lines, and waits until the library has them. */
static void print_and_wait(const char *params) {
    struct pollfd events = {.fd = plue_events_fd(), .events = POLLIN};
    expect_answer("print", params, "null");
    poll(&events, 1, -1);
}

/* A callback that takes itself back is called no more, and what waits is printed: so it is with what
 * waits at a shutdown. The caller looks at the standard error. */
void suite_log_left(void) {
    int told = 0;
    plue_set_log(leave_log, &told);
    print_and_wait("{\"text\":\"left one\\nleft two\\nleft three\"}");
    plue_events_dispatch(0);
    CHECK(told == 1, "%d lines", told);
    plue_set_log(leave_log, &told);
    print_and_wait("{\"text\":\"shut down one\\nshut down two\"}");
    plue_shutdown();
    plue_set_log(NULL, NULL);
    CHECK(plue_events_dispatch(0) == 0 && told == 1, "%d lines", told);
}

/* A callback that is there while it is called, and says so if it is called when it is not. */
static atomic_bool is_watched;
static atomic_int late;

static void watch_list(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&late, !atomic_load(&is_watched));
    sleep_us(10);
    atomic_fetch_add(&late, !atomic_load(&is_watched));
}

static void *dispatch_all(void *unused) {
    while (!atomic_load(&is_over)) {
        plue_events_dispatch(1);
    }
    return unused;
}

/* A callback that was taken back is neither begun any more nor running. */
static void test_taking_back(void) {
    pthread_t threads[3];
    atomic_store(&is_over, false);
    atomic_store(&late, 0);
    pthread_create(&threads[0], NULL, keep_registering, NULL);
    pthread_create(&threads[1], NULL, dispatch_all, NULL);
    pthread_create(&threads[2], NULL, dispatch_all, NULL);
    for (int i = 0; i < 2000; i++) {
        atomic_store(&is_watched, true);
        plue_set_list_changed(watch_list, NULL);
        sleep_us(50);
        plue_set_list_changed(NULL, NULL);
        atomic_store(&is_watched, false);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(atomic_load(&late) == 0, "%d times", atomic_load(&late));
}

void suite_notices(void) {
    CHECK(plue_start() == PLUE_OK, "%s", plue_get_last_error());
    CHECK(plue_feature("submit") == 1 && plue_feature("nope") == 0 && plue_feature(NULL) == 0,
          "features");
    int changes = 0;
    plue_set_list_changed(count, &changes);
    expect_registered(adder, run_add, "adder");
    dispatch_until(&changes, 1);
    plue_unregister_tool("host:add");
    dispatch_until(&changes, 2);
    plue_set_list_changed(NULL, NULL);
    expect_registered(adder, run_add, "adder");
    plue_unregister_tool("host:add");
    CHECK(plue_events_dispatch(0) == 0 && changes == 2, "%d", changes);
    test_taking_back();
}
