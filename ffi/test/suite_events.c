/* The parts of the host suite about submitted calls, tools of the host, questions, tasks and notices. */
#include "check.h"
#include "plue.h"

#include <signal.h>

/* The outcomes of submitted calls. */
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

/* Dispatches until the count is reached. */
static void dispatch_until(const int *count, int wanted) {
    while (*count < wanted) {
        CHECK(plue_events_dispatch(-1) >= 0, "%s", plue_get_last_error());
    }
}

static void submit_many(int calls, const char *tool, const char *params,
                        const plue_tool_context_t *context, struct ends *ends) {
    for (int i = 0; i < calls; i++) {
        int status = plue_tool_submit(tool, params, context, note_end, ends);
        CHECK(status == PLUE_OK, "%s", plue_get_last_error());
    }
}

/* Submits a call and dispatches until it has ended with the JSON. */
static void expect_submitted(const char *tool, const char *params, const char *expected) {
    struct ends ends = {.count = 0};
    submit_many(1, tool, params, NULL, &ends);
    dispatch_until(&ends.count, 1);
    CHECK(strcmp(ends.json, expected) == 0, "%s", ends.json);
}

static void test_submitted(void) {
    struct ends ends = {.count = 0};
    plue_tool_context_t context = {"S", "M", NULL, note_event, &ends};
    submit_many(1, "progress", "{\"n\":3}", &context, &ends);
    CHECK(ends.count == 0, "a callback ran before the dispatch");
    dispatch_until(&ends.count, 1);
    CHECK(ends.status == PLUE_OK && ends.events == 3, "%d, %d events", ends.status, ends.events);
    CHECK(pthread_equal(ends.thread, pthread_self()), "another thread");
    CHECK(plue_events_dispatch(0) == 0, "something is left");
    CHECK(plue_tool_submit(NULL, "{}", NULL, note_end, &ends) == PLUE_INVALID_ARGUMENT, "NULL");
    CHECK(plue_tool_submit("echo", "{}", NULL, NULL, NULL) == PLUE_INVALID_ARGUMENT, "NULL");
    CHECK(contains(plue_get_last_error(), "on_done"), "%s", plue_get_last_error());
}

/* The first calls are submitted while the tools start, and wait for the start. */
static void test_submitted_at_start(void) {
    plue_shutdown();
    struct ends ends = {.count = 0};
    submit_many(10, "echo", "{\"a\":1}", NULL, &ends);
    dispatch_until(&ends.count, 10);
    CHECK(ends.status == PLUE_OK && strcmp(ends.json, "{\"a\":1}") == 0, "%s", ends.json);
}

static void test_descriptor(void) {
    struct pollfd descriptor = {.fd = plue_events_fd(), .events = POLLIN};
    CHECK(descriptor.fd > 2 && plue_events_fd() == descriptor.fd, "%d", descriptor.fd);
    CHECK(poll(&descriptor, 1, 0) == 0, "it is readable, and nothing waits");
    struct ends ends = {.count = 0};
    submit_many(100, "later", "{}", NULL, &ends);
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
    submit_many(CALLS, "sleep", "{\"ms\":3600000}", &context, &ends);
    plue_abort_signal_abort(signal, "stop pressed");
    submit_many(1, "sleep", "{\"ms\":3600000}", &context, &ends);
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
    atomic_fetch_add(&shared_count, 1);
}

enum { SHARED_CALLS = 4000, SHARING = 8 };

static void *submit_and_dispatch(void *unused) {
    for (int i = 0; i < SHARED_CALLS / SHARING; i++) {
        plue_tool_submit("later", "{}", NULL, count_end, NULL);
    }
    while (atomic_load(&shared_count) < SHARED_CALLS) {
        plue_events_dispatch(1);
    }
    return unused;
}

/* Threads submit and dispatch at the same time. */
static void test_shared_dispatch(void) {
    atomic_store(&shared_count, 0);
    on_threads(SHARING, submit_and_dispatch, NULL);
    CHECK(atomic_load(&shared_count) == SHARED_CALLS, "%d", atomic_load(&shared_count));
}

