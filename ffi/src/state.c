#include "state.h"

#include "abort.h"
#include "call.h"
#include "events.h"
#include "guest.h"
#include "invocation.h"
#include "outcome.h"
#include "platform.h"
#include "plue.h"
#include "program.h"
#include "settings.h"
#include "sidecar.h"
#include "submit.h"

#include <unistd.h>

struct plue_mutex plue_mutex = {PTHREAD_MUTEX_INITIALIZER};
bool plue_stopping;

/* How often plue_change() was called. */
static atomic_uint changes;

void plue_lock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    pthread_mutex_lock(&plue_mutex.mutex);
}

bool plue_try_lock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    return pthread_mutex_trylock(&plue_mutex.mutex) == 0;
}

void plue_unlock(void) PLUE_CHECKED(no_thread_safety_analysis) {
    do {
        struct plue_aborts aborts = plue_aborts_take();
        struct plue_wake wake = plue_guest_take_wake();
        pthread_mutex_unlock(&plue_mutex.mutex);
        plue_guest_wake(&wake);
        plue_aborts_carry_out(&aborts);
        /* A thread that aborted a signal meanwhile found the lock taken, and left it to this one. */
    } while (plue_aborts_are_due() && plue_try_lock());
}

void plue_change(void) {
    atomic_fetch_add(&changes, 1);
    plue_unpark(&changes);
    plue_submissions_runtime_changed();
}

void plue_wait_for_change(uint64_t at_ms) {
    unsigned seen = atomic_load(&changes);
    plue_unlock();
    plue_park(&changes, seen, at_ms);
    plue_lock();
}

/* ------------------------------------------------------------------------------------- fork */

const char plue_forked_message[] =
    "This process was made by fork() while libplue was at work: call plue_shutdown() before "
    "fork(), or exec() after it";

static bool forked;

/* This process, if it cannot be told of a fork(); else 0. */
static pid_t only_process;

/* Whether the child of this thread's fork() may use the library: the lock is then held across it, so
 * that the child finds everything as it should be. */
static _Thread_local bool passes_on;

/* Whether there is a thread, a process or a runtime that the child would not have. */
static bool is_at_work(void) PLUE_LOCKED {
    return plue_stopping || plue_sidecar_exists() || plue_guest_peer() != NULL ||
           plue_calls_are_running() || plue_submissions_are_open() || plue_events_are_waiting();
}

static void before_fork(void) PLUE_CHECKED(no_thread_safety_analysis) {
    /* Never waits: a signal handler may fork while its thread has the lock. */
    if (plue_try_lock()) {
        passes_on = !forked && !is_at_work();
        if (!passes_on) {
            pthread_mutex_unlock(&plue_mutex.mutex);
        }
    }
}

static void after_fork_in_parent(void) PLUE_CHECKED(no_thread_safety_analysis) {
    if (passes_on) {
        passes_on = false;
        plue_unlock();
    }
}

static void after_fork_in_child(void) PLUE_CHECKED(no_thread_safety_analysis) {
    if (passes_on) {
        passes_on = false;
        plue_events_after_fork();
        plue_unlock();
        return;
    }
    forked = true;
    plue_sidecar_abandon();
}

bool plue_is_forked(void) {
    return forked || (only_process != 0 && getpid() != only_process);
}

/* When the library is loaded, and so before any thread can use it. Statically linked, before the
 * constructors of the program's own objects, which may call tools: 101 is the first that is free. */
__attribute__((constructor(101))) static void initialise(void) {
    plue_outcome_prepare();
    plue_image_prepare();
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        only_process = getpid();
    }
}

/* --------------------------------------------------------------------------------- shutdown */

static void wait_for_other_shutdown(void) PLUE_LOCKED {
    while (plue_stopping) {
        plue_wait_for_change(PLUE_NEVER_MS);
    }
}

static void shut_down(void) PLUE_UNLOCKED {
    plue_lock();
    if (plue_stopping) {
        wait_for_other_shutdown();
        plue_unlock();
        return;
    }
    if (plue_settings.users > 1) {
        plue_settings.users--; /* another part of the program uses the library */
        plue_unlock();
        return;
    }
    plue_stopping = true;
    plue_change();
    plue_guest_shutdown();
    struct plue_sidecar *sidecar = plue_sidecar_begin_shutdown();
    plue_unlock();
    if (sidecar != NULL) {
        plue_sidecar_join(sidecar);
    }
    plue_lock();
    plue_sidecar_end_shutdown();
    plue_settings_reset();
    struct plue_host_tool *tools = plue_host_tools_take();
    plue_guest_configure(); /* it forgets what it was asked to offer */
    plue_stopping = false;
    plue_change();
    plue_unlock();
    plue_host_tools_destroy(tools);
    plue_events_print_log();
    if (sidecar != NULL) {
        plue_sidecar_unhold(sidecar);
    }
}

void plue_shutdown(void) {
    if (plue_is_forked()) {
        return;
    }
    int cancellation = plue_cancellation_off();
    shut_down();
    plue_cancellation_restore(cancellation);
}

uint32_t plue_abi_version(void) {
    return PLUE_ABI_VERSION;
}

const char *plue_get_version(void) {
    return PLUE_VERSION;
}
