#include "outcome.h"

#include "plue.h"
#include "text.h"

#include <stdarg.h>

/* The outcome if there is no memory for another one. It is never freed. */
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

struct plue_outcome plue_outcome_out_of_memory(void) {
    return (struct plue_outcome){out_of_memory_json, out_of_memory_message, PLUE_OUT_OF_MEMORY, 0};
}

void plue_outcome_free(struct plue_outcome outcome) {
    free_string(outcome.json);
    free_string(outcome.message);
}

/* A buffer for a text of several parts, which is large enough for all of them. */
struct writer {
    char *text;
    size_t length;
};

static void write_text(struct writer *writer, const char *text) {
    size_t length = strlen(text);
    memcpy(writer->text + writer->length, text, length + 1);
    writer->length += length;
}

/* Writes the content of a JSON string, which has at most 6 times the length of the text. */
static void write_escaped(struct writer *writer, const char *text) {
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        char piece[] = {(char)*at, '\0', '\0', '\0', '\0', '\0', '\0'};
        if (*at == '"' || *at == '\\') {
            piece[0] = '\\';
            piece[1] = (char)*at;
        } else if (*at < 0x20) {
            memcpy(piece, "\\u00", 4);
            piece[4] = digits[*at >> 4];
            piece[5] = digits[*at & 15];
        }
        write_text(writer, piece);
    }
}

static int status_of(const char *code) {
    static const struct {
        const char *code;
        int status;
    } statuses[] = {
        {"unknown_tool", PLUE_UNKNOWN_TOOL},
        {"aborted", PLUE_ABORTED},
        {"timeout", PLUE_TIMEOUT},
        {"overloaded", PLUE_OVERLOADED},
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
    /* A path or a system's message may be in another encoding, or be truncated. */
    struct plue_outcome outcome = {NULL, plue_text_repair(message, strlen(message)),
                                   status_of(code), 0};
    if (outcome.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    size_t length = strlen(outcome.message);
    outcome.json = malloc(sizeof head + strlen(code) + sizeof middle + 6 * length + sizeof tail);
    if (outcome.json == NULL) {
        plue_outcome_free(outcome);
        return plue_outcome_out_of_memory();
    }
    struct writer writer = {outcome.json, 0};
    write_text(&writer, head);
    write_text(&writer, code);
    write_text(&writer, middle);
    write_escaped(&writer, outcome.message);
    write_text(&writer, tail);
    return outcome;
}

struct plue_outcome plue_outcome_failure_of(const char *code, const char *format, ...) {
    va_list values;
    char *message = NULL;
    va_start(values, format);
    int length = vasprintf(&message, format, values);
    va_end(values);
    if (length < 0) {
        return plue_outcome_out_of_memory();
    }
    struct plue_outcome outcome = plue_outcome_failure(code, message);
    free(message);
    return outcome;
}

char *plue_outcome_event(const struct plue_outcome *failure, const char *tool_name) {
    static const char head[] = "{\"type\":\"error\",\"tool\":\"";
    static const char middle[] = "\",";
    const char *name = tool_name == NULL ? "" : tool_name;
    const char *members = failure->json + 1; /* after the "{" */
    char *tool = plue_text_repair(name, strlen(name));
    char *json = NULL;
    if (tool != NULL) {
        json = malloc(sizeof head + 6 * strlen(tool) + sizeof middle + strlen(members));
    }
    if (json != NULL) {
        struct writer writer = {json, 0};
        write_text(&writer, head);
        write_escaped(&writer, tool);
        write_text(&writer, middle);
        write_text(&writer, members);
    }
    free(tool);
    return json;
}

static _Thread_local struct plue_outcome last;

/* The destructor of the key frees the outcome of a thread that ends. If the process has no free
 * key, that memory leaks. */
static pthread_key_t key;
static bool has_key;

static void free_last(void *outcome) {
    plue_outcome_free(*(struct plue_outcome *)outcome);
    *(struct plue_outcome *)outcome = (struct plue_outcome){.json = NULL};
}

void plue_outcome_prepare(void) {
    has_key = pthread_key_create(&key, free_last) == 0;
}

/* Takes ownership of the outcome. */
static void set_last(struct plue_outcome outcome) {
    plue_outcome_free(last);
    last = outcome;
    if (has_key && outcome.message != NULL) {
        pthread_setspecific(key, &last);
    }
}

void plue_outcome_clear(void) {
    set_last((struct plue_outcome){.json = NULL});
}

char *plue_outcome_answer(struct plue_outcome outcome) {
    if (outcome.message == NULL) {
        set_last((struct plue_outcome){.flags = outcome.flags});
        return outcome.json;
    }
    char *copy = plue_text_copy(outcome.json, strlen(outcome.json));
    set_last((struct plue_outcome){copy == NULL ? out_of_memory_json : copy, outcome.message,
                                   outcome.status, 0});
    return outcome.json;
}

int plue_outcome_status(struct plue_outcome outcome) {
    int status = outcome.status;
    plue_free_json(plue_outcome_answer(outcome));
    return status;
}

int plue_outcome_fail(struct plue_outcome outcome) {
    plue_outcome_status(outcome);
    return -1;
}

const char *plue_get_last_error(void) {
    return last.message == NULL ? "No error" : last.message;
}

const char *plue_get_last_error_json(void) {
    return last.json == NULL ? "{}" : last.json;
}

int plue_get_last_result_flags(void) {
    return last.flags;
}
