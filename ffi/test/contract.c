/* The cases of contract.txt, and the part of the host suite that runs them. */
#include "contract.h"

#include "check.h"
#include "plue.h"

enum { LINE = 4000 };

static const struct contract_driver *driver;
static char title[LINE]; /* of the current case */
static bool submits;

/* The state that the lines before a call prepare. */
static char session[LINE];
static char message[LINE];
static char abort_reason[LINE];
static char steps[LINE]; /* of the next tool, one in each line */

/* The outcome of the last line that called the library. */
static int status;
static int flags;
static char *json;
static bool has_ended;
static char failure[LINE]; /* the message */
static char events[LINE];  /* that no line has expected yet, one in each line */
static char ticket[LINE];
static char task[LINE];

/* Returns the rest of a line that begins with the words and a space; NULL for other lines. */
static const char *after(const char *line, const char *words) {
    size_t length = strlen(words);
    if (strncmp(line, words, length) != 0 || (line[length] != ' ' && line[length] != '\0')) {
        return NULL;
    }
    return line + length + (line[length] == ' ');
}

/* Copies the value of a key, if the text has the key. */
static void copy_value(char *value, const char *text, const char *key) {
    char start[40];
    snprintf(start, sizeof start, "\"%s\":\"", key);
    const char *at = strstr(text, start);
    if (at != NULL) {
        at += strlen(start);
        snprintf(value, LINE, "%.*s", (int)strcspn(at, "\""), at);
    }
}

void contract_event(const char *event) {
    size_t length = strlen(events);
    snprintf(events + length, sizeof events - length, "%s\n", event);
}

void contract_end(int ended_with, int result_flags, const char *text, const char *why) {
    free(json);
    has_ended = true;
    status = ended_with;
    flags = result_flags;
    json = strdup(text);
    snprintf(failure, sizeof failure, "%s", why);
    copy_value(ticket, json, "ticket");
}

void contract_expect(const char *params, const char *part) {
    CHECK(contains(params, part), "%s: \"%s\" in %s", title, part, params);
}

static const char *or_null(const char *text) {
    return *text == '\0' ? NULL : text;
}

static void call(const char *operation, const char *name, const char *text) {
    char copy[LINE]; /* the end of the call may replace the ticket */
    snprintf(copy, sizeof copy, "%s", name);
    const struct contract_call called = {
        operation, submits, copy, or_null(text), or_null(session), or_null(message),
        or_null(abort_reason)};
    events[0] = '\0';
    has_ended = false;
    driver->call(&called);
    CHECK(has_ended, "%s: the call did not end", title);
    session[0] = message[0] = abort_reason[0] = '\0';
}

/* Makes a call from the name of a tool and, after a space, its parameters. */
static void call_tool(const char *operation, const char *line) {
    char name[100];
    int length = 0;
    sscanf(line, "%99s %n", name, &length);
    call(operation, name, line + length);
}

/* Acts on a line that calls the library. Returns false for other lines. */
static bool act(const char *line) {
    static const char *const definitions[] = {"register", "unregister", "question", "no question"};
    const char *rest;
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
        if ((rest = after(line, definitions[i])) != NULL) {
            has_ended = false;
            driver->define(definitions[i], rest, steps);
            CHECK(has_ended, "%s: the definition did not end", title);
            steps[0] = '\0';
            return true;
        }
    }
    if ((rest = after(line, "call")) != NULL) {
        call_tool("call", rest);
    } else if ((rest = after(line, "start")) != NULL) {
        call_tool("start", rest);
        copy_value(task, json, "id");
    } else if ((rest = after(line, "resume")) != NULL) {
        call("resume", ticket, rest);
    } else if ((rest = after(line, "answer")) != NULL) {
        call("answer", task, rest);
    } else if ((rest = after(line, "poll")) != NULL) {
        call("poll", rest, "");
    } else if (after(line, "cancel") != NULL) {
        call("cancel", task, "");
    } else if (after(line, "await") != NULL) {
        do {
            call("poll", task, "");
        } while (contains(json, "\"status\":\"working\""));
    } else {
        return false;
    }
    return true;
}

