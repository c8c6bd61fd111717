/* The suite as a library that a JavaScript runtime loads: the native app in guest mode. */
#include "check.h"
#include "plue.h"

PLUE_API int suite_start(const char *arguments);
PLUE_API int suite_status(void);
PLUE_API char *suite_call_here(void);

enum { MOST_PARTS = 64 };

static atomic_int status = -1;
static char buffer[4096];

static void *run(void *unused) {
    char *parts[MOST_PARTS];
    int count = 0;
    char *rest = NULL;
    for (char *part = strtok_r(buffer, " ", &rest); part != NULL && count < MOST_PARTS;
         part = strtok_r(NULL, " ", &rest)) {
        parts[count++] = part;
    }
    suite_run(NULL, count, parts);
    atomic_store(&status, check_verdict("suite"));
    return NULL;
}

/* Starts the named parts, separated by spaces, on a new thread. Returns 0. */
int suite_start(const char *arguments) {
    snprintf(buffer, sizeof buffer, "%s", arguments);
    atomic_store(&status, -1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0) {
        return -1;
    }
    return pthread_detach(thread);
}

/* -1 while the parts run, then 0 or 1. */
int suite_status(void) {
    return atomic_load(&status);
}

/* Calls a tool on the calling thread. */
char *suite_call_here(void) {
    return plue_tool_execute("echo", "{}", NULL);
}
