/* The part of the host suite about what must hold while a call waits for an answer. */
#include "suite.h"

#include "check.h"
#include "plue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ACCEPT(content) "{\"word\":{\"action\":\"accept\",\"content\":" content "}}"

enum { TICKET_BYTES = 4000 };

/* Keeps the ticket of a failure. */
static void keep_ticket(char *ticket, const char *json) {
    const char *start = strstr(json, "\"ticket\":\"");
    CHECK(start != NULL, "%s", json);
    start = start == NULL ? "" : start + strlen("\"ticket\":\"");
    snprintf(ticket, TICKET_BYTES, "%.*s", (int)strcspn(start, "\""), start);
}

/* Calls a tool that asks. */
static void suspend(const char *tool, char *ticket) {
    char *json = NULL;
    int status = plue_tool_call(tool, "{}", NULL, &json);
    CHECK(status == PLUE_INPUT_REQUIRED, "%d %s", status, json);
    keep_ticket(ticket, json);
    plue_free_json(json);
}

static void expect_resumed(const char *ticket, const char *answers, int wanted, const char *part) {
    char *json = NULL;
    int status = plue_tool_resume(ticket, answers, NULL, &json);
    CHECK(status == wanted && contains(json, part), "%d %s", status, json);
    plue_free_json(json);
}

struct race {
    const char *ticket;
    atomic_int ran;
    atomic_int refused;
};

static void *resume_once(void *argument) {
    struct race *race = argument;
    int status = plue_tool_resume(race->ticket, ACCEPT("\"both\""), NULL, NULL);
    atomic_fetch_add(status == PLUE_OK ? &race->ran : &race->refused, 1);
    CHECK(status == PLUE_OK || status == PLUE_TICKET_REFUSED, "%d", status);
    return NULL;
}

/* Of several answers at once one continues the call. */
static void test_race(void) {
    char ticket[TICKET_BYTES];
    pthread_t threads[8];
    suspend("ask_word", ticket);
    struct race race = {.ticket = ticket};
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, resume_once, &race);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(race.ran == 1 && race.refused == 7, "%d ran, %d refused", race.ran, race.refused);
}

/* An answer that does not fit is asked for again, with what is wrong, and no step is repeated. */
static void test_misfit(void) {
    char ticket[TICKET_BYTES];
    char *json = NULL;
    suspend("ask_word", ticket);
    int status = plue_tool_resume(ticket, ACCEPT("\"x\""), NULL, &json);
    CHECK(status == PLUE_INPUT_REQUIRED && contains(json, "\"issues\":[{"), "%d %s", status, json);
    CHECK(contains(json, "minLength"), "%s", json);
    keep_ticket(ticket, json);
    plue_free_json(json);
    expect_resumed(ticket, ACCEPT("\"fits\""), PLUE_OK, "{\"steps\":1,\"word\":\"fits\"}");
}

/* What was declined does not run, and no later yes makes it run. */
static void test_declined(void) {
    char ticket[TICKET_BYTES];
    suspend("ask_word", ticket);
    expect_resumed(ticket, "{\"word\":{\"action\":\"decline\"}}", PLUE_OK, "\"word\":\"decline\"");
    expect_resumed(ticket, ACCEPT("\"late\""), PLUE_TICKET_REFUSED, "was used before");
}

/* A ticket that was changed, and answers to no question, leave the call waiting. */
static void test_tampered(void) {
    char ticket[TICKET_BYTES];
    char changed[TICKET_BYTES];
    suspend("ask_word", ticket);
    size_t length = strlen(ticket);
    for (size_t at = 0; at < length; at += length / 8) {
        /* The last digit of each part has bits that stand for nothing. */
        if (ticket[at + 1] == '.' || ticket[at + 1] == '\0') {
            continue;
        }
        memcpy(changed, ticket, length + 1);
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        expect_resumed(changed, ACCEPT("\"stolen\""), PLUE_TICKET_REFUSED, "its ticket ");
    }
    expect_resumed(ticket, "{\"other\":{\"action\":\"accept\"}}", PLUE_INVALID_ARGUMENTS, "no question");
    expect_resumed(ticket, "{\"word\":true}", PLUE_INVALID_ARGUMENTS, "the answer to");
    expect_resumed(ticket, "{}", PLUE_INPUT_REQUIRED, "\"ticket\"");
}

#define CLIENT(answer) "{\"client\":" answer "}"

