// A host in Rust, without crates: host_rs [tool [params_json]]
//
//   rustc host.rs -L build -l plue -C link-arg=-Wl,-rpath,build

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::process::ExitCode;
use std::ptr;

#[repr(C)]
struct ToolContext {
    session_id: *const c_char,
    message_id: *const c_char,
    abort_signal: *mut c_void,
    metadata_callback: Option<unsafe extern "C" fn(*const c_char, *mut c_void)>,
    user_data: *mut c_void,
}

extern "C" {
    fn plue_abi_version() -> u32;
    fn plue_init(config_json: *const c_char) -> c_int;
    fn plue_tool_list() -> *mut c_char;
    fn plue_tool_execute(
        tool_name: *const c_char,
        params_json: *const c_char,
        context: *const ToolContext,
    ) -> *mut c_char;
    fn plue_free_json(json: *mut c_char);
    fn plue_get_last_error() -> *const c_char;
    fn plue_get_last_error_json() -> *const c_char;
    fn plue_shutdown();
}

/// Copies a string that the library keeps.
unsafe fn copy(text: *const c_char) -> String {
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// Takes over a string that the library returned, and says whether its call failed.
unsafe fn take(json: *mut c_char) -> Result<String, String> {
    let text = copy(json);
    plue_free_json(json);
    if copy(plue_get_last_error_json()) == "{}" {
        Ok(text)
    } else {
        Err(copy(plue_get_last_error()))
    }
}

/// The library, from its initialisation to its shutdown.
struct Plue;

impl Plue {
    fn new(config_json: &str) -> Result<Plue, String> {
        let config = CString::new(config_json).map_err(|error| error.to_string())?;
        unsafe {
            if plue_abi_version() != 1 {
                return Err("libplue has another ABI version".into());
            }
            if plue_init(config.as_ptr()) != 0 {
                return Err(copy(plue_get_last_error()));
            }
        }
        Ok(Plue)
    }

    fn tools(&self) -> Result<String, String> {
        unsafe { take(plue_tool_list()) }
    }

    /// Calls a tool; `on_event` gets the JSON of each of its events, on this thread.
    fn execute<F: FnMut(&str)>(
        &self,
        tool: &str,
        params_json: &str,
        mut on_event: F,
    ) -> Result<String, String> {
        unsafe extern "C" fn forward<F: FnMut(&str)>(json: *const c_char, closure: *mut c_void) {
            let text = CStr::from_ptr(json).to_string_lossy();
            (*closure.cast::<F>())(&text);
        }
        let tool = CString::new(tool).map_err(|error| error.to_string())?;
        let params = CString::new(params_json).map_err(|error| error.to_string())?;
        let context = ToolContext {
            session_id: ptr::null(),
            message_id: ptr::null(),
            abort_signal: ptr::null_mut(),
            metadata_callback: Some(forward::<F>),
            user_data: ptr::addr_of_mut!(on_event).cast(),
        };
        unsafe { take(plue_tool_execute(tool.as_ptr(), params.as_ptr(), &context)) }
    }
}

impl Drop for Plue {
    fn drop(&mut self) {
        unsafe { plue_shutdown() }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    let tool = arguments.get(1).map_or("echo", String::as_str);
    let params = arguments.get(2).map_or("{}", String::as_str);
    let plue = Plue::new("{}")?;
    println!("tools: {:.70}...", plue.tools()?);
    println!("result: {}", plue.execute(tool, params, |event| eprintln!("event: {event}"))?);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("failure: {message}");
            ExitCode::FAILURE
        }
    }
}