static void test_submitted_shutdown(void) {
    struct ends ends = {.count = 0};
    submit_many(20, "sleep", "{\"ms\":3600000}", NULL, &ends);
    plue_shutdown();
    dispatch_until(&ends.count, 20);
    CHECK(ends.status == PLUE_SHUTDOWN, "%s", ends.json);
}

TEST(submit) {
    test_submitted();
    test_descriptor();
    test_submitted_aborts();
    test_submitted_in_callback();
    test_shared_dispatch();
}

TEST(submit_restarts) {
    test_submitted_at_start();
    test_submitted_shutdown();
    test_submitted_at_start();
}

static const char adder[] =
    "{\"name\":\"add\",\"namespace\":\"host\",\"description\":\"Adds two numbers.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"]},\"risk\":\"safe\"}";
static const char sum_of_2_and_3[] = "{\"a\":2,\"b\":3}";

static atomic_int destroyed;

static void note_destroyed(void *user_data) {
    atomic_fetch_add(&destroyed, 1);
}

/* The number of tools and questions that ran on this thread. */
static _Thread_local int runs_here;

static void run_add(plue_invocation_t *invocation, const char *params, void *user_data) {
    runs_here++;
    char json[60];
    snprintf(json, sizeof json, "{\"sum\":%ld}", number_in(params, "a") + number_in(params, "b"));
    plue_invocation_succeed(invocation, json);
}

static plue_invocation_t *held;
static atomic_int notified_aborts;

static void end_held(plue_invocation_t *invocation, void *user_data) {
    CHECK(plue_abort_signal_aborted(plue_invocation_signal(invocation)), "not aborted");
    atomic_fetch_add(&notified_aborts, 1);
    plue_invocation_fail(invocation, PLUE_ABORTED, "stopped");
}

/* Returns before its invocation has ended. */
static void run_held(plue_invocation_t *invocation, const char *params, void *user_data) {
    held = invocation;
    plue_invocation_on_abort(invocation, end_held, NULL);
}

/* Calls another tool, which then waits for this thread. */
static void run_nested(plue_invocation_t *invocation, const char *params, void *user_data) {
    char *json = NULL;
    plue_tool_context_t context = {.abort_signal = plue_invocation_signal(invocation)};
    int status = plue_tool_call("host:add", params, &context, &json);
    CHECK(status == PLUE_OK, "%s", json);
    plue_invocation_succeed(invocation, json);
    plue_free_json(json);
}

static void expect_registered(const char *definition, plue_execute_t execute, void *user_data) {
    int status = plue_register_tool(definition, execute, note_destroyed, user_data);
    CHECK(status == PLUE_OK, "%d: %s", status, plue_get_last_error());
}

static void register_named(const char *name, plue_execute_t execute, void *user_data) {
    char definition[200];
    snprintf(definition, sizeof definition,
             "{\"name\":\"host:%s\",\"description\":\"A tool of the host.\","
             "\"parameters\":{\"type\":\"object\"}}",
             name);
    expect_registered(definition, execute, user_data);
}

static void expect_sum(void) {
    expect_answer("host:add", sum_of_2_and_3, "{\"sum\":5}");
}

/* A definition that is rejected is destroyed immediately. */
static void expect_rejected(const char *definition, plue_execute_t execute, const char *part) {
    int before = atomic_load(&destroyed);
    int status = plue_register_tool(definition, execute, note_destroyed, NULL);
    CHECK(status == PLUE_INVALID_ARGUMENT && contains(plue_get_last_error(), part), "%d: %s", status,
          plue_get_last_error());
    CHECK(atomic_load(&destroyed) == before + 1, "%s: not destroyed", part);
}

static void test_registering(void) {
    expect_registered(adder, run_add, NULL);
    runs_here = 0;
    expect_sum();
    CHECK(runs_here == 1, "it ran on another thread than its caller's");
    expect_rejected(adder, run_add, "host:add");
    expect_rejected("{\"name\":\"\xff\",\"description\":\"d\"}", run_add, "UTF-8");
    expect_rejected(NULL, run_add, "definition_json");
    expect_rejected(adder, NULL, "execute is NULL");
    expect_sum();
}

