/* The memory layout that ABI 1 promises. This file is compiled as C and as C++, and never run. */
#include "plue.h"
#include "plue_guest.h"

/* A static assertion that also compiles as C99. */
#define PROMISE(name, condition) typedef char promise_##name[(condition) ? 1 : -1]

PROMISE(session_id, offsetof(plue_tool_context_t, session_id) == 0);
PROMISE(message_id, offsetof(plue_tool_context_t, message_id) == sizeof(void *));
PROMISE(abort_signal, offsetof(plue_tool_context_t, abort_signal) == 2 * sizeof(void *));
PROMISE(metadata_callback, offsetof(plue_tool_context_t, metadata_callback) == 3 * sizeof(void *));
PROMISE(user_data, offsetof(plue_tool_context_t, user_data) == 4 * sizeof(void *));
PROMISE(context, sizeof(plue_tool_context_t) == 5 * sizeof(void *));

/* Compiles without a cast only if the type is right: C++ does not convert a void pointer. */
static plue_abort_signal_t *signal_of(const plue_tool_context_t *context) {
    return context->abort_signal;
}

/* Fields may be added only at the end of the options. */
PROMISE(struct_size, offsetof(plue_options_t, struct_size) == 0);
PROMISE(mode, offsetof(plue_options_t, mode) == sizeof(size_t));
PROMISE(tools_module, offsetof(plue_options_t, tools_module) == 2 * sizeof(void *));
PROMISE(config_json, offsetof(plue_options_t, config_json) == 3 * sizeof(void *));
PROMISE(sidecar_argv, offsetof(plue_options_t, sidecar_argv) == 4 * sizeof(void *));
PROMISE(sidecar_cwd, offsetof(plue_options_t, sidecar_cwd) == 5 * sizeof(void *));
PROMISE(start_timeout_ms, offsetof(plue_options_t, start_timeout_ms) == 6 * sizeof(void *));
PROMISE(abort_grace_ms, offsetof(plue_options_t, abort_grace_ms) == 6 * sizeof(void *) + 4);
PROMISE(call_timeout_ms, offsetof(plue_options_t, call_timeout_ms) == 6 * sizeof(void *) + 8);
PROMISE(max_bytes, offsetof(plue_options_t, max_bytes_in_flight) == 6 * sizeof(void *) + 16 ||
                       (sizeof(void *) == 4 &&
                        offsetof(plue_options_t, max_bytes_in_flight) == 6 * sizeof(void *) + 12));

int main(void) {
    promise_context used;
    (void)sizeof used;
    (void)signal_of;
    return PLUE_ABI_VERSION == 1u ? 0 : 1;
}
