/* The stages of a call, in order. */
#pragma once

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "plue.h"
#include "state.h"

enum plue_operation {
    PLUE_CALL_TOOL,
    PLUE_RESUME_CALL,
    PLUE_START_TASK,
    PLUE_POLL_TASK,
    PLUE_CANCEL_TASK,
    PLUE_ANSWER_TASK,
};

struct plue_request {
    enum plue_operation operation;
    const char *name; /* the tool's name, a ticket, or a task's id */
    const char *json; /* the parameters, or answers; may be NULL */
};

/* Returns the name of the tool for events; NULL for a request with a ticket instead of a name. */
const char *plue_request_tool(const struct plue_request *request);

/* Checks the texts and makes the frame. Returns NULL on failure, with the reason in `failure`. */
struct plue_frame *plue_call_frame(const struct plue_request *request,
                                   const plue_tool_context_t *context,
                                   struct plue_outcome *failure);

/* Opens the call; plue_call_close() undoes this. If too many bytes are in flight, returns false and
 * sets the call's outcome. */
bool plue_call_open(struct plue_call *call, const struct plue_frame *frame) PLUE_LOCKED;

/* Passes the call to the peer, and releases the lock. Takes ownership of the frame. */
void plue_call_begin_and_unlock(struct plue_call *call, struct plue_peer *peer,
                                struct plue_frame *frame)
    PLUE_CHECKED(release_capability(plue_mutex));

/* Delivers the waiting events to the host, or ends the call if it has reached its deadline. Returns
 * false if there was nothing to do. */
bool plue_call_attend(struct plue_call *call, const plue_tool_context_t *context) PLUE_UNLOCKED;

uint64_t plue_call_deadline(const struct plue_call *call);

/* Returns the outcome of a call that has ended, and sends the host its last events. */
struct plue_outcome plue_call_conclude(struct plue_call *call, const char *tool_name,
                                       const plue_tool_context_t *context) PLUE_UNLOCKED;

/* Sends a frame that is answered like a call, and waits for the response. Takes ownership of it. */
struct plue_outcome plue_run_frame(struct plue_frame *frame) PLUE_UNLOCKED;

/* Submitted calls (submit.c). No thread waits for them: plue_events_dispatch() delivers the end. */

/* Adds an event for each call that reached its deadline. Returns the next call's deadline. */
uint64_t plue_submissions_expire(uint64_t now_ms) PLUE_LOCKED;

/* Handles a change of a peer or the sidecar, or a shutdown: calls may be waiting for the change. */
void plue_submissions_runtime_changed(void) PLUE_LOCKED;

bool plue_submissions_are_open(void) PLUE_LOCKED;
