/* Submitted calls: no thread waits for them. */
#include "abort.h"
#include "call.h"
#include "events.h"
#include "platform.h"
#include "plue.h"
#include "run.h"
#include "runtime.h"
#include "settings.h"

struct submission {
    struct plue_call call;
    struct plue_due due;
    struct submission *next PLUE_GUARDED;
    struct submission **previous PLUE_GUARDED;
    struct plue_frame *frame PLUE_GUARDED; /* NULL once the call is passed to a peer */
    uint64_t start_limit_ms;
    bool waited PLUE_GUARDED; /* the call has waited for the start of the runtime */
    plue_tool_context_t context; /* only its callback and user_data are used */
    plue_done_t on_done;
    void *user_data;
    char tool_name[];
};

/* Oldest first: the deadlines are in this order, and so are the unsent frames. */
static struct submission *submissions PLUE_GUARDED;
static struct submission **submissions_end PLUE_GUARDED = &submissions;
static size_t starting PLUE_GUARDED; /* the number of submissions with a frame */

static void link_submission(struct submission *submission) PLUE_LOCKED {
    submission->previous = submissions_end;
    *submissions_end = submission;
    submissions_end = &submission->next;
    starting++;
}

static void unlink_submission(struct submission *submission) PLUE_LOCKED {
    *submission->previous = submission->next;
    if (submission->next != NULL) {
        submission->next->previous = submission->previous;
    } else {
        submissions_end = submission->previous;
    }
}

static struct plue_frame *take_frame(struct submission *submission) PLUE_LOCKED {
    struct plue_frame *frame = submission->frame;
    submission->frame = NULL;
    starting--;
    return frame;
}

/* Ends a call that has not begun. The caller has set its outcome. */
static void end_before_begin(struct submission *submission) PLUE_LOCKED {
    plue_frame_free_all(take_frame(submission));
    plue_call_close(&submission->call);
    struct plue_wakeups wakeups = {.count = 0};
    plue_call_notify(&submission->call, PLUE_CALL_DONE, &wakeups);
}

/* Passes the call to a runtime, if one is ready. */
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

static uint64_t submission_deadline(const struct submission *submission) PLUE_LOCKED {
    return submission->frame != NULL ? plue_runtime_start_deadline(submission->start_limit_ms)
                                     : plue_call_deadline(&submission->call);
}

static struct submission *submission_of(struct plue_due *due) {
    return (struct submission *)(void *)((char *)due - offsetof(struct submission, due));
}

static void free_submission(struct plue_due *due) {
    free(submission_of(due));
}

/* Reports the call on a thread that dispatches events. */
static void tell_submission(struct plue_due *due, int *told) PLUE_UNLOCKED {
    struct submission *submission = submission_of(due);
    struct plue_call *call = &submission->call;
    call->told = 0;
    try_to_begin(submission);
    plue_call_attend(call, &submission->context);
    plue_lock();
    unsigned news = atomic_load(&call->news) & (PLUE_CALL_EVENTS | PLUE_CALL_DONE);
    plue_order_acquire(&call->news);
    bool has_ended = news == PLUE_CALL_DONE;
    if (has_ended) {
        unlink_submission(submission);
        plue_events_end(due);
    } else if (news != 0) {
        plue_events_add(due); /* the next dispatch reports the rest */
    } else {
        plue_events_expect(submission_deadline(submission));
    }
    plue_unlock();
    if (has_ended) {
        struct plue_outcome outcome =
            plue_call_conclude(call, submission->tool_name, &submission->context);
        int status = outcome.status;
        char *json = plue_outcome_answer(outcome); /* sets the error and flags for on_done */
        submission->on_done(status, json, submission->user_data);
        call->told++;
        plue_free_json(json);
    }
    *told += call->told;
}

