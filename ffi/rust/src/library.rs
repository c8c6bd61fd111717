//! The start and end of the tools, their list, and the dispatch of events.

use std::ffi::CString;
use std::mem::size_of;
use std::os::raw::{c_char, c_int};
use std::os::unix::io::RawFd;
use std::ptr;
use std::time::Duration;

use crate::sys::{self, plue_options_t, PLUE_ABI_VERSION, PLUE_MODE_AUTO};
use crate::{text, Code, Error};

/// Options. `None` and empty values are the defaults of `plue_options_t`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The TypeScript module that exports the registry.
    pub tools_module: Option<String>,
    /// Selects the tools of this program, and configures them.
    pub config_json: Option<String>,
    /// The program that runs the tools, and its arguments.
    pub sidecar: Vec<String>,
    pub sidecar_cwd: Option<String>,
    pub start_timeout: Option<Duration>,
    pub abort_grace: Option<Duration>,
    /// The maximum time of a call; `None` is without a limit.
    pub call_timeout: Option<Duration>,
    /// The maximum size of the arguments of all running calls, in bytes; 0 is 256 MiB.
    pub max_bytes_in_flight: usize,
}

/// Keeps the tools running. Several must have equal options, and the last drop ends the tools.
#[derive(Debug)]
pub struct Library(());

impl Library {
    /// Sets the options. The first list or call starts the tools.
    ///
    /// # Errors
    /// A bad option, or the library is in use with other options.
    pub fn new(options: &Options) -> Result<Library, Error> {
        if unsafe { sys::plue_abi_version() } != PLUE_ABI_VERSION {
            return Err(Error::new(Code::RuntimeUnavailable, "libplue has another ABI version"));
        }
        let tools_module = text::to_c_or_null(options.tools_module.as_deref())?;
        let config_json = text::to_c_or_null(options.config_json.as_deref())?;
        let sidecar_cwd = text::to_c_or_null(options.sidecar_cwd.as_deref())?;
        let words: Vec<CString> =
            options.sidecar.iter().map(|word| text::to_c(word)).collect::<Result<_, _>>()?;
        let mut argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
        argv.push(ptr::null());
        let given = plue_options_t {
            struct_size: size_of::<plue_options_t>(),
            mode: PLUE_MODE_AUTO,
            tools_module: text::pointer(&tools_module),
            config_json: text::pointer(&config_json),
            sidecar_argv: if words.is_empty() { ptr::null() } else { argv.as_ptr() },
            sidecar_cwd: text::pointer(&sidecar_cwd),
            start_timeout_ms: milliseconds(options.start_timeout),
            abort_grace_ms: milliseconds(options.abort_grace),
            call_timeout_ms: milliseconds(options.call_timeout),
            max_bytes_in_flight: options.max_bytes_in_flight,
        };
        match unsafe { sys::plue_init_with_options(&given) } {
            0 => Ok(Library(())),
            _ => Err(Error::last(Code::InvalidArgument.status())),
        }
    }

    /// Starts the tools, and waits until they are ready. Optional.
    ///
    /// # Errors
    /// They cannot be started.
    pub fn start(&self) -> Result<(), Error> {
        start()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        unsafe { sys::plue_shutdown() }
    }
}

fn start() -> Result<(), Error> {
    Error::check(unsafe { sys::plue_start() })
}

/// To libplue, 0 is the default.
fn milliseconds(span: Option<Duration>) -> u32 {
    span.map_or(0, |span| u32::try_from(span.as_millis()).unwrap_or(u32::MAX).max(1))
}

/// Lists the tools that this program may call, as JSON: their definitions by their names.
///
/// # Errors
/// The tools cannot be started.
pub fn tools() -> Result<String, Error> {
    let list = unsafe { text::take(sys::plue_tool_list()) };
    let failure = Error::last(Code::Other.status());
    if failure.json() == Some("{}") {
        return Ok(list);
    }
    start()?; // has the status
    Err(failure)
}

/// The version of libplue.
pub fn version() -> String {
    unsafe { text::copy(sys::plue_get_version()) }
}

/// Returns a descriptor that is readable while an event waits for [`dispatch`].
pub fn events_fd() -> Result<RawFd, Error> {
    match unsafe { sys::plue_events_fd() } {
        -1 => Err(Error::last(Code::Other.status())),
        descriptor => Ok(descriptor),
    }
}

/// Calls back for the events that wait: ends of calls of [`crate::Call::start`], and calls of this
/// program's tools. If no event waits, waits for one; `None` is without a limit. Returns the number
/// of callbacks. Several threads may call this concurrently.
pub fn dispatch(timeout: Option<Duration>) -> Result<usize, Error> {
    let timeout_ms =
        timeout.map_or(-1, |span| c_int::try_from(span.as_millis()).unwrap_or(c_int::MAX));
    let count = unsafe { sys::plue_events_dispatch(timeout_ms) };
    usize::try_from(count).map_err(|_| Error::last(Code::Other.status()))
}
