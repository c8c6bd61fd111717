/* How a call ended, and the last failure of each thread. */
#ifndef PLUE_OUTCOME_H
#define PLUE_OUTCOME_H

/* Both strings are on the heap, or static in plue_outcome_out_of_memory(). */
struct plue_outcome {
    char *json;    /* what the caller gets */
    char *message; /* NULL: success */
    int status;    /* PLUE_OK, PLUE_UNKNOWN_TOOL, ... */
    int flags;     /* of a success: PLUE_RESULT_BLOCKS, ... */
};

/* Once, before any other function. */
void plue_outcome_prepare(void);

/* Invalid UTF-8 in the message is replaced, because JSON is UTF-8. */
struct plue_outcome plue_outcome_failure(const char *code, const char *message);
struct plue_outcome plue_outcome_out_of_memory(void);

/* The event of a failure made by the functions above. The name is NULL or any text. NULL
 * when out of memory; else to be given to free(). */
char *plue_outcome_event(const struct plue_outcome *failure, const char *tool_name);

void plue_outcome_free(struct plue_outcome outcome);

/* Makes the outcome this thread's last, and returns its JSON, which is then the caller's. */
char *plue_outcome_answer(struct plue_outcome outcome);

/* Makes the outcome this thread's last, and returns its status. */
int plue_outcome_status(struct plue_outcome outcome);

/* Makes success this thread's last outcome. */
void plue_outcome_clear(void);

#endif
