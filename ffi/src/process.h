/* Child processes: how the sidecar's is started, and how it is seen out. */
#ifndef PLUE_PROCESS_H
#define PLUE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts the program `argv`, or the default sidecar if that is NULL, in a process group of its own
 * and with `socket` as its descriptor 3. On Linux the child is killed when the calling *thread* ends.
 * Returns the process, or -1 with the reason in `why`. */
pid_t plue_process_start(char *const *argv, const char *working_directory, int socket, char *why,
                         size_t why_size);

/* Waits for the end of a process that was told to go, or kills it, at once or when it takes too
 * long; then kills what is left of its group. Adds how it ended to `why`. */
void plue_process_bury(pid_t process, bool kill_now, char *why, size_t why_size);

#endif
