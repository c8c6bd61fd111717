// A host in Zig 0.16: host_zig [tool [params_json]]
//
//   zig build-exe host.zig -I../include -L../build -lplue -lc -rpath ../build

const std = @import("std");
const plue = @cImport({
    @cInclude("plue.h");
    @cInclude("stdio.h");
});

// The one that prints a stack takes longer to compile than all the rest.
pub const panic = std.debug.simple_panic;

fn printEvent(metadata_json: [*c]const u8, user_data: ?*anyopaque) callconv(.c) void {
    _ = user_data;
    _ = plue.printf("event: %s\n", metadata_json);
}

/// Returns true if this thread's last call failed.
fn failed() bool {
    return !std.mem.eql(u8, std.mem.span(plue.plue_get_last_error_json()), "{}");
}

pub export fn main(count: c_int, arguments: [*][*:0]const u8) u8 {
    const tool = if (count > 1) arguments[1] else "echo";
    const params = if (count > 2) arguments[2] else "{}";

    if (plue.plue_abi_version() != plue.PLUE_ABI_VERSION or plue.plue_init("{}") != 0) {
        _ = plue.printf("%s\n", plue.plue_get_last_error());
        return 1;
    }
    defer plue.plue_shutdown();

    const list = plue.plue_tool_list();
    defer plue.plue_free_json(list);
    _ = plue.printf("tools: %.70s...\n", list);

    // Any thread may call plue_abort_signal_abort(signal, "reason") while the tool runs.
    const signal = plue.plue_abort_signal_new();
    defer plue.plue_abort_signal_release(signal);
    const context = plue.plue_tool_context_t{
        .session_id = "session-1",
        .message_id = "message-1",
        .abort_signal = signal,
        .metadata_callback = printEvent,
        .user_data = null,
    };
    const json = plue.plue_tool_execute(tool, params, &context);
    defer plue.plue_free_json(json);
    const label: [*:0]const u8 = if (failed()) "failure" else "result";
    _ = plue.printf("%s: %s\n", label, json);
    return @intFromBool(failed());
}
