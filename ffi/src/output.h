/* What the sidecar prints: it goes on to the standard error of this process, and its end is kept for
 * the message about a failed start. A reader that does not read holds nobody up: what does not fit is
 * dropped, and the number of bytes is told. A host that takes the log (plue_set_log()) gets it line by
 * line in place of its standard error. */
#ifndef PLUE_OUTPUT_H
#define PLUE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLUE_OUTPUT_WAITING = 64 << 10, PLUE_OUTPUT_KEPT = 4 << 10, PLUE_OUTPUT_LINE = 4 << 10 };

/* One thread at a time uses it. */
struct plue_output {
    int from; /* the end of a pipe; -1: it has ended */
    int to;   /* a copy of descriptor 2; -1: that was closed */
    size_t waiting;
    uint64_t dropped;
    size_t kept;
    char bytes[PLUE_OUTPUT_WAITING];  /* that wait */
    char last[PLUE_OUTPUT_KEPT];      /* the last that came */
    size_t line_length;
    char line[PLUE_OUTPUT_LINE]; /* the beginning of a line, for a host that takes the log */
};

/* Returns the end of the pipe for the sidecar, or -1 with errno. */
int plue_output_open(struct plue_output *output);
void plue_output_close(struct plue_output *output);

/* Does not wait. */
void plue_output_read(struct plue_output *output);

bool plue_output_is_waiting(const struct plue_output *output);

/* Writes bytes, when poll() has reported that this is possible. */
void plue_output_write(struct plue_output *output);

/* Adds the last lines, if there are any, after a colon. */
void plue_output_append_last(const struct plue_output *output, char *text, size_t size);

#endif