/* Unregisters itself and ends its invocation: the user_data exists until this function returns. */
static void run_leaving(plue_invocation_t *invocation, const char *params, void *user_data) {
    int before = atomic_load(&destroyed);
    CHECK_OK(plue_unregister_tool("host:leaving"));
    plue_invocation_succeed(invocation, NULL);
    CHECK(atomic_load(&destroyed) == before && strcmp(user_data, "leaving") == 0, "destroyed");
}

static void test_leaving(void) {
    int before = atomic_load(&destroyed);
    register_named("leaving", run_leaving, "leaving");
    expect_answer("host:leaving", "{}", "null");
    CHECK(atomic_load(&destroyed) == before + 1, "not destroyed");
}

/* Tools of the host are called by a tool in JavaScript, and by a submitted call. */
static void test_dispatching(void) {
    runs_here = 0;
    expect_submitted("relay", "{\"name\":\"host:add\",\"params\":{\"a\":20,\"b\":22}}",
                     "{\"sum\":42}");
    expect_submitted("host:add", "{\"a\":1,\"b\":1}", "{\"sum\":2}");
    CHECK(runs_here == 2, "it ran on another thread");
    register_named("nested", run_nested, NULL);
    expect_answer("host:nested", sum_of_2_and_3, "{\"sum\":5}");
}

static void submit_held(const plue_tool_context_t *context, struct ends *ends) {
    held = NULL;
    submit_many(1, "host:held", "{}", context, ends);
    while (held == NULL) {
        plue_events_dispatch(-1);
    }
}

static void test_ending_later(void) {
    struct ends ends = {.count = 0};
    register_named("held", run_held, NULL);
    submit_held(NULL, &ends);
    plue_invocation_succeed(held, "{\"later\":true}");
    dispatch_until(&ends.count, 1);
    CHECK(strcmp(ends.json, "{\"later\":true}") == 0, "%s", ends.json);

    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal};
    submit_held(&context, &ends);
    plue_abort_signal_abort(signal, "enough");
    plue_abort_signal_release(signal);
    dispatch_until(&ends.count, 2);
    CHECK(ends.status == PLUE_ABORTED && contains(ends.json, "enough"), "%s", ends.json);
    while (atomic_load(&notified_aborts) == 0) {
        plue_events_dispatch(-1);
    }
}

static void test_unregistering(void) {
    int before = atomic_load(&destroyed);
    CHECK_OK(plue_unregister_tool("host:add"));
    CHECK(atomic_load(&destroyed) == before + 1, "not destroyed");
    CHECK(plue_unregister_tool(NULL) == PLUE_UNKNOWN_TOOL, "NULL");
    expect_registered(adder, run_add, NULL);
    expect_sum();
}

static void *call_added(void *unused) {
    for (int i = 0; i < 200; i++) {
        expect_sum();
    }
    return unused;
}

TEST(tools) {
    static const char *const ids[] = {"host:add", "host:nested", "host:held"};
    atomic_store(&destroyed, 0);
    test_registering();
    test_leaving();
    test_dispatching();
    test_ending_later();
    test_unregistering();
    on_threads(8, call_added, NULL);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        CHECK(plue_unregister_tool(ids[i]) == PLUE_OK, "%s: %s", ids[i], plue_get_last_error());
    }
    /* Rejected, unregistered before, and registered in the end. */
    CHECK(atomic_load(&destroyed) == 4 + 2 + 3, "%d", atomic_load(&destroyed));
}

static bool is_stopped;

static void run_stop(plue_invocation_t *invocation, const char *params, void *user_data) {
    is_stopped = true;
    plue_invocation_succeed(invocation, NULL);
}

