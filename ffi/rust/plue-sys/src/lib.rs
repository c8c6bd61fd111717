//! The functions of `plue.h`, ABI 1. That file says what they do; the crate `plue` is how Rust calls
//! them.

#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_double, c_int, c_void};

macro_rules! statuses {
    ($($name:ident = $value:literal,)*) => { $(pub const $name: c_int = $value;)* };
}

statuses! {
    PLUE_OK = 0,
    PLUE_UNKNOWN_TOOL = 1,
    PLUE_UNAVAILABLE = 2,
    PLUE_DENIED = 3,
    PLUE_NOT_EXECUTABLE = 4,
    PLUE_INVALID_ARGUMENTS = 5,
    PLUE_INVALID_RESULT = 6,
    PLUE_APPROVAL_REQUIRED = 7,
    PLUE_ABORTED = 8,
    PLUE_TIMEOUT = 9,
    PLUE_TRANSACTION_FAILED = 10,
    PLUE_OUTPUT_TOO_LARGE = 11,
    PLUE_OVERLOADED = 12,
    PLUE_THREW = 13,
    PLUE_INPUT_REQUIRED = 14,
    PLUE_INPUT_UNAVAILABLE = 15,
    PLUE_TICKET_REFUSED = 16,
    PLUE_INVALID_ARGUMENT = 64,
    PLUE_WOULD_DEADLOCK = 65,
    PLUE_RUNTIME_UNAVAILABLE = 66,
    PLUE_RUNTIME_GONE = 67,
    PLUE_RUNTIME_CRASHED = 68,
    PLUE_SHUTDOWN = 69,
    PLUE_OUT_OF_MEMORY = 70,
    PLUE_UNKNOWN_TASK = 71,
    PLUE_OTHER = 127,
    PLUE_RESULT_BLOCKS = 1,
    PLUE_RESULT_TRUNCATED = 2,
    PLUE_RESULT_REPLAYED = 4,
    PLUE_RESULT_REPAIRED = 8,
    PLUE_MODE_AUTO = 0,
    PLUE_MODE_GUEST = 1,
    PLUE_MODE_SIDECAR = 2,
}

pub const PLUE_ABI_VERSION: u32 = 1;

