/* Running calls. Each lives on the stack of its calling thread, and is found by its number. */
#pragma once

#include "events.h"
#include "outcome.h"
#include "plue.h"
#include "state.h"
#include "text.h"

/* A metadata event that waits for the callback. */
struct plue_event {
    struct plue_event *next;
    size_t size; /* of this struct with its JSON */
    char json[];
};

struct plue_sidecar;

/* Notifications for the thread of a call, as bits of its word `news`. */
enum {
    PLUE_CALL_DONE = 1, /* the call has ended; only its own thread uses it from now on */
    PLUE_CALL_EVENTS = 2,
    PLUE_CALL_ABORTED = 4,
    PLUE_CALL_INVOKED = 8, /* a tool of this program waits for this thread to run it */
    PLUE_CALL_LEAD = 16,   /* this thread must read the sidecar's socket now */
    /* The state of the thread. */
    PLUE_CALL_WAITS = 32, /* sleeps on the word, or is about to sleep */
    PLUE_CALL_LEADS = 64, /* reads the sidecar's socket */
};

struct plue_invocation;
struct plue_peer;

struct plue_call {
    atomic_uint news;    /* PLUE_CALL_... */
    uint64_t id;         /* 0 until the call is passed to a peer */
    size_t size;         /* of the call's frame; 0 while it is not counted as in flight */
    uint64_t generation; /* of the peer that runs the call; 0 before */
    struct plue_sidecar *sidecar; /* a reference to the sidecar that runs the call, or NULL */
    struct plue_call *next_in_table;
    struct plue_due *due; /* reports a submitted call; NULL if a thread waits for the call */
    struct plue_invocation *invocations PLUE_GUARDED; /* to run on the call's thread, newest first */

    /* The end: an outcome, or a failure that the call's thread turns into an outcome. */
    struct plue_outcome outcome;
    const char *failure; /* the failure code; if NULL, `outcome` is the end */
    struct plue_shared_text *message;
    bool answered; /* true if the tools side ended the call; it has then sent the error event */

    struct plue_event *first_event PLUE_GUARDED;
    struct plue_event **events_end PLUE_GUARDED;
    atomic_size_t events_size; /* bytes of the events that wait or are being delivered */
    atomic_uint_fast64_t dropped_events;
    int told; /* the number of callbacks; used by the delivering thread */

    plue_abort_signal_t *signal;
    uint32_t grace_ms;
    uint32_t timeout_ms;
    uint64_t timeout_at_ms; /* PLUE_NEVER_MS without a time limit */
    struct plue_call *next_of_signal;
    struct plue_call **previous_of_signal;
};

/* Threads to wake after the lock has been released, so that they do not wait for it. Their calls
 * may have been freed by then, so only the addresses are used. Starts as {0}. */
struct plue_wakeups {
    size_t count;
    const atomic_uint *words[32]; /* when it is full, threads are woken with the lock held */
};

/* Without the lock. */
void plue_wakeups_carry_out(struct plue_wakeups *wakeups);

/* Returns NULL when out of memory. Needs no lock. */
struct plue_event *plue_event_new(const void *json, size_t length);

bool plue_calls_are_running(void) PLUE_LOCKED;

/* Returns the call with this number on this peer, or NULL. */
struct plue_call *plue_call_find(uint64_t generation, uint64_t id) PLUE_LOCKED;

void plue_call_notify(struct plue_call *call, unsigned news,
                      struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Ends a running call with its outcome. Takes ownership of the outcome. */
void plue_call_finish(struct plue_call *call, struct plue_outcome outcome,
                      struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Takes ownership of the event. Returns false if it is NULL, or if too many bytes wait. */
bool plue_call_add_event(struct plue_call *call, struct plue_event *event,
                         struct plue_wakeups *wakeups) PLUE_LOCKED;

/* Wakes a sleeping caller of the peer to read the socket, except the caller with that word, which has
 * read until now. Returns false if no caller sleeps. */
bool plue_calls_hand_over(uint64_t generation, const atomic_uint *word) PLUE_UNLOCKED;

/* The bytes of the frames of all calls in flight. */
size_t plue_calls_size(void) PLUE_LOCKED;

/* Counts the bytes of the call's frame as in flight, and ties the call to its signal, which notifies it
 * from then on. */
void plue_call_tie(struct plue_call *call, size_t size) PLUE_LOCKED;

/* Undoes plue_call_tie(), if the call cannot begin. */
void plue_call_close(struct plue_call *call) PLUE_LOCKED;

/* Assigns a number to the call, by which plue_call_find() finds it. */
void plue_call_add(struct plue_call *call) PLUE_LOCKED;

/* Undoes plue_call_add() and plue_call_tie(). */
void plue_call_forget(struct plue_call *call) PLUE_LOCKED;

void plue_calls_fail(uint64_t generation, const char *code, const char *message) PLUE_LOCKED;