static void run_photo(plue_invocation_t *invocation, const char *params, void *user_data) {
    plue_invocation_succeed(invocation,
                            "{\"content\":[{\"type\":\"text\",\"text\":\"A dot.\"},"
                            "{\"type\":\"image\",\"data\":\"R0lG\",\"mimeType\":\"image/gif\"}],"
                            "\"metadata\":{\"file\":\"dot.gif\"}}");
}

/* Offers tools to other callers, until one of them calls host:stop. */
TEST(offer) {
    static const char *const ids[] = {"host:add", "host:held", "host:photo", "host:stop"};
    is_stopped = false;
    expect_registered(adder, run_add, NULL);
    register_named("held", run_held, NULL);
    expect_registered("{\"name\":\"host:photo\",\"description\":\"Takes a photo.\",\"blocks\":true}",
                      run_photo, NULL);
    register_named("stop", run_stop, NULL);
    while (!is_stopped) {
        CHECK(plue_events_dispatch(-1) >= 0, "%s", plue_get_last_error());
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        plue_unregister_tool(ids[i]);
    }
}

/* Registers the tool, on a machine that may be slow. */
static int register_late(void) {
    int status;
    while ((status = plue_register_tool(adder, run_add, NULL, NULL)) == PLUE_TIMEOUT) {
    }
    return status;
}

/* A registration that takes too long leaves no tool behind: the next one succeeds. */
static void test_late_registration(void) {
    init_with((plue_options_t){.call_timeout_ms = 300});
    int process = -1;
    while (process < 0) {
        process = ask_for_process();
    }
    send_signal(process, SIGSTOP);
    CHECK(plue_register_tool(adder, run_add, NULL, NULL) == PLUE_TIMEOUT, "%s", plue_get_last_error());
    send_signal(process, SIGCONT);
    CHECK(register_late() == PLUE_OK, "%s", plue_get_last_error());
    plue_shutdown();
}

/* The tools stay registered when the sidecar ends, but not after a shutdown. */
TEST(tools_restarts) {
    atomic_store(&destroyed, 0);
    expect_registered(adder, run_add, NULL);
    expect_failure("crash", "{\"code\":7}", "runtime_crashed", "");
    expect_sum();
    CHECK(atomic_load(&destroyed) == 0, "%d", atomic_load(&destroyed));
    plue_shutdown();
    CHECK(atomic_load(&destroyed) == 1, "%d", atomic_load(&destroyed));
    expect_failure("host:add", sum_of_2_and_3, "unknown_tool", "host:add");
    expect_registered(adder, run_add, NULL);
    expect_sum();
    plue_shutdown();
    test_late_registration();
}

static atomic_bool is_over;
static int registrations;

static void *keep_registering(void *unused) {
    while (!atomic_load(&is_over)) {
        int status = plue_register_tool(adder, run_add, note_destroyed, NULL);
        CHECK(status == PLUE_OK || status == PLUE_SHUTDOWN || status == PLUE_RUNTIME_CRASHED, "%d: %s",
              status, plue_get_last_error());
        registrations++;
        plue_unregister_tool("host:add");
    }
    return unused;
}