#[repr(C)]
pub struct plue_abort_signal_t {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct plue_invocation_t {
    _opaque: [u8; 0],
}

pub type plue_metadata_t =
    unsafe extern "C" fn(metadata_json: *const c_char, user_data: *mut c_void);
pub type plue_done_t =
    unsafe extern "C" fn(status: c_int, json: *const c_char, user_data: *mut c_void);
pub type plue_execute_t = unsafe extern "C" fn(
    invocation: *mut plue_invocation_t,
    params_json: *const c_char,
    user_data: *mut c_void,
);
pub type plue_on_abort_t =
    unsafe extern "C" fn(invocation: *mut plue_invocation_t, user_data: *mut c_void);
pub type plue_destroy_t = unsafe extern "C" fn(user_data: *mut c_void);
pub type plue_log_t = unsafe extern "C" fn(line: *const c_char, user_data: *mut c_void);

#[repr(C)]
pub struct plue_tool_context_t {
    pub session_id: *const c_char,
    pub message_id: *const c_char,
    pub abort_signal: *mut plue_abort_signal_t,
    pub metadata_callback: Option<plue_metadata_t>,
    pub user_data: *mut c_void,
}

#[repr(C)]
pub struct plue_options_t {
    pub struct_size: usize,
    pub mode: c_int,
    pub tools_module: *const c_char,
    pub config_json: *const c_char,
    pub sidecar_argv: *const *const c_char,
    pub sidecar_cwd: *const c_char,
    pub start_timeout_ms: u32,
    pub abort_grace_ms: u32,
    pub call_timeout_ms: u32,
    pub max_bytes_in_flight: usize,
}

extern "C" {
    pub fn plue_tool_list() -> *mut c_char;
    pub fn plue_tool_execute(
        tool_name: *const c_char,
        params_json: *const c_char,
        context: *const plue_tool_context_t,
    ) -> *mut c_char;
    pub fn plue_tool_call(
        tool_name: *const c_char,
        params_json: *const c_char,
        context: *const plue_tool_context_t,
        json: *mut *mut c_char,
    ) -> c_int;
    pub fn plue_tool_submit(
        tool_name: *const c_char,
        params_json: *const c_char,
        context: *const plue_tool_context_t,
        on_done: plue_done_t,
        user_data: *mut c_void,
    ) -> c_int;
    pub fn plue_free_json(json: *mut c_char);

    pub fn plue_abort_signal_new() -> *mut plue_abort_signal_t;
    pub fn plue_abort_signal_retain(signal: *mut plue_abort_signal_t) -> *mut plue_abort_signal_t;
    pub fn plue_abort_signal_release(signal: *mut plue_abort_signal_t);
    pub fn plue_abort_signal_abort(signal: *mut plue_abort_signal_t, reason: *const c_char);
    pub fn plue_abort_signal_aborted(signal: *const plue_abort_signal_t) -> c_int;

    pub fn plue_events_fd() -> c_int;
    pub fn plue_events_dispatch(timeout_ms: c_int) -> c_int;

    pub fn plue_register_tool(
        definition_json: *const c_char,
        execute: plue_execute_t,
        destroy: Option<plue_destroy_t>,
        user_data: *mut c_void,
    ) -> c_int;
    pub fn plue_unregister_tool(tool_id: *const c_char) -> c_int;
    pub fn plue_invocation_succeed(invocation: *mut plue_invocation_t, json: *const c_char);
    pub fn plue_invocation_fail(
        invocation: *mut plue_invocation_t,
        status: c_int,
        message: *const c_char,
    );
    pub fn plue_invocation_metadata(invocation: *mut plue_invocation_t, json: *const c_char);
    pub fn plue_invocation_output(invocation: *mut plue_invocation_t, json: *const c_char);
    pub fn plue_invocation_progress(
        invocation: *mut plue_invocation_t,
        done: c_double,
        total: c_double,
        message: *const c_char,
    );
    pub fn plue_invocation_session_id(invocation: *const plue_invocation_t) -> *const c_char;
    pub fn plue_invocation_message_id(invocation: *const plue_invocation_t) -> *const c_char;
    pub fn plue_invocation_signal(invocation: *const plue_invocation_t)
        -> *mut plue_abort_signal_t;
    pub fn plue_invocation_on_abort(
        invocation: *mut plue_invocation_t,
        callback: plue_on_abort_t,
        user_data: *mut c_void,
    );

    pub fn plue_set_question(
        ask: Option<plue_execute_t>,
        destroy: Option<plue_destroy_t>,
        user_data: *mut c_void,
    ) -> c_int;
    pub fn plue_tool_resume(
        ticket: *const c_char,
        answers_json: *const c_char,
        context: *const plue_tool_context_t,
        json: *mut *mut c_char,
    ) -> c_int;
    pub fn plue_tool_submit_resume(
        ticket: *const c_char,
        answers_json: *const c_char,
        context: *const plue_tool_context_t,
        on_done: plue_done_t,
        user_data: *mut c_void,
    ) -> c_int;

    pub fn plue_tool_start(
        tool_name: *const c_char,
        params_json: *const c_char,
        context: *const plue_tool_context_t,
        task_json: *mut *mut c_char,
    ) -> c_int;
    pub fn plue_tool_poll(task_id: *const c_char, task_json: *mut *mut c_char) -> c_int;
    pub fn plue_tool_cancel(task_id: *const c_char, task_json: *mut *mut c_char) -> c_int;
    pub fn plue_tool_answer(
        task_id: *const c_char,
        answers_json: *const c_char,
        context: *const plue_tool_context_t,
        task_json: *mut *mut c_char,
    ) -> c_int;

    pub fn plue_set_list_changed(callback: Option<plue_destroy_t>, user_data: *mut c_void);
    pub fn plue_set_log(callback: Option<plue_log_t>, user_data: *mut c_void);

    pub fn plue_init(config_json: *const c_char) -> c_int;
    pub fn plue_init_with_options(options: *const plue_options_t) -> c_int;
    pub fn plue_start() -> c_int;
    pub fn plue_shutdown();

    pub fn plue_get_last_error() -> *const c_char;
    pub fn plue_get_last_error_json() -> *const c_char;
    pub fn plue_get_last_result_flags() -> c_int;
    pub fn plue_abi_version() -> u32;
    pub fn plue_feature(name: *const c_char) -> c_int;
    pub fn plue_get_version() -> *const c_char;
}
