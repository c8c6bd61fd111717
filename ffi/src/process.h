/* The sidecar's process: its start and its end.
 *
 * On Linux a guardian stands between this process and the sidecar. The guardian shares the memory
 * of this process, so that a large host starts it without a copy. It adopts the processes that the
 * sidecar and its children leave behind, and kills them when the sidecar or this process ends.
 * Elsewhere the sidecar is a child of this process, and its process group is killed. */
#pragma once

#include "std.h"

struct plue_process;

/* The program to start. */
struct plue_launch {
    char *const *argv;             /* NULL: the default sidecar */
    const char *working_directory; /* NULL for that of this process */
    const char *module;            /* the module of the tools; may be NULL */
    int socket;                    /* becomes descriptor 3 */
    int output;                    /* becomes descriptors 1 and 2 */
};

/* Starts the program in a process group of its own. The program must be running by `deadline_ms`,
 * on the clock of plue_now_ms(). On failure, returns NULL and writes the reason to `why`. */
struct plue_process *plue_process_start(const struct plue_launch *launch, uint64_t deadline_ms,
                                        char *why, size_t why_size);

/* Returns a descriptor that becomes readable when the process has a report. */
int plue_process_news(const struct plue_process *process);

/* Reads the reports. Returns true if the process has ended. Does not wait. */
bool plue_process_has_ended(struct plue_process *process);

/* Kills the process, and everything that it started. Any thread may call it before the end. */
void plue_process_kill(struct plue_process *process);

/* Stops using the descriptors, which the host has closed and whose numbers it may reuse. */
void plue_process_forget_descriptors(struct plue_process *process);

/* Waits for the end of the process and of everything that it started. Kills the process
 * immediately, or when it does not end in time. Appends its exit status to `why`. Returns even if
 * the system cannot end the process. Frees `process`. */
void plue_process_bury(struct plue_process *process, bool kill_now, char *why, size_t why_size);
