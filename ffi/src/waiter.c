#include "waiter.h"

#include "platform.h"

#include <stdlib.h>

static struct plue_waiter *first_free;

struct plue_waiter *plue_waiter_take(void) {
    struct plue_waiter *waiter = first_free;
    if (waiter != NULL) {
        first_free = waiter->next_free;
        return waiter;
    }
    waiter = malloc(sizeof *waiter);
    if (waiter != NULL) {
        plue_condition_init(&waiter->changed);
    }
    return waiter;
}

void plue_waiter_give_back(struct plue_waiter *waiter) {
    waiter->next_free = first_free;
    first_free = waiter;
}

void plue_wakeups_add(struct plue_wakeups *wakeups, struct plue_waiter *waiter) {
    /* Several events of one call come one after the other. */
    if (wakeups->count > 0 && wakeups->waiters[wakeups->count - 1] == waiter) {
        return;
    }
    if (wakeups->count == sizeof wakeups->waiters / sizeof *wakeups->waiters) {
        plue_wakeups_carry_out(wakeups);
    }
    wakeups->waiters[wakeups->count] = waiter;
    wakeups->count++;
}

void plue_wakeups_carry_out(struct plue_wakeups *wakeups) {
    for (size_t i = 0; i < wakeups->count; i++) {
        pthread_cond_signal(&wakeups->waiters[i]->changed);
    }
    wakeups->count = 0;
}
