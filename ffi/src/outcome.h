/* How a call ended, and the last failure of each thread. */
#pragma once

#include "std.h"

/* Both strings are on the heap, or static if plue_outcome_out_of_memory() made the outcome. */
struct plue_outcome {
    char *json;    /* the result or the failure, for the caller */
    char *message; /* NULL: success */
    int status;    /* PLUE_OK, PLUE_UNKNOWN_TOOL, ... */
    int flags;     /* for a success: PLUE_RESULT_BLOCKS, ... */
};

/* Must be called once, before any other function. */
void plue_outcome_prepare(void);

/* Invalid UTF-8 in the message is replaced, because JSON is UTF-8. */
struct plue_outcome plue_outcome_failure(const char *code, const char *message);
struct plue_outcome plue_outcome_failure_of(const char *code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct plue_outcome plue_outcome_out_of_memory(void);

/* Returns the event of a failure made by the functions above. The name is NULL or any text. Returns
 * NULL when out of memory; otherwise the caller frees the event. */
char *plue_outcome_event(const struct plue_outcome *failure, const char *tool_name);

void plue_outcome_free(struct plue_outcome outcome);

/* These functions set this thread's last outcome. The caller owns the JSON of the first one. */
char *plue_outcome_answer(struct plue_outcome outcome);
int plue_outcome_status(struct plue_outcome outcome);
int plue_outcome_fail(struct plue_outcome outcome); /* returns -1 */
void plue_outcome_clear(void);                      /* a success */
