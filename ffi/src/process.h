/* Child processes: how the sidecar's is started, and how it is seen out. */
#ifndef PLUE_PROCESS_H
#define PLUE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts the program `argv`, or the default sidecar if that is NULL, in a process group of its own
 * and with `socket` as its descriptor 3. On Linux the child is killed when the calling *thread* ends.
 * `deadline_ms` is a time of plue_now_ms(): the program must run by then. Returns the process, or -1
 * with the reason in `why`. */
pid_t plue_process_start(char *const *argv, const char *working_directory, int socket,
                         uint64_t deadline_ms, char *why, size_t why_size);

/* Around every fork() of this process, whoever makes it: a child must not keep what belongs to a
 * start that is under way. */
void plue_process_before_fork(void);
void plue_process_after_fork_in_parent(void);
void plue_process_after_fork_in_child(void);

/* A descriptor that becomes readable when the process ends; -1 where the system has none. */
int plue_process_watch(pid_t process);

/* Says whether the process has ended. It stays to be buried. */
bool plue_process_has_ended(pid_t process);

/* Waits for the end of a process that was told to go, or kills it, at once or when it takes too
 * long; then kills what is left of its group. Adds how it ended to `why`. Gives up on a process that
 * the system does not end even then. */
void plue_process_bury(pid_t process, bool kill_now, char *why, size_t why_size);

#endif