static void expect_event(const char *part) {
    size_t length = strcspn(events, "\n");
    CHECK(strncmp(events, part, strlen(part)) == 0, "%s: \"%s\" in %s", title, part, events);
    memmove(events, events + length + 1, strlen(events + length) + (events[length] == '\0'));
}

static void expect_failure_line(const char *line) {
    int wanted;
    char code[40];
    int length = 0;
    sscanf(line, "%d %39s %n", &wanted, code, &length);
    CHECK((status == wanted || status < 0) && is_failure(json, code), "%s: %s, not %d %s", title, code, status, json);
    CHECK(contains(failure, line + length), "%s: \"%s\" in %s", title, line + length, failure);
}

/* Acts on a line that prepares a call, or checks the last call. */
static void expect(const char *line) {
    const char *rest;
    if ((rest = after(line, "session")) != NULL) {
        snprintf(session, sizeof session, "%s", rest);
    } else if ((rest = after(line, "message")) != NULL) {
        snprintf(message, sizeof message, "%s", rest);
    } else if ((rest = after(line, "abort")) != NULL) {
        snprintf(abort_reason, sizeof abort_reason, "%s", rest);
    } else if ((rest = after(line, "ticket")) != NULL) {
        snprintf(ticket, sizeof ticket, "%s", rest);
    } else if ((rest = after(line, "tool")) != NULL) {
        size_t length = strlen(steps);
        snprintf(steps + length, sizeof steps - length, "%s\n", rest);
    } else if ((rest = after(line, "result")) != NULL) {
        CHECK(status == PLUE_OK && strcmp(json, rest) == 0, "%s: %d %s", title, status, json);
    } else if ((rest = after(line, "part")) != NULL) {
        CHECK(contains(json, rest), "%s: \"%s\" in %s", title, rest, json);
    } else if ((rest = after(line, "failure")) != NULL) {
        expect_failure_line(rest);
    } else if ((rest = after(line, "event")) != NULL) {
        expect_event(rest);
    } else if (after(line, "no event") != NULL) {
        CHECK(*events == '\0', "%s: %s", title, events);
    } else if ((rest = after(line, "blocks")) != NULL) {
        CHECK(flags == (strcmp(rest, "yes") == 0 ? PLUE_RESULT_BLOCKS : 0), "%s: %d", title, flags);
    } else if ((rest = after(line, "list")) != NULL) {
        char *list = plue_tool_list();
        CHECK(contains(list, rest), "%s: %s", title, list);
        plue_free_json(list);
    } else {
        CHECK(false, "%s: there is no line \"%s\"", title, line);
    }
}

