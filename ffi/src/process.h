/* The sidecar's process: how it is started, and how it is seen out.
 *
 * On Linux a guardian stands between this process and the sidecar. It is a process that shares the
 * memory of this one, so that starting it costs a large host nothing. It adopts what the sidecar and
 * its children leave behind, and kills all of it when the sidecar ends or this process does, however
 * that ends. Elsewhere the sidecar is a child of this process, and its process group is killed. */
#ifndef PLUE_PROCESS_H
#define PLUE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plue_process;

/* The program to start. */
struct plue_launch {
    char *const *argv;             /* NULL: the default sidecar */
    const char *working_directory; /* NULL: that of this process */
    const char *module;            /* of the tools; may be NULL */
    int socket;                    /* becomes descriptor 3 */
    int output;                    /* becomes descriptors 1 and 2 */
};

/* Starts the process, in a group of its own. `deadline_ms` is a time of plue_now_ms(): the program
 * must run by then. NULL: with the reason in `why`. */
struct plue_process *plue_process_start(const struct plue_launch *launch, uint64_t deadline_ms,
                                        char *why, size_t why_size);

/* A descriptor that becomes readable when there is news of the process. */
int plue_process_news(const struct plue_process *process);

/* Reads the reports. Returns true if the process has ended. Does not wait. */
bool plue_process_has_ended(struct plue_process *process);

/* Kills the process, and everything that it started. From any thread, before it is buried. */
void plue_process_kill(struct plue_process *process);

/* Uses and closes its descriptors no more: the host has closed them, and the numbers may be others'. */
void plue_process_forget_descriptors(struct plue_process *process);

/* Waits for the end of a process that was told to go, or kills it, at once or when it takes too
 * long, and of everything that it started. Adds how it ended to `why`. Gives up on a process that
 * the system does not end even then. Frees it. */
void plue_process_bury(struct plue_process *process, bool kill_now, char *why, size_t why_size);

#endif
