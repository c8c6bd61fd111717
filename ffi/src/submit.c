#include "submit.h"

#include "abort.h"
#include "call.h"
#include "events.h"
#include "platform.h"
#include "plue.h"
#include "runtime.h"
#include "settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct submission {
    struct plue_call call;
    struct plue_due due;
    struct submission *next PLUE_GUARDED;
    struct submission **previous PLUE_GUARDED;
    struct plue_frame *frame PLUE_GUARDED; /* until the call has been given to a peer */
    uint64_t start_limit_ms;
    bool waited PLUE_GUARDED; /* for the runtime's start */
    plue_tool_context_t context; /* its callback and user_data count */
    plue_done_t on_done;
    void *user_data;
    char tool_name[];
};

static struct submission *all PLUE_GUARDED;
static size_t starting PLUE_GUARDED; /* those whose frame is still here */

static void link_in(struct submission *submission) PLUE_LOCKED {
    submission->next = all;
    submission->previous = &all;
    if (all != NULL) {
        all->previous = &submission->next;
    }
    all = submission;
    starting++;
}

static void link_out(struct submission *submission) PLUE_LOCKED {
    *submission->previous = submission->next;
    if (submission->next != NULL) {
        submission->next->previous = submission->previous;
    }
}

static struct plue_frame *take_frame(struct submission *submission) PLUE_LOCKED {
    struct plue_frame *frame = submission->frame;
    submission->frame = NULL;
    starting--;
    return frame;
}

/* Ends a call that has not begun; its outcome is set already. */
static void end_before_begin(struct submission *submission) PLUE_LOCKED {
    plue_frame_free_all(take_frame(submission));
    plue_call_close(&submission->call);
    struct plue_wakeups wakeups = {.count = 0};
    plue_call_notify(&submission->call, PLUE_CALL_DONE, &wakeups);
}

/* Gives the call to a runtime if one is ready. */
static void try_to_begin(struct submission *submission) PLUE_UNLOCKED {
    plue_lock();
    if (submission->frame == NULL) {
        plue_unlock();
        return;
    }
    struct plue_call *call = &submission->call;
    struct plue_peer *peer = NULL;
    enum plue_readiness readiness = PLUE_RUNTIME_HAS_FAILED;
    if (!plue_abort_is_aborted(call->signal)) {
        readiness = plue_runtime_look(PLUE_WAITS_FOR_NOTHING, submission->start_limit_ms,
                                      &submission->waited, &peer, &call->outcome);
    }
    if (readiness == PLUE_RUNTIME_IS_READY) {
        plue_call_begin_and_unlock(call, peer, take_frame(submission));
        return;
    }
    if (readiness == PLUE_RUNTIME_HAS_FAILED) {
        end_before_begin(submission);
    }
    plue_unlock();
}

static uint64_t deadline_of(const struct submission *submission) PLUE_LOCKED {
    return submission->frame != NULL ? submission->start_limit_ms
                                     : plue_call_deadline(&submission->call);
}

/* Tells of the call on a thread that dispatches. */
static bool tell(struct plue_due *due, int *told) PLUE_UNLOCKED {
    struct submission *submission =
        (struct submission *)(void *)((char *)due - offsetof(struct submission, due));
    struct plue_call *call = &submission->call;
    try_to_begin(submission);
    while (plue_call_attend(call, &submission->context)) {
        ++*told;
    }
    plue_lock();
    bool has_ended = atomic_load(&call->news) & PLUE_CALL_DONE;
    if (has_ended) {
        link_out(submission);
    } else {
        plue_events_expect(deadline_of(submission));
    }
    plue_unlock();
    if (!has_ended) {
        return true;
    }
    struct plue_outcome outcome =
        plue_call_conclude(call, submission->tool_name, &submission->context);
    submission->on_done(outcome.status, outcome.json, submission->user_data);
    ++*told;
    plue_outcome_free(outcome);
    free(submission);
    return false;
}

/* ------------------------------------------------------------------------------------- hooks */

uint64_t plue_submissions_expire(uint64_t now_ms) {
    uint64_t next = PLUE_NEVER_MS;
    for (struct submission *submission = all; submission != NULL; submission = submission->next) {
        uint64_t deadline = deadline_of(submission);
        if (deadline == PLUE_NEVER_MS) {
            continue;
        }
        if (deadline <= now_ms) {
            plue_events_add(&submission->due);
        } else if (next == PLUE_NEVER_MS || deadline < next) {
            next = deadline;
        }
    }
    return next;
}

void plue_submissions_runtime_changed(void) {
    if (starting == 0) {
        return;
    }
    for (struct submission *submission = all; submission != NULL; submission = submission->next) {
        if (submission->frame == NULL) {
            continue;
        }
        if (plue_stopping) {
            /* Now: the host may dispatch only after the shutdown, and would start the tools again. */
            submission->call.outcome =
                plue_outcome_failure("shutdown", "plue_shutdown() was called");
            end_before_begin(submission);
        } else {
            plue_events_add(&submission->due);
        }
    }
}

bool plue_submissions_are_open(void) {
    return all != NULL;
}

/* ------------------------------------------------------------------------------ the host's side */

static struct submission *make(const char *tool_name, const plue_tool_context_t *context,
                               plue_done_t on_done, void *user_data) {
    size_t size = strlen(tool_name) + 1;
    struct submission *submission = calloc(1, sizeof *submission + size);
    if (submission == NULL) {
        return NULL;
    }
    memcpy(submission->tool_name, tool_name, size);
    submission->call.signal = context->abort_signal;
    submission->call.due = &submission->due;
    submission->due.tell = tell;
    submission->context.metadata_callback = context->metadata_callback;
    submission->context.user_data = context->user_data;
    submission->on_done = on_done;
    submission->user_data = user_data;
    return submission;
}

static struct plue_outcome submit(const char *tool_name, const char *params_json,
                                  const plue_tool_context_t *context, plue_done_t on_done,
                                  void *user_data) PLUE_UNLOCKED {
    static const plue_tool_context_t none;
    context = context == NULL ? &none : context;
    if (plue_is_forked()) {
        return plue_outcome_failure("runtime_unavailable", plue_forked_message);
    }
    if (on_done == NULL) {
        return plue_outcome_failure("invalid_argument", "on_done is NULL");
    }
    struct plue_outcome failure = {.status = PLUE_OK};
    struct plue_frame *frame = plue_call_frame(tool_name, params_json, context, &failure);
    if (frame == NULL) {
        return failure;
    }
    struct submission *submission = make(tool_name, context, on_done, user_data);
    if (submission == NULL) {
        plue_frame_free_all(frame);
        return plue_outcome_out_of_memory();
    }
    plue_abort_carry(submission->call.signal);
    plue_lock();
    submission->frame = frame;
    submission->start_limit_ms = plue_now_ms() + plue_settings.start_timeout_ms;
    /* No thread tells of the call until it has been tried to begin. */
    submission->due.is_being_told = true;
    link_in(submission);
    plue_call_open(&submission->call);
    plue_unlock();
    try_to_begin(submission);
    plue_lock();
    submission->due.is_being_told = false;
    if (submission->due.has_more) {
        plue_events_add(&submission->due);
    } else {
        plue_events_expect(deadline_of(submission));
    }
    plue_unlock();
    return failure;
}

int plue_tool_submit(const char *tool_name, const char *params_json,
                     const plue_tool_context_t *context, plue_done_t on_done, void *user_data) {
    int cancellation = plue_cancellation_off();
    int status =
        plue_outcome_status(submit(tool_name, params_json, context, on_done, user_data));
    plue_cancellation_restore(cancellation);
    return status;
}
