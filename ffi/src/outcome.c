#include "outcome.h"

#include "plue.h"
#include "text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is answered when there is no memory to say so. Never freed. */
static char out_of_memory_json[] = "{\"error\":\"out_of_memory\",\"message\":\"Out of memory\"}";
static char out_of_memory_message[] = "Out of memory";

static void free_string(char *string) {
    if (string != out_of_memory_json && string != out_of_memory_message) {
        free(string);
    }
}

void plue_free_json(char *json) {
    free_string(json);
}

void plue_free_string(char *string) {
    free_string(string);
}

struct plue_outcome plue_outcome_out_of_memory(void) {
    return (struct plue_outcome){out_of_memory_json, out_of_memory_message, PLUE_OUT_OF_MEMORY};
}

void plue_outcome_free(struct plue_outcome outcome) {
    free_string(outcome.json);
    free_string(outcome.message);
}

/* Writes `text` as the inside of a JSON string. `target` has room for 6 times its length. */
static size_t escape(char *target, const char *text) {
    size_t length = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            target[length++] = '\\';
            target[length++] = (char)*at;
        } else if (*at < 0x20) {
            length += (size_t)sprintf(target + length, "\\u%04x", *at);
        } else {
            target[length++] = (char)*at;
        }
    }
    return length;
}

static int status_of(const char *code) {
    static const struct {
        const char *code;
        int status;
    } statuses[] = {
        {"unknown_tool", PLUE_UNKNOWN_TOOL},
        {"aborted", PLUE_ABORTED},
        {"invalid_argument", PLUE_INVALID_ARGUMENT},
        {"would_deadlock", PLUE_WOULD_DEADLOCK},
        {"runtime_unavailable", PLUE_RUNTIME_UNAVAILABLE},
        {"runtime_gone", PLUE_RUNTIME_GONE},
        {"runtime_crashed", PLUE_RUNTIME_CRASHED},
        {"shutdown", PLUE_SHUTDOWN},
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (strcmp(statuses[i].code, code) == 0) {
            return statuses[i].status;
        }
    }
    return PLUE_OTHER;
}

struct plue_outcome plue_outcome_failure(const char *code, const char *message) {
    static const char head[] = "{\"error\":\"";
    static const char middle[] = "\",\"message\":\"";
    static const char tail[] = "\"}";
    /* A path or a system's message may be in another encoding, or be cut short. */
    struct plue_outcome outcome = {NULL, plue_text_repair(message, strlen(message)),
                                   status_of(code)};
    if (outcome.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    size_t length = strlen(outcome.message);
    size_t size = sizeof head + strlen(code) + sizeof middle + 6 * length + sizeof tail;
    outcome.json = malloc(size);
    if (outcome.json == NULL) {
        plue_outcome_free(outcome);
        return plue_outcome_out_of_memory();
    }
    size_t at = (size_t)sprintf(outcome.json, "%s%s%s", head, code, middle);
    at += escape(outcome.json + at, outcome.message);
    strcpy(outcome.json + at, tail);
    return outcome;
}

char *plue_outcome_event(const struct plue_outcome *failure, const char *tool_name) {
    static const char head[] = "{\"type\":\"error\",\"tool\":\"";
    const char *name = tool_name == NULL ? "" : tool_name;
    char *tool = plue_text_repair(name, strlen(name));
    char *json = tool == NULL
                     ? NULL
                     : malloc(sizeof head + 6 * strlen(tool) + 2 + strlen(failure->json));
    if (json != NULL) {
        size_t at = (size_t)sprintf(json, "%s", head);
        at += escape(json + at, tool);
        /* The failure's own members follow. */
        sprintf(json + at, "\",%s", failure->json + 1);
    }
    free(tool);
    return json;
}

/* ------------------------------------------------------------- the last failure, per thread */

/* A key, not a thread-local variable: it has a destructor on every system, and threads that never
 * fail cost nothing. */
static pthread_key_t last_key;

static void free_last(void *last) {
    plue_outcome_free(*(struct plue_outcome *)last);
    free(last);
}

void plue_outcome_prepare(void) {
    pthread_key_create(&last_key, free_last);
}

/* NULL until the thread's first failure. */
static struct plue_outcome *get_last(void) {
    return pthread_getspecific(last_key);
}

/* NULL when out of memory. */
static struct plue_outcome *get_or_make_last(void) {
    struct plue_outcome *last = get_last();
    if (last != NULL) {
        return last;
    }
    last = calloc(1, sizeof *last);
    if (last != NULL && pthread_setspecific(last_key, last) != 0) {
        free(last);
        return NULL;
    }
    return last;
}

void plue_outcome_clear(void) {
    struct plue_outcome *last = get_last();
    if (last != NULL) {
        plue_outcome_free(*last);
        *last = (struct plue_outcome){.json = NULL};
    }
}

char *plue_outcome_answer(struct plue_outcome outcome) {
    if (outcome.message == NULL) {
        plue_outcome_clear();
        return outcome.json;
    }
    struct plue_outcome *last = get_or_make_last();
    if (last == NULL) {
        free_string(outcome.message);
        return outcome.json;
    }
    plue_outcome_free(*last);
    last->message = outcome.message;
    last->json = plue_text_copy(outcome.json, strlen(outcome.json));
    if (last->json == NULL) {
        last->json = out_of_memory_json;
    }
    return outcome.json;
}

int plue_outcome_status(struct plue_outcome outcome) {
    int status = outcome.status;
    plue_free_json(plue_outcome_answer(outcome));
    return status;
}

const char *plue_get_last_error(void) {
    struct plue_outcome *last = get_last();
    return last == NULL || last->message == NULL ? "No error" : last->message;
}

const char *plue_get_last_error_json(void) {
    struct plue_outcome *last = get_last();
    return last == NULL || last->json == NULL ? "{}" : last->json;
}