void contract_run(const struct contract_driver *language, const char *group) {
    const char *path = getenv("PLUE_CONTRACT");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    CHECK(file != NULL, "PLUE_CONTRACT is not the path of contract.txt");
    int cases = 0;
    driver = language;
    for (int way = 0; file != NULL && way < 2; way++) {
        char line[LINE];
        bool is_wanted = false;
        submits = way == 1;
        rewind(file);
        while (fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            const char *name = after(line, "==");
            if (name != NULL) {
                snprintf(title, sizeof title, "%s", name);
                is_wanted = group == NULL || strncmp(name, group, strlen(group)) == 0;
                cases += is_wanted;
            } else if (is_wanted && *line != '\0' && *line != '#' && !act(line)) {
                expect(line);
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    free(json);
    json = NULL;
    CHECK(cases > 0, "no case");
    printf("contract: %d cases\n", cases);
}

static void run_step(plue_invocation_t *invocation, const char *params, const char *step) {
    const char *rest;
    double numbers[2];
    int code = 0;
    int length = 0;
    if ((rest = after(step, "expects")) != NULL) {
        contract_expect(params, rest);
    } else if ((rest = after(step, "metadata")) != NULL) {
        plue_invocation_metadata(invocation, rest);
    } else if ((rest = after(step, "output")) != NULL) {
        plue_invocation_output(invocation, rest);
    } else if (sscanf(step, "progress %lf %lf %n", &numbers[0], &numbers[1], &length) == 2) {
        plue_invocation_progress(invocation, numbers[0], numbers[1], step + length);
    } else if (after(step, "session") != NULL) {
        char text[100];
        snprintf(text, sizeof text, "{\"session\":\"%s\"}", plue_invocation_session_id(invocation));
        plue_invocation_metadata(invocation, text);
    } else if (after(step, "params") != NULL) {
        plue_invocation_succeed(invocation, params);
    } else if ((rest = after(step, "result")) != NULL) {
        plue_invocation_succeed(invocation, rest);
    } else if (sscanf(step, "failure %d %n", &code, &length) == 1) {
        plue_invocation_fail(invocation, code, step + length);
    } else {
        CHECK(false, "%s: there is no step \"%s\"", title, step);
    }
}

static void run_steps(plue_invocation_t *invocation, const char *params, void *user_data) {
    char copy[LINE];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", (const char *)user_data);
    for (char *step = strtok_r(copy, "\n", &rest); step != NULL; step = strtok_r(NULL, "\n", &rest)) {
        run_step(invocation, params, step);
    }
}

static void note_event(const char *event, void *unused) {
    contract_event(event);
}

static void note_end(int ended_with, const char *text, void *unused) {
    contract_end(ended_with, plue_get_last_result_flags(), text, plue_get_last_error());
}

static void submit_in_c(const struct contract_call *called, const plue_tool_context_t *context) {
    bool is_resumed = strcmp(called->operation, "resume") == 0;
    int submitted = (is_resumed ? plue_tool_submit_resume : plue_tool_submit)(
        called->name, called->json, context, note_end, NULL);
    CHECK(submitted == PLUE_OK, "%s: %s", title, plue_get_last_error());
    while (submitted == PLUE_OK && !has_ended) {
        plue_events_dispatch(-1);
    }
    CHECK(plue_get_last_result_flags() == 0, "%s: the flags of the dispatch", title);
}

static void call_in_c(const struct contract_call *called) {
    static const struct {
        const char *operation;
        int (*wait)(const char *, const char *, const plue_tool_context_t *, char **);
        int (*of_task)(const char *, char **);
    } functions[] = {
        {"call", plue_tool_call, NULL},     {"resume", plue_tool_resume, NULL},
        {"start", plue_tool_start, NULL},   {"answer", plue_tool_answer, NULL},
        {"poll", NULL, plue_tool_poll},     {"cancel", NULL, plue_tool_cancel},
    };
    size_t i = 0;
    while (strcmp(functions[i].operation, called->operation) != 0) {
        i++;
    }
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {called->session_id, called->message_id, signal, note_event, NULL};
    if (called->abort_reason != NULL) {
        plue_abort_signal_abort(signal, called->abort_reason);
    }
    if (called->is_submitted && i < 2) {
        submit_in_c(called, &context);
    } else {
        char *answer = NULL;
        int ended_with = functions[i].wait != NULL
                             ? functions[i].wait(called->name, called->json, &context, &answer)
                             : functions[i].of_task(called->name, &answer);
        note_end(ended_with, answer, NULL);
        plue_free_json(answer);
    }
    plue_abort_signal_release(signal);
}

static void define_in_c(const char *operation, const char *text, const char *of_tool) {
    int ended_with;
    if (strcmp(operation, "register") == 0) {
        ended_with = plue_register_tool(text, run_steps, free, strdup(of_tool));
    } else if (strcmp(operation, "unregister") == 0) {
        ended_with = plue_unregister_tool(text);
    } else if (strcmp(operation, "question") == 0) {
        ended_with = plue_set_question(run_steps, free, strdup(of_tool));
    } else {
        ended_with = plue_set_question(NULL, NULL, NULL);
    }
    note_end(ended_with, plue_get_last_error_json(), NULL);
}

void suite_contract(const char *group) {
    static const struct contract_driver in_c = {call_in_c, define_in_c};
    contract_run(&in_c, group);
}
