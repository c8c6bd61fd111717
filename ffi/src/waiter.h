/* What a thread sleeps on while its call runs.
 *
 * Who ends a call wakes its thread after it has given plue_lock back, so that the thread does not
 * wake up only to wait for the lock. By then the call may be gone: it lives on that thread's stack.
 * So waiters outlive calls: they are kept for later ones, and never freed. One that is woken for a
 * call that is gone looks up, finds nothing, and sleeps on. */
#ifndef PLUE_WAITER_H
#define PLUE_WAITER_H

#include <pthread.h>
#include <stddef.h>

struct plue_waiter {
    pthread_cond_t changed;
    struct plue_waiter *next_free;
};

/* With plue_lock held. NULL when out of memory. */
struct plue_waiter *plue_waiter_take(void);
void plue_waiter_give_back(struct plue_waiter *waiter);

/* Threads to wake once the lock has been given back. Starts as {0}. */
struct plue_wakeups {
    size_t count;
    struct plue_waiter *waiters[32];
};

/* Adds a thread, with the lock held or not; wakes those that there are, if no other fits in. */
void plue_wakeups_add(struct plue_wakeups *wakeups, struct plue_waiter *waiter);

/* Wakes all. Without the lock. */
void plue_wakeups_carry_out(struct plue_wakeups *wakeups);

#endif
