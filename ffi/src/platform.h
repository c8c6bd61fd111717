/* The differences between Linux and macOS, and the few system calls that need care. */
#pragma once

#include "std.h"

/* Returns the time in milliseconds of a monotonic clock. */
uint64_t plue_now_ms(void);

/* Returns the milliseconds until a time, for poll(): -1 for PLUE_NEVER_MS, 0 for a past time. */
int plue_ms_until(uint64_t at_ms);

/* Sleeps until the word differs from `value`, at most until `at_ms`. May return earlier, so check
 * the word again. */
enum { PLUE_NEVER_MS = 0 };
void plue_park(atomic_uint *word, unsigned value, uint64_t at_ms);

/* Wakes the threads that sleep on the word, which has changed. Uses only the address of the word,
 * which may have been freed. */
void plue_unpark(const atomic_uint *word);

/* Returns true if this process runs in valgrind or has ThreadSanitizer. Neither supports a child
 * that shares its parent's memory. */
bool plue_is_observed(void);

/* For ThreadSanitizer: orders what was done before a release of an address before what is done
 * after an acquire of it. A host with ThreadSanitizer does not see atomic operations of a library
 * without it, but sees malloc(), free(), memcpy() and the like. Otherwise these functions do
 * nothing. */
void plue_order_release(const void *address);
void plue_order_acquire(const void *address);

/* Releases a reference. Returns true if it was the last one: the caller must free the object. */
bool plue_was_last(atomic_uint *references);

/* pthread_cancel() must not end a thread inside the library: its call lives on that thread's stack,
 * and it may hold the lock. Each function that waits or writes disables cancellation until it
 * returns, including during its callbacks; a requested cancellation happens afterwards. */
#define PLUE_WITHOUT_CANCELLATION \
    __attribute__((cleanup(plue_cancellation_restore), unused)) int cancellation = \
        plue_cancellation_off()
int plue_cancellation_off(void);
void plue_cancellation_restore(const int *state);

/* True if this process has more rights than the process that chose its environment. */
bool plue_has_more_rights(void);

/* Returns the value of a variable; NULL if it is not set, or if plue_has_more_rights(). */
const char *plue_environment(const char *name);

/* Closes a descriptor unless it is -1, and sets it to -1. */
void plue_close(int *descriptor);

/* Copies a descriptor. The copy is at least `least` and is closed on exec. Returns the copy, or
 * -1 with errno. */
int plue_copy_descriptor(int descriptor, int least);

/* Moves a descriptor to a number of at least `least`, and closes the old descriptor. Leaves a
 * descriptor that is high enough, or -1, unchanged. Returns the descriptor, or -1 with errno. */
int plue_move_descriptor(int descriptor, int least);

/* Create descriptors above 2, closed on exec, that never block. Return 0, or -1 with errno. */
int plue_socket_pair(int pair[2]);
int plue_pipe(int pair[2]);

/* Returns a descriptor above 2 that becomes readable at a set time; -1 with errno. */
int plue_alarm_new(void);

/* Sets the time; PLUE_NEVER_MS turns the alarm off. A past time makes it readable immediately. */
void plue_alarm_set(int alarm, uint64_t at_ms);

/* Replaces the alarm of a descriptor that a child of fork() shares with its parent. */
void plue_alarm_renew(int alarm);

/* Like send(), but never blocks, never raises SIGPIPE and is not interrupted. */
ssize_t plue_send(int socket, const void *bytes, size_t length);

/* Returns a descriptor above 2 for the standard error, or -1. A pipe or terminal is reopened for
 * writes that do not block, so that the host's descriptor keeps its flags; others are copied. */
int plue_open_standard_error(void);

/* Writes as much as a standard error takes after poll(). Never raises SIGPIPE. */
ssize_t plue_write_error(int descriptor, const void *bytes, size_t length);

/* Prints a line on the standard error if that is possible without waiting, because it may have no
 * reader. A longer line is cut. */
enum { PLUE_PRINTED_LINE = 4000 };
void plue_print_line(const char *text, size_t length);

/* Like strerror(), with advice if no descriptor is left. */
const char *plue_error_text(int error);

/* Starts a thread that receives none of the process's signals. Returns 0 or an errno. */
int plue_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);
