/* The cases of contract.txt. README.md explains their lines. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* other languages load these functions from libsuite */

/* A call of the library: its line, and the earlier lines that prepare the call. Absent texts are
 * NULL. */
struct contract_call {
    const char *operation; /* "call", "resume", "start", "answer", "poll" or "cancel" */
    bool is_submitted;     /* of the first two: otherwise a thread waits */
    const char *name;      /* of a tool; a ticket; the id of a task */
    const char *json;
    const char *session_id;
    const char *message_id;
    const char *abort_reason; /* its signal is aborted before */
};

/* The library in a language. Each function reports events and ends by the functions below. */
struct contract_driver {
    void (*call)(const struct contract_call *call);
    /* "register" with a definition, "unregister" with an id, "question" and "no question". The steps
     * are the lines of the tool or of the answer. */
    void (*define)(const char *operation, const char *text, const char *steps);
};

/* An event of the call. */
void contract_event(const char *json);
/* The end of the call or definition. `message` is the message of a failure. A status below 0 means
 * that the language has no number for the status. */
void contract_end(int status, int flags, const char *json, const char *message);
/* Checks that the parameters of a tool have a part. */
void contract_expect(const char *params, const char *part);

/* Runs the cases whose title begins with the group; NULL: all. Each runs with calls that wait, and with
 * calls that are submitted. */
void contract_run(const struct contract_driver *driver, const char *group);

/* Runs the cases with the C interface, as a part of the host suite. */
void suite_contract(const char *group);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
