/* The events that wait for plue_events_dispatch(). */
#pragma once

#include "state.h"

/* A source of events for the host: a submitted call, an invocation, the list. Starts as {0}, apart
 * from the functions. */
struct plue_due {
    /* Calls the host, and adds the number of callbacks to `*told`. Runs on one thread at a time. */
    void (*tell)(struct plue_due *due, int *told);
    void (*free)(struct plue_due *due); /* NULL for a source that never ends */
    struct plue_due *next PLUE_GUARDED;
    bool is_waiting PLUE_GUARDED;    /* in the queue */
    bool is_being_told PLUE_GUARDED; /* a thread runs `tell` */
    bool has_more PLUE_GUARDED;      /* an event arrived during `tell` */
    bool is_over PLUE_GUARDED;       /* ended: the thread that dequeues it or runs `tell` frees it */
};

void plue_events_add(struct plue_due *due) PLUE_LOCKED;

/* Ends the source, which then has no further events. Returns true if the caller must free the
 * source, because it is neither in the queue nor being reported. */
bool plue_events_end(struct plue_due *due) PLUE_LOCKED;

/* Calls `tell` on this thread. `due` must not be in the queue, and no other thread may be in its
 * `tell`. Frees `due` if it ended meanwhile. */
void plue_events_tell(struct plue_due *due, int *told) PLUE_UNLOCKED;

/* Schedules a call of plue_above.expire(). */
void plue_events_expect(uint64_t at_ms) PLUE_LOCKED;

/* Returns true if an event waits that a child of fork() would deliver a second time. */
bool plue_events_are_waiting(void) PLUE_LOCKED;

/* Renews the descriptor in a child of fork() that may use the library. */
void plue_events_after_fork(void) PLUE_LOCKED;

void plue_events_list_changed(void) PLUE_LOCKED;

/* Returns true if the host has set a callback for log lines. Needs no lock. */
bool plue_events_take_log(void);

/* Passes a log line to the host; invalid UTF-8 is replaced. Returns false without a callback. */
bool plue_events_log(const char *line, size_t length) PLUE_UNLOCKED;

/* Prints the waiting lines, because the host has removed its callback. */
void plue_events_print_log(void) PLUE_UNLOCKED;
