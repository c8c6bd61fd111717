/* Running calls: each lives on the stack of the thread that made it, and is found by its number. */
#ifndef PLUE_CALL_H
#define PLUE_CALL_H

#include "outcome.h"
#include "plue.h"
#include "waiter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One piece of metadata that waits for the callback. */
struct plue_event {
    struct plue_event *next;
    size_t size; /* of the whole, for the bound on what waits */
    char json[];
};

/* plue_lock is held for all of it. */
struct plue_call {
    uint64_t id;         /* 0: not in the table yet */
    uint64_t generation; /* of the peer that runs it */
    struct plue_call *next_in_table;
    struct plue_waiter *waiter;

    bool done;
    bool answered; /* by the tools side, which tells of its failures itself */
    struct plue_outcome outcome;

    struct plue_event *first_event;
    struct plue_event **events_end;
    size_t events_size; /* waiting or being delivered */
    uint64_t dropped_events;

    bool sent;
    bool aborted;
    uint64_t abort_deadline_ms;
    plue_abort_signal_t *signal;
    struct plue_call *next_of_signal;
    struct plue_call **previous_of_signal;
};

/* NULL when out of memory. Needs no lock. */
struct plue_event *plue_event_new(const void *json, size_t length);

/* plue_lock is held for the rest. */

/* Says whether any thread is in a call that has been given to a peer. */
bool plue_calls_are_running(void);

/* NULL when no such call runs on that peer. */
struct plue_call *plue_call_find(uint64_t generation, uint64_t id);

/* Ends a call that is not done. Takes the outcome. */
void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups);

/* Takes the event, or returns false: it was NULL, or too much is waiting. */
bool plue_call_add_event(struct plue_call *call, struct plue_event *event,
                         struct plue_wakeups *wakeups);

/* Ends all calls of a peer. */
void plue_calls_fail(uint64_t generation, const char *code, const char *message);

#endif
