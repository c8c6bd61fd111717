// A host in Zig 0.16: host_zig [tool [params_json]]
//
//   zig build-exe host.zig -I../include -L../build -lplue -lc -rpath ../build

const std = @import("std");

// Of plue.h. @cImport() gives all of it, but compiles Zig's translator of C first, which takes a minute.
const Signal = opaque {};
const Context = extern struct {
    session_id: ?[*:0]const u8 = null,
    message_id: ?[*:0]const u8 = null,
    abort_signal: ?*Signal = null,
    metadata_callback: ?*const fn ([*:0]const u8, ?*anyopaque) callconv(.c) void = null,
    user_data: ?*anyopaque = null,
};
extern fn plue_abi_version() u32;
extern fn plue_init(config_json: ?[*:0]const u8) c_int;
extern fn plue_tool_list() [*:0]u8;
extern fn plue_tool_call(name: [*:0]const u8, params_json: ?[*:0]const u8, context: ?*const Context, json: *[*:0]u8) c_int;
extern fn plue_free_json(json: [*:0]u8) void;
extern fn plue_abort_signal_new() ?*Signal;
extern fn plue_abort_signal_release(signal: ?*Signal) void;
extern fn plue_get_last_error() [*:0]const u8;
extern fn plue_shutdown() void;
extern fn printf(format: [*:0]const u8, ...) c_int;

pub const panic = std.debug.simple_panic;

fn printEvent(metadata_json: [*:0]const u8, user_data: ?*anyopaque) callconv(.c) void {
    _ = user_data;
    _ = printf("event: %s\n", metadata_json);
}

pub export fn main(count: c_int, arguments: [*][*:0]const u8) u8 {
    const tool = if (count > 1) arguments[1] else "echo";
    const params = if (count > 2) arguments[2] else "{}";

    if (plue_abi_version() != 1 or plue_init("{}") != 0) {
        _ = printf("%s\n", plue_get_last_error());
        return 1;
    }
    defer plue_shutdown();

    const list = plue_tool_list();
    defer plue_free_json(list);
    _ = printf("tools: %.70s...\n", list);

    // Any thread may call plue_abort_signal_abort(signal, "reason") while the tool runs.
    const signal = plue_abort_signal_new();
    defer plue_abort_signal_release(signal);
    const context = Context{
        .session_id = "session-1",
        .message_id = "message-1",
        .abort_signal = signal,
        .metadata_callback = printEvent,
    };
    var json: [*:0]u8 = undefined;
    const status = plue_tool_call(tool, params, &context, &json);
    defer plue_free_json(json);
    _ = printf("%s: %s\n", @as([*:0]const u8, if (status == 0) "result" else "failure"), json);
    return @intFromBool(status != 0);
}