/* A tool that this program is to run: the answer is its result, which has to fit. */
static void test_client(void) {
    char ticket[TICKET_BYTES];
    char *json = NULL;
    int status = plue_tool_call("locate", "{\"who\":\"Ann\"}", NULL, &json);
    CHECK(status == PLUE_INPUT_REQUIRED, "%d %s", status, json);
    CHECK(contains(json, "\"kind\":\"client\"") && contains(json, "\"arguments\":{\"who\":\"Ann\"}"),
          "%s", json);
    CHECK(contains(json, "\"schema\":{\"type\":\"object\""), "%s", json);
    keep_ticket(ticket, json);
    plue_free_json(json);
    status = plue_tool_resume(ticket, CLIENT("{\"action\":\"accept\",\"content\":{\"at\":\"x\"}}"),
                              NULL, &json);
    CHECK(status == PLUE_INPUT_REQUIRED && contains(json, "/at must be a number"), "%d %s", status,
          json);
    keep_ticket(ticket, json);
    plue_free_json(json);
    expect_resumed(ticket, CLIENT("{\"action\":\"accept\",\"content\":{\"at\":4}}"), PLUE_OK,
                   "{\"at\":4}");

    suspend("locate", ticket);
    expect_resumed(ticket, CLIENT("{\"action\":\"decline\"}"), PLUE_DENIED, "did not run it");
    /* Its question has no schema: the tool's own is the last word. */
    suspend("locate_freely", ticket);
    expect_resumed(ticket, CLIENT("{\"action\":\"accept\",\"content\":{\"at\":\"x\"}}"),
                   PLUE_INVALID_RESULT, "/at must be a number");
}

/* Answers with its user_data, once it has seen that it is to run the tool. */
static void run_locate(plue_invocation_t *invocation, const char *question, void *user_data) {
    CHECK(contains(question, "\"kind\":\"client\"") && contains(question, "\"tool\":\"locate\"") &&
              contains(question, "\"arguments\":{\"who\":\"Bob\"}"),
          "%s", question);
    plue_invocation_succeed(invocation, user_data);
}

/* The same, while the call waits. */
static void test_client_at_once(void) {
    static const struct {
        const char *answer;
        int status;
        const char *part;
    } rows[] = {
        {"{\"action\":\"accept\",\"content\":{\"at\":5}}", PLUE_OK, "{\"at\":5}"},
        {"{\"action\":\"accept\",\"content\":{}}", PLUE_INPUT_UNAVAILABLE, "did not fit 10 times"},
        {"{\"action\":\"cancel\"}", PLUE_DENIED, "did not run it"},
        {"{\"at\":5}", PLUE_INPUT_UNAVAILABLE, "must have the \\\"action\\\""},
        {"not JSON", PLUE_INPUT_UNAVAILABLE, "must have the \\\"action\\\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *json = NULL;
        plue_set_question(run_locate, NULL, (void *)(size_t)rows[i].answer);
        int status = plue_tool_call("locate", "{\"who\":\"Bob\"}", NULL, &json);
        CHECK(status == rows[i].status && contains(json, rows[i].part), "%s: %d %s", rows[i].answer,
              status, json);
        plue_free_json(json);
    }
    plue_set_question(NULL, NULL, NULL);
}

static plue_abort_signal_t *signal_of_call;

static void abort_and_answer(plue_invocation_t *invocation, const char *question, void *user_data) {
    (void)question;
    (void)user_data;
    plue_abort_signal_abort(signal_of_call, "the user left");
    plue_invocation_succeed(invocation, "{\"action\":\"accept\",\"content\":\"late\"}");
}

/* A call that is aborted while its host is asked does not go on with the answer. */
static void test_aborted(void) {
    char *json = NULL;
    signal_of_call = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal_of_call};
    plue_set_question(abort_and_answer, NULL, NULL);
    int status = plue_tool_call("ask_word", "{}", &context, &json);
    CHECK(status == PLUE_ABORTED && contains(json, "aborted"), "%d %s", status, json);
    plue_free_json(json);
    plue_set_question(NULL, NULL, NULL);
    plue_abort_signal_release(signal_of_call);
}

void suite_waiting(void) {
    test_race();
    test_misfit();
    test_declined();
    test_tampered();
    test_client();
    test_client_at_once();
    test_aborted();
}

/* The runtime dies between the question and the answer. */
void suite_waiting_restarts(void) {
    char ticket[TICKET_BYTES];
    char id[100] = "";
    char *json = NULL;
    suspend("ask_word", ticket);
    int status = plue_tool_start("sleep", "{\"ms\":3600000}", NULL, &json);
    CHECK(status == PLUE_OK && sscanf(json, "{\"id\":\"%99[^\"]", id) == 1, "%d %s", status, json);
    plue_free_json(json);
    expect_failure("crash", "{\"code\":7}", "runtime_crashed", "");
    expect_resumed(ticket, ACCEPT("\"after\""), PLUE_OK, "\"word\":\"after\"");
    /* Its tasks were kept in the memory that is gone. */
    status = plue_tool_poll(id, &json);
    CHECK(status == PLUE_UNKNOWN_TASK && contains(json, "no such task"), "%d %s", status, json);
    plue_free_json(json);
}