/* Each tool is destroyed once, even if a shutdown removes it while it is being registered. */
TEST(tools_shutdown) {
    pthread_t thread;
    atomic_store(&destroyed, 0);
    atomic_store(&is_over, false);
    registrations = 0;
    pthread_create(&thread, NULL, keep_registering, NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(plue_start());
        plue_shutdown();
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    plue_shutdown();
    CHECK(atomic_load(&destroyed) == registrations, "%d of %d", atomic_load(&destroyed), registrations);
}

#define ACCEPT(content) "{\"word\":{\"action\":\"accept\",\"content\":" content "}}"

enum { TICKET_BYTES = 4000 };

/* Calls a tool that asks a question, and writes the ticket. */
static void suspend(char *ticket) {
    char *json = NULL;
    int status = plue_tool_call("ask_word", "{}", NULL, &json);
    const char *start = strstr(json, "\"ticket\":\"");
    CHECK(status == PLUE_INPUT_REQUIRED && start != NULL, "%d %s", status, json);
    start = start == NULL ? "" : start + strlen("\"ticket\":\"");
    snprintf(ticket, TICKET_BYTES, "%.*s", (int)strcspn(start, "\""), start);
    plue_free_json(json);
}

static void expect_resumed(const char *ticket, const char *answers, int wanted, const char *part) {
    char *json = NULL;
    int status = plue_tool_resume(ticket, answers, NULL, &json);
    CHECK(status == wanted && contains(json, part), "%d %s", status, json);
    plue_free_json(json);
}

static void answer(plue_invocation_t *invocation, const char *question, void *user_data) {
    runs_here++;
    plue_invocation_succeed(invocation, user_data);
}

/* Removes itself. The user_data lives until this function has returned and the call has ended. */
static void answer_and_leave(plue_invocation_t *invocation, const char *question, void *user_data) {
    plue_set_question(NULL, NULL, NULL);
    answer(invocation, question, user_data);
    CHECK(atomic_load(&destroyed) == 0, "destroyed while it runs");
}

static plue_abort_signal_t *signal_of_call;

static void abort_and_answer(plue_invocation_t *invocation, const char *question, void *user_data) {
    plue_abort_signal_abort(signal_of_call, "the user left");
    answer(invocation, question, user_data);
}

/* Each answering function is destroyed when it is replaced, and runs on the waiting thread. */
static void test_question_functions(void) {
    static char declined[] = "{\"action\":\"decline\"}";
    static char late[] = "{\"action\":\"accept\",\"content\":\"late\"}";
    runs_here = 0;
    atomic_store(&destroyed, 0);
    plue_set_question(answer_and_leave, note_destroyed, declined);
    expect_answer("confirm", "{}", "\"decline\"");
    CHECK(atomic_load(&destroyed) == 1, "not destroyed");
    plue_set_question(answer, note_destroyed, declined);
    expect_submitted("confirm", "{}", "\"decline\"");
    CHECK(runs_here == 2, "it ran on another thread");
    plue_set_question(NULL, note_destroyed, NULL);
    CHECK(atomic_load(&destroyed) == 3, "%d are destroyed", atomic_load(&destroyed));

    /* A call that is aborted while its question is answered does not continue. */
    signal_of_call = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal_of_call};
    plue_set_question(abort_and_answer, NULL, late);
    expect_failure_with(&context, "ask_word", "{}", "aborted", "aborted");
    plue_set_question(NULL, NULL, NULL);
    plue_abort_signal_release(signal_of_call);
}

struct race {
    const char *ticket;
    atomic_int ran;
    atomic_int rejected;
};

static void *resume_once(void *argument) {
    struct race *race = argument;
    int status = plue_tool_resume(race->ticket, ACCEPT("\"both\""), NULL, NULL);
    atomic_fetch_add(status == PLUE_OK ? &race->ran : &race->rejected, 1);
    CHECK(status == PLUE_OK || status == PLUE_TICKET_REFUSED, "%d", status);
    return NULL;
}

/* Only one of several concurrent answers continues the call. */
static void test_ticket_race(void) {
    char ticket[TICKET_BYTES];
    suspend(ticket);
    struct race race = {.ticket = ticket};
    on_threads(8, resume_once, &race);
    CHECK(race.ran == 1 && race.rejected == 7, "%d ran, %d rejected", race.ran, race.rejected);
}

/* A ticket that was changed is rejected, and leaves the call waiting. */
static void test_tampered(void) {
    char ticket[TICKET_BYTES];
    char changed[TICKET_BYTES];
    suspend(ticket);
    size_t length = strlen(ticket);
    for (size_t at = 0; at < length; at += length / 8) {
        /* The last digit of each part has bits without a meaning. */
        if (ticket[at + 1] == '.' || ticket[at + 1] == '\0') {
            continue;
        }
        memcpy(changed, ticket, length + 1);
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        expect_resumed(changed, ACCEPT("\"stolen\""), PLUE_TICKET_REFUSED, "its ticket ");
    }
    expect_resumed(ticket, ACCEPT("\"mine\""), PLUE_OK, "\"mine\"");
}

