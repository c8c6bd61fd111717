/* The output of the sidecar. It is written to the standard error of this process; its last lines
 * are stored for the message about a failed start. A slow reader of the standard error blocks
 * nothing: excess output is dropped, and its size is printed. A host with a callback for log lines
 * (plue_set_log()) receives the output line by line instead. */
#pragma once

#include "std.h"

enum { PLUE_OUTPUT_WAITING = 64 << 10, PLUE_OUTPUT_KEPT = 4 << 10, PLUE_OUTPUT_LINE = 4 << 10 };

/* Must be used by one thread at a time. */
struct plue_output {
    int from; /* the read end of the pipe; -1 after the end of the output */
    int to;   /* a copy of descriptor 2; -1 if that was closed */
    size_t waiting;
    uint64_t dropped;
    size_t kept;
    char bytes[PLUE_OUTPUT_WAITING];  /* waiting bytes */
    char last[PLUE_OUTPUT_KEPT];      /* the last bytes of the output */
    size_t line_length;
    char line[PLUE_OUTPUT_LINE]; /* an incomplete line, for a host with a callback */
};

/* Returns the sidecar's end of the pipe, or -1 with errno. */
int plue_output_open(struct plue_output *output);
void plue_output_close(struct plue_output *output);

/* Does not wait. */
void plue_output_read(struct plue_output *output);

bool plue_output_is_waiting(const struct plue_output *output);

/* Writes waiting bytes, as many as the standard error takes without waiting. */
void plue_output_write(struct plue_output *output);

/* Appends a colon and the last lines, if there are any. */
void plue_output_append_last(const struct plue_output *output, char *text, size_t size);
