/* The stages of a call, in order. */
#ifndef PLUE_RUN_H
#define PLUE_RUN_H

#include "call.h"
#include "frame.h"
#include "outcome.h"
#include "peer.h"
#include "plue.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>

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
    const char *name; /* of the tool, or a ticket, or the id of a task */
    const char *json; /* the parameters, or answers; may be NULL */
};

/* The name of the tool, where the request has one. A ticket is not a name for events. */
const char *plue_request_tool(const struct plue_request *request);

/* Checks the texts and makes the frame. NULL: with the reason in `failure`. */
struct plue_frame *plue_call_frame(const struct plue_request *request,
                                   const plue_tool_context_t *context,
                                   struct plue_outcome *failure);

/* Opens the call, which plue_call_close() undoes. Returns false if there are too many bytes in flight,
 * with the call's outcome. */
bool plue_call_open(struct plue_call *call, const struct plue_frame *frame) PLUE_LOCKED;

/* Gives the call to the peer, and the lock back. Takes the frame. */
void plue_call_begin_and_unlock(struct plue_call *call, struct plue_peer *peer,
                                struct plue_frame *frame)
    PLUE_CHECKED(release_capability(plue_mutex));

/* Hands the events that wait to the host, or ends the call if its time is over. Returns false if
 * there was nothing to do. */
bool plue_call_attend(struct plue_call *call, const plue_tool_context_t *context) PLUE_UNLOCKED;

uint64_t plue_call_deadline(const struct plue_call *call);

/* Returns the outcome of a call that has ended, and sends the host its last events. */
struct plue_outcome plue_call_conclude(struct plue_call *call, const char *tool_name,
                                       const plue_tool_context_t *context) PLUE_UNLOCKED;

/* Sends a frame that is answered like a call, and waits for the answer. Takes the frame. */
struct plue_outcome plue_run_frame(struct plue_frame *frame) PLUE_UNLOCKED;

/* In submit.c: calls that no thread waits for. plue_events_dispatch() delivers their ends. */

/* Adds an event for each call whose time is over. Returns the end of the next call's time. */
uint64_t plue_submissions_expire(uint64_t now_ms) PLUE_LOCKED;

/* A peer, the sidecar or a shutdown has changed its state: calls may wait for that to begin. */
void plue_submissions_runtime_changed(void) PLUE_LOCKED;

bool plue_submissions_are_open(void) PLUE_LOCKED;

#endif
