//! The part of `plue.h`, ABI 1, that this crate uses.

#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_double, c_int, c_void};

pub const PLUE_ABI_VERSION: u32 = 1;
pub const PLUE_OK: c_int = 0;
pub const PLUE_RESULT_BLOCKS: c_int = 1;
pub const PLUE_MODE_AUTO: c_int = 0;

#[repr(C)]
pub struct plue_abort_signal_t {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct plue_invocation_t {
    _opaque: [u8; 0],
}

type Text = *const c_char;
type Data = *mut c_void;
type Answer = *mut *mut c_char;
type Context = *const plue_tool_context_t;
type Signal = *mut plue_abort_signal_t;
type Invocation = *mut plue_invocation_t;
type Done = unsafe extern "C" fn(status: c_int, json: Text, data: Data);
type Execute = unsafe extern "C" fn(invocation: Invocation, json: Text, data: Data);
type OnAbort = unsafe extern "C" fn(invocation: Invocation, data: Data);
type Destroy = unsafe extern "C" fn(data: Data);
pub type Wait = unsafe extern "C" fn(Text, Text, Context, Answer) -> c_int;

#[repr(C)]
pub struct plue_tool_context_t {
    pub session_id: Text,
    pub message_id: Text,
    pub abort_signal: Signal,
    pub metadata_callback: Option<unsafe extern "C" fn(json: Text, data: Data)>,
    pub user_data: Data,
}

#[repr(C)]
pub struct plue_options_t {
    pub struct_size: usize,
    pub mode: c_int,
    pub tools_module: Text,
    pub config_json: Text,
    pub sidecar_argv: *const Text,
    pub sidecar_cwd: Text,
    pub start_timeout_ms: u32,
    pub abort_grace_ms: u32,
    pub call_timeout_ms: u32,
    pub max_bytes_in_flight: usize,
}

extern "C" {
    pub fn plue_tool_list() -> *mut c_char;
    pub fn plue_tool_call(name: Text, json: Text, context: Context, answer: Answer) -> c_int;
    pub fn plue_tool_resume(ticket: Text, json: Text, context: Context, answer: Answer) -> c_int;
    pub fn plue_tool_start(name: Text, json: Text, context: Context, task: Answer) -> c_int;
    pub fn plue_tool_answer(id: Text, json: Text, context: Context, task: Answer) -> c_int;
    pub fn plue_tool_poll(id: Text, task: Answer) -> c_int;
    pub fn plue_tool_cancel(id: Text, task: Answer) -> c_int;
    pub fn plue_tool_submit(
        name: Text,
        json: Text,
        context: Context,
        done: Done,
        data: Data,
    ) -> c_int;
    pub fn plue_tool_submit_resume(
        name: Text,
        json: Text,
        context: Context,
        done: Done,
        data: Data,
    ) -> c_int;
    pub fn plue_free_json(json: *mut c_char);

    pub fn plue_abort_signal_new() -> Signal;
    pub fn plue_abort_signal_retain(signal: Signal) -> Signal;
    pub fn plue_abort_signal_release(signal: Signal);
    pub fn plue_abort_signal_abort(signal: Signal, reason: Text);
    pub fn plue_abort_signal_aborted(signal: Signal) -> c_int;

    pub fn plue_events_fd() -> c_int;
    pub fn plue_events_dispatch(timeout_ms: c_int) -> c_int;

    pub fn plue_register_tool(
        json: Text,
        run: Execute,
        destroy: Option<Destroy>,
        data: Data,
    ) -> c_int;
    pub fn plue_unregister_tool(id: Text) -> c_int;
    pub fn plue_set_question(ask: Option<Execute>, destroy: Option<Destroy>, data: Data) -> c_int;
    pub fn plue_invocation_succeed(invocation: Invocation, json: Text);
    pub fn plue_invocation_fail(invocation: Invocation, status: c_int, message: Text);
    pub fn plue_invocation_metadata(invocation: Invocation, json: Text);
    pub fn plue_invocation_output(invocation: Invocation, json: Text);
    pub fn plue_invocation_progress(
        invocation: Invocation,
        done: c_double,
        total: c_double,
        text: Text,
    );
    pub fn plue_invocation_session_id(invocation: Invocation) -> Text;
    pub fn plue_invocation_message_id(invocation: Invocation) -> Text;
    pub fn plue_invocation_signal(invocation: Invocation) -> Signal;
    pub fn plue_invocation_on_abort(invocation: Invocation, run: OnAbort, data: Data);

    pub fn plue_init_with_options(options: *const plue_options_t) -> c_int;
    pub fn plue_start() -> c_int;
    pub fn plue_shutdown();

    pub fn plue_get_last_error() -> Text;
    pub fn plue_get_last_error_json() -> Text;
    pub fn plue_get_last_result_flags() -> c_int;
    pub fn plue_abi_version() -> u32;
    pub fn plue_get_version() -> Text;
}
