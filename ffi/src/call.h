/* Running calls: each lives on the stack of the thread that made it, and is found by its number. */
#ifndef PLUE_CALL_H
#define PLUE_CALL_H

#include "outcome.h"
#include "plue.h"
#include "state.h"
#include "text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One piece of metadata that waits for the callback. */
struct plue_event {
    struct plue_event *next;
    size_t size; /* of the whole, for the bound on what waits */
    char json[];
};

/* What the thread of a call is to look at. */
enum {
    PLUE_CALL_DONE = 1, /* the call has ended; from then on its own thread alone uses it */
    PLUE_CALL_EVENTS = 2,
    PLUE_CALL_ABORTED = 4,
};

struct plue_call {
    atomic_uint news;    /* PLUE_CALL_... */
    uint64_t id;         /* 0: it was not given to a peer */
    uint64_t generation; /* of the peer that runs it; 0: none yet */
    struct plue_call *next_in_table;

    /* How it ended: with an outcome, or with a failure of which the thread makes one. */
    struct plue_outcome outcome;
    const char *failure; /* the code; NULL: `outcome` counts */
    struct plue_shared_text *message;
    bool answered; /* by the tools side, which tells of its failures itself */

    struct plue_event *first_event PLUE_GUARDED;
    struct plue_event **events_end PLUE_GUARDED;
    atomic_size_t events_size; /* of those that wait or are being delivered */
    atomic_uint_fast64_t dropped_events;

    plue_abort_signal_t *signal;
    uint32_t grace_ms;
    struct plue_call *next_of_signal;
    struct plue_call **previous_of_signal;
};

/* Threads to wake once the lock has been given back, so that they do not wake up only to wait for
 * the lock. Their calls may be gone by then: the addresses alone are used. Starts as {0}. */
struct plue_wakeups {
    const atomic_uint *first[32];
    const atomic_uint **more;
    size_t count;
    size_t room_for_more;
};

/* Wakes all. Without the lock. */
void plue_wakeups_carry_out(struct plue_wakeups *wakeups);

/* NULL when out of memory. Needs no lock. */
struct plue_event *plue_event_new(const void *json, size_t length);

/* Whether any thread is in a call that has been given to a peer. */
bool plue_calls_are_running(void) PLUE_LOCKED;

/* NULL when no such call runs on that peer. */
struct plue_call *plue_call_find(uint64_t generation, uint64_t id) PLUE_LOCKED;

/* Has the thread look at something. */
void plue_call_notify(struct plue_call *call, unsigned news,
                      struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Ends a running call, whose answer this is. Takes the outcome. */
void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Takes the event, or returns false: it was NULL, or too much is waiting. */
bool plue_call_add_event(struct plue_call *call, struct plue_event *event,
                         struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Ends all calls of a peer with a failure. */
void plue_calls_fail(uint64_t generation, const char *code, const char *message) PLUE_LOCKED;

#endif
