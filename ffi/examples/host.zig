// A host in Zig: host_zig [tool [params_json]]
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

fn failed() bool {
    return !std.mem.eql(u8, std.mem.span(plue.plue_get_last_error_json()), "{}");
}

pub fn main() u8 {
    const arguments = std.os.argv;
    const tool: [*:0]const u8 = if (arguments.len > 1) arguments[1] else "echo";
    const params: [*:0]const u8 = if (arguments.len > 2) arguments[2] else "{}";
    defer plue.plue_shutdown();

    const list = plue.plue_tool_list();
    defer plue.plue_free_json(list);
    const listed = std.mem.span(list);
    _ = plue.printf("tools: %.*s...\n", @as(c_int, @intCast(@min(listed.len, 70))), list);

    const signal = plue.plue_abort_signal_new();
    defer plue.plue_abort_signal_release(signal);
    var context = plue.plue_tool_context_t{
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