TEST(questions) {
    test_question_functions();
    test_ticket_race();
    test_tampered();
    expect_resumed(NULL, "{}", PLUE_INVALID_ARGUMENT, "ticket is NULL");
    CHECK(plue_tool_poll(NULL, NULL) == PLUE_INVALID_ARGUMENT, "%s", plue_get_last_error());
    CHECK(contains(plue_get_last_error(), "task_id is NULL"), "%s", plue_get_last_error());
}

/* The runtime crashes between the question and the answer: the ticket is still valid, and the tasks,
 * which were in the memory of the runtime, are lost. */
TEST(questions_restarts) {
    char ticket[TICKET_BYTES];
    char id[100] = "";
    char *json = NULL;
    suspend(ticket);
    int status = plue_tool_start("sleep", "{\"ms\":3600000}", NULL, &json);
    CHECK(status == PLUE_OK && sscanf(json, "{\"id\":\"%99[^\"]", id) == 1, "%d %s", status, json);
    plue_free_json(json);
    expect_failure("crash", "{\"code\":7}", "runtime_crashed", "");
    expect_resumed(ticket, ACCEPT("\"after\""), PLUE_OK, "\"word\":\"after\"");
    CHECK(plue_tool_poll(id, NULL) == PLUE_UNKNOWN_TASK, "%s", plue_get_last_error());
}

static void count(void *user_data) {
    ++*(int *)user_data;
}

static void find_line(const char *line, void *user_data) {
    CHECK(strchr(line, '\n') == NULL, "%s", line);
    *(int *)user_data += strcmp(line, "first of two") == 0 || strcmp(line, "second of two") == 0;
}

/* The output of tools goes to the host, line by line. */
TEST(log) {
    int found = 0;
    plue_set_log(find_line, &found);
    expect_answer("print", "{\"text\":\"first of two\\nsecond of two\"}", "null");
    dispatch_until(&found, 2);
    plue_set_log(NULL, NULL);
}

static void leave_log(const char *line, void *user_data) {
    ++*(int *)user_data;
    plue_set_log(NULL, NULL);
}

/* Has the tools print lines, and waits until the library has them. */
static void print_and_wait(const char *params) {
    struct pollfd events = {.fd = plue_events_fd(), .events = POLLIN};
    expect_answer("print", params, "null");
    poll(&events, 1, -1);
}

/* A callback that removes itself is not called again, and the waiting lines are printed. Lines that
 * wait at a shutdown are printed, too. The test that runs this part checks the standard error. */
TEST(log_left) {
    int count_of_lines = 0;
    plue_set_log(leave_log, &count_of_lines);
    print_and_wait("{\"text\":\"left one\\nleft two\\nleft three\"}");
    plue_events_dispatch(0);
    CHECK(count_of_lines == 1, "%d lines", count_of_lines);
    plue_set_log(leave_log, &count_of_lines);
    print_and_wait("{\"text\":\"shut down one\\nshut down two\"}");
    plue_shutdown();
    plue_set_log(NULL, NULL);
    CHECK(plue_events_dispatch(0) == 0 && count_of_lines == 1, "%d lines", count_of_lines);
}

/* Counts the calls of a callback before it is set or after it is removed. */
static atomic_bool is_watched;
static atomic_int late;

static void watch_list(void *user_data) {
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

/* After its removal, a callback is neither called again nor still running. */
TEST(taking_back) {
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

TEST(notices) {
    CHECK_OK(plue_start());
    int changes = 0;
    plue_set_list_changed(count, &changes);
    expect_registered(adder, run_add, NULL);
    dispatch_until(&changes, 1);
    plue_unregister_tool("host:add");
    dispatch_until(&changes, 2);
    plue_set_list_changed(NULL, NULL);
    expect_registered(adder, run_add, NULL);
    plue_unregister_tool("host:add");
    CHECK(plue_events_dispatch(0) == 0 && changes == 2, "%d", changes);
}
