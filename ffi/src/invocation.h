/* Tools that the host registered, and their invocations by the tools side. */
#pragma once

#include "call.h"
#include "frame.h"
#include "state.h"

/* Returns true if the host answers questions. Needs no lock. */
bool plue_questions_are_answered(void);

/* Returns the frames that register the host's tools with the peer of this generation, in order;
 * NULL if there are none. */
struct plue_frame *plue_host_tools_frames(uint64_t generation) PLUE_LOCKED;

/* Takes all tools from the list at a shutdown, for plue_host_tools_destroy(). */
struct plue_host_tool;
struct plue_host_tool *plue_host_tools_take(void) PLUE_LOCKED;
void plue_host_tools_destroy(struct plue_host_tool *tools) PLUE_UNLOCKED;

/* Handles INVOKE and CANCEL of the peer of this generation. Returns false if the frame is
 * malformed, or if too many rejections wait because the peer does not read them. */
bool plue_invocation_receive(uint64_t generation, const struct plue_frame_view *view,
                             struct plue_wakeups *wakeups) PLUE_UNLOCKED;
bool plue_invocation_cancel(uint64_t generation, const struct plue_frame_view *view) PLUE_UNLOCKED;

/* Aborts all invocations by a peer that has ended. */
void plue_invocations_abort(uint64_t generation) PLUE_LOCKED;

/* Runs the invocations that wait for the calling thread, which runs the call. */
void plue_invocations_run(struct plue_call *call) PLUE_UNLOCKED;
