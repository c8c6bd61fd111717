// A host in Zig 0.16: host_zig [tool [params_json]]
//
//   zig build-exe host.zig -I../include -L../build -lplue -lc -rpath ../build

const std = @import("std");
const plue = @cImport({
    @cInclude("plue.h");
    @cInclude("stdio.h");
});

fn printEvent(metadata_json: [*c]const u8, user_data: ?*anyopaque) callconv(.c) void {
    _ = user_data;
    std.debug.print("event: {s}\n", .{std.mem.span(metadata_json)});
}

/// Says whether this thread's last call failed.
fn failed() bool {
    return !std.mem.eql(u8, std.mem.span(plue.plue_get_last_error_json()), "{}");
}

pub fn main(init: std.process.Init.Minimal) u8 {
    var arguments = std.process.Args.Iterator.init(init.args);
    _ = arguments.skip();
    const tool: [*:0]const u8 = arguments.next() orelse "echo";
    const params: [*:0]const u8 = arguments.next() orelse "{}";

    if (plue.plue_abi_version() != plue.PLUE_ABI_VERSION or plue.plue_init("{}") != 0) {
        std.debug.print("{s}\n", .{std.mem.span(plue.plue_get_last_error())});
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
