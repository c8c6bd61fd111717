#include "state.h"

#include "platform.h"

struct plue_mutex plue_mutex = {PTHREAD_MUTEX_INITIALIZER};
bool plue_stopping;

/* The number of calls of plue_change(). */
static atomic_uint changes;

void plue_lock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    pthread_mutex_lock(&plue_mutex.mutex);
}

bool plue_try_lock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    return pthread_mutex_trylock(&plue_mutex.mutex) == 0;
}

void plue_unlock_only(void) PLUE_CHECKED(no_thread_safety_analysis) {
    pthread_mutex_unlock(&plue_mutex.mutex);
}

void plue_unlock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    do {
        plue_above.unlock_and_catch_up();
        /* A thread that aborted a signal meanwhile may have left the work to this one. */
    } while (plue_above.is_behind() && plue_try_lock());
}

void plue_change(void) {
    atomic_fetch_add(&changes, 1);
    plue_unpark(&changes);
    plue_above.changed();
}

void plue_wait_for_change(uint64_t at_ms) {
    unsigned seen = atomic_load(&changes);
    plue_unlock();
    plue_park(&changes, seen, at_ms);
    plue_lock();
}

static bool forked;

bool plue_is_forked(void) {
    return forked;
}

struct plue_outcome plue_forked_failure(void) {
    return plue_outcome_failure("runtime_unavailable",
                                "This process was made by fork() while libplue was at work: call "
                                "plue_shutdown() before fork(), or exec() after it");
}

void plue_set_forked(void) {
    forked = true;
}
