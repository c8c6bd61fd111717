#include "state.h"

#include "call.h"
#include "guest.h"
#include "image.h"
#include "outcome.h"
#include "platform.h"
#include "process.h"
#include "sidecar.h"

pthread_mutex_t plue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t plue_changed;
bool plue_stopping;

const char plue_forked_message[] =
    "This process was made by fork() while libplue was at work: call plue_shutdown() before fork(), "
    "or exec() after it";

static bool forked;

/* Whether the child of this thread's fork() may use the library: the lock is then held across it, so
 * that the child finds everything as it should be. */
static _Thread_local bool passes_on;

/* A thread, a process or a runtime that the child would not have. */
static bool is_at_work(void) {
    return plue_stopping || plue_sidecar_exists() || plue_guest_peer() != NULL ||
           plue_calls_are_running();
}

static void before_fork(void) {
    /* Never waits: a signal handler may fork while its thread has the lock. */
    if (pthread_mutex_trylock(&plue_lock) == 0) {
        passes_on = !forked && !is_at_work();
        if (!passes_on) {
            pthread_mutex_unlock(&plue_lock);
        }
    }
    plue_process_before_fork();
}

static void after_fork_in_parent(void) {
    plue_process_after_fork_in_parent();
    if (passes_on) {
        passes_on = false;
        pthread_mutex_unlock(&plue_lock);
    }
}

static void after_fork_in_child(void) {
    plue_process_after_fork_in_child();
    if (passes_on) {
        passes_on = false;
        /* A thread that the child does not have may just have been leaving it. */
        plue_condition_init(&plue_changed);
        pthread_mutex_unlock(&plue_lock);
        return;
    }
    forked = true;
    plue_sidecar_abandon();
}

bool plue_is_forked(void) {
    return forked;
}

/* When the library is loaded, and so before any thread can use it. Statically linked, before the
 * constructors of the program's own objects, which may call tools: 101 is the first that is free. */
__attribute__((constructor(101))) static void initialise(void) {
    plue_condition_init(&plue_changed);
    plue_outcome_prepare();
    plue_image_prepare();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
