/* The differences between Linux and macOS, and the few system calls that need care. */
#ifndef PLUE_PLATFORM_H
#define PLUE_PLATFORM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Milliseconds of a clock that is never set. */
uint64_t plue_now_ms(void);

/* The milliseconds until then, for poll(): -1 for PLUE_NEVER_MS, 0 if that time is over. */
int plue_ms_until(uint64_t at_ms);

/* Sleeps until the word has another value than `value`, at the latest until `at_ms`. May return
 * earlier: look again. */
enum { PLUE_NEVER_MS = 0 };
void plue_park(atomic_uint *word, unsigned value, uint64_t at_ms);

/* Wakes the threads that sleep on the word, which has been changed. Uses its address alone: the word
 * may be gone already. */
void plue_unpark(const atomic_uint *word);

/* Whether this process runs in valgrind or has ThreadSanitizer. Neither knows a child that shares the
 * memory of its parent. */
bool plue_is_observed(void);

/* Order what was done before a release of an address before what is done after an acquire of it, for
 * ThreadSanitizer. In a host that is compiled with it, it sees no atomic operation of a library that
 * is not, but sees malloc(), free(), memcpy() and the like. Elsewhere they do nothing. */
void plue_order_release(const void *address);
void plue_order_acquire(const void *address);

/* Gives a reference back. Returns true if it was the last one: the object is to be freed. */
bool plue_was_last(atomic_uint *references);

/* pthread_cancel() must not end a thread inside the library: its call lives on that thread's stack,
 * and it may hold the lock. Each function that waits or writes has cancellation off until it returns, and so
 * have its callbacks; a requested cancellation happens afterwards. */
#define PLUE_WITHOUT_CANCELLATION \
    __attribute__((cleanup(plue_cancellation_restore), unused)) int cancellation = \
        plue_cancellation_off()
int plue_cancellation_off(void);
void plue_cancellation_restore(const int *state);

/* True if this process has more rights than the process that chose its environment. */
bool plue_has_more_rights(void);

/* NULL if it is not set, or plue_has_more_rights(). */
const char *plue_environment(const char *name);

/* Closes a descriptor, if it is one, and makes it -1. */
void plue_close(int *descriptor);

/* Copies a descriptor to one that is at least `least` and is closed on exec. Returns it, or -1 with
 * errno. */
int plue_copy_descriptor(int descriptor, int least);

/* Makes a descriptor at least `least`, if it is one: the old one is closed where it moves. Returns
 * the descriptor, or -1 with errno. */
int plue_move_descriptor(int descriptor, int least);

/* Descriptors above 2 that are closed on exec and never block. Return 0, or -1 with errno. */
int plue_socket_pair(int pair[2]);
int plue_pipe(int pair[2]);

/* A descriptor above 2 that poll() finds readable from a time on. Returns -1 with errno. */
int plue_alarm_new(void);

/* Sets the time; PLUE_NEVER_MS is never. A time that has passed is now. */
void plue_alarm_set(int alarm, uint64_t at_ms);

/* Gives a descriptor, which a child of fork() shares with its parent, an alarm of its own. */
void plue_alarm_renew(int alarm);

/* send() that never blocks, never raises SIGPIPE and is not interrupted. */
ssize_t plue_send(int socket, const void *bytes, size_t length);

/* Opens the standard error anew, if it is a pipe or a terminal, for writes that do not wait: the flag of the
 * host's stays as it is. Copies another. Returns a descriptor above 2, or -1. */
int plue_open_standard_error(void);

/* Writes what the standard error takes without waiting, when poll() calls it writable. Never raises SIGPIPE. */
ssize_t plue_write_error(int descriptor, const void *bytes, size_t length);

/* Prints a line on the standard error, if that takes it without waiting: nobody may read it. A longer
 * one is cut. */
enum { PLUE_PRINTED_LINE = 4000 };
void plue_print_line(const char *text, size_t length);

/* strerror(), with what to do where no descriptor is left. */
const char *plue_error_text(int error);

/* Starts a thread that gets none of the process's signals. Returns 0 or an errno. */
int plue_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
