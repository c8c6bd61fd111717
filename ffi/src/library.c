/* The library as a whole: the table of functions for lower files, fork(), and the shutdown. */
#include "abort.h"
#include "call.h"
#include "events.h"
#include "guest.h"
#include "invocation.h"
#include "outcome.h"
#include "platform.h"
#include "plue.h"
#include "program.h"
#include "run.h"
#include "runtime.h"
#include "settings.h"
#include "sidecar.h"
#include "state.h"

static void unlock_and_catch_up(void) PLUE_CHECKED(no_thread_safety_analysis) {
    struct plue_aborts aborts = plue_runtime_take_aborts();
    struct plue_wake wake = plue_guest_take_wake();
    plue_unlock_only();
    plue_guest_wake(&wake);
    plue_runtime_send_aborts(&aborts);
}

const struct plue_above plue_above = {
    .unlock_and_catch_up = unlock_and_catch_up,
    .is_behind = plue_aborts_are_due,
    .changed = plue_submissions_runtime_changed,
    .configured = plue_guest_configure,
    .expire = plue_submissions_expire,
    .send = plue_runtime_send,
    .run = plue_run_frame,
    .wake_leader = plue_sidecar_wake_leader,
};

/* True if the child of this thread's fork() may use the library. The lock is then held during the
 * fork, so that the child finds a consistent state. */
static _Thread_local bool passes_on;
/* True if before_fork() held the lock, even briefly: an abort may have found the lock taken. */
static _Thread_local bool had_lock;

/* True if there is a thread, a process or a runtime that the child of a fork would not have. */
static bool is_at_work(void) PLUE_LOCKED {
    return plue_stopping || plue_sidecar_exists() || plue_guest_peer() != NULL ||
           plue_calls_are_running() || plue_submissions_are_open() || plue_events_are_waiting();
}

static void before_fork(void) PLUE_CHECKED(no_thread_safety_analysis) {
    /* Does not wait for the lock: a signal handler may fork while its thread holds the lock. */
    had_lock = plue_try_lock();
    if (had_lock) {
        passes_on = !plue_is_forked() && !is_at_work();
        if (!passes_on) {
            plue_unlock_only();
        }
    }
}

static void after_fork_in_parent(void) PLUE_CHECKED(no_thread_safety_analysis) {
    if (passes_on || (had_lock && plue_above.is_behind() && plue_try_lock())) {
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
    plue_set_forked();
    plue_sidecar_abandon();
}

/* Runs when the library is loaded, before any thread can use it. If linked statically, runs before
 * the program's own constructors, which may call tools: 101 is the first free priority. */
__attribute__((constructor(101))) static void initialise(void) {
    plue_outcome_prepare();
    plue_image_prepare();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void wait_for_other_shutdown(void) PLUE_LOCKED {
    while (plue_stopping) {
        plue_wait_for_change(PLUE_NEVER_MS);
    }
}

void plue_shutdown(void) {
    PLUE_WITHOUT_CANCELLATION;
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    if (plue_stopping) {
        wait_for_other_shutdown();
        plue_unlock();
        return;
    }
    if (plue_settings.users > 1) {
        plue_settings.users--; /* another plue_init() is still in effect */
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
    plue_guest_configure(); /* resets the guest to the default options */
    plue_stopping = false;
    plue_change();
    plue_unlock();
    plue_host_tools_destroy(tools);
    plue_events_print_log();
    if (sidecar != NULL) {
        plue_sidecar_unhold(sidecar);
    }
}

uint32_t plue_abi_version(void) {
    return PLUE_ABI_VERSION;
}

const char *plue_get_version(void) {
    return PLUE_VERSION;
}