uint64_t plue_submissions_expire(uint64_t now_ms) {
    uint64_t next = PLUE_NEVER_MS;
    for (struct submission *submission = submissions; submission != NULL;
         submission = submission->next) {
        uint64_t deadline = submission_deadline(submission);
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
    for (struct submission *submission = submissions; submission != NULL;
         submission = submission->next) {
        if (submission->frame == NULL) {
            continue;
        }
        if (plue_stopping) {
            /* Ends now: a host that dispatches after the shutdown would start the tools again. */
            submission->call.outcome =
                plue_outcome_failure("shutdown", "plue_shutdown() was called");
            end_before_begin(submission);
        } else {
            plue_events_add(&submission->due);
        }
    }
}

bool plue_submissions_are_open(void) {
    return submissions != NULL;
}

static struct submission *make_submission(const char *tool_name, const plue_tool_context_t *context,
                                          plue_done_t on_done, void *user_data) {
    size_t size = strlen(tool_name) + 1;
    struct submission *submission = calloc(1, sizeof *submission + size);
    if (submission == NULL) {
        return NULL;
    }
    memcpy(submission->tool_name, tool_name, size);
    submission->call.signal = context->abort_signal;
    submission->call.due = &submission->due;
    submission->due.tell = tell_submission;
    submission->due.free = free_submission;
    submission->context.metadata_callback = context->metadata_callback;
    submission->context.user_data = context->user_data;
    submission->on_done = on_done;
    submission->user_data = user_data;
    return submission;
}

static struct plue_outcome submit_checked(const struct plue_request *request,
                                  const plue_tool_context_t *context, plue_done_t on_done,
                                  void *user_data) PLUE_UNLOCKED {
    static const plue_tool_context_t none;
    context = context == NULL ? &none : context;
    if (plue_is_forked()) {
        return plue_forked_failure();
    }
    if (on_done == NULL) {
        return plue_outcome_failure("invalid_argument", "on_done is NULL");
    }
    struct plue_outcome failure = {.status = PLUE_OK};
    struct plue_frame *frame = plue_call_frame(request, context, &failure);
    if (frame == NULL) {
        return failure;
    }
    const char *tool_name = plue_request_tool(request);
    struct submission *submission =
        make_submission(tool_name == NULL ? "" : tool_name, context, on_done, user_data);
    if (submission == NULL) {
        plue_frame_free_all(frame);
        return plue_outcome_out_of_memory();
    }
    plue_lock();
    if (!plue_call_open(&submission->call, frame)) {
        plue_unlock();
        failure = submission->call.outcome;
        plue_frame_free_all(frame);
        free(submission);
        return failure;
    }
    plue_abort_carry(submission->call.signal);
    submission->frame = frame;
    submission->start_limit_ms = plue_now_ms() + plue_settings.start_timeout_ms;
    /* Marked as being reported, so that no thread delivers its events before try_to_begin(). */
    submission->due.is_being_told = true;
    link_submission(submission);
    plue_unlock();
    try_to_begin(submission);
    plue_lock();
    submission->due.is_being_told = false;
    if (submission->due.has_more) {
        plue_events_add(&submission->due);
    } else {
        plue_events_expect(submission_deadline(submission));
    }
    plue_unlock();
    return failure;
}

static int submit_request(const struct plue_request *request, const plue_tool_context_t *context,
                          plue_done_t on_done, void *user_data) {
    PLUE_WITHOUT_CANCELLATION;
    return plue_outcome_status(submit_checked(request, context, on_done, user_data));
}

int plue_tool_submit(const char *tool_name, const char *params_json,
                     const plue_tool_context_t *context, plue_done_t on_done, void *user_data) {
    const struct plue_request request = {.name = tool_name, .json = params_json};
    return submit_request(&request, context, on_done, user_data);
}

int plue_tool_submit_resume(const char *ticket, const char *answers_json,
                            const plue_tool_context_t *context, plue_done_t on_done,
                            void *user_data) {
    const struct plue_request request = {PLUE_RESUME_CALL, ticket, answers_json};
    return submit_request(&request, context, on_done, user_data);
}
