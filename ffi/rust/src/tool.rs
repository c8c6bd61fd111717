//! Tools in Rust, in the same registry as those in TypeScript.

use std::any::Any;
use std::ffi::CString;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::{self, plue_invocation_t};
use crate::{text, AbortSignal, Error};

/// A call of a tool of this program. Is ended once, from any thread; a drop ends it with a failure.
#[derive(Debug)]
pub struct Invocation(*mut plue_invocation_t);

// The functions of invocations may be called from every thread.
unsafe impl Send for Invocation {}
unsafe impl Sync for Invocation {}

impl Invocation {
    /// Ends the call with a result, as JSON, or with a failure.
    pub fn end(mut self, outcome: Result<String, Error>) {
        self.end_once(outcome);
    }

    fn end_once(&mut self, outcome: Result<String, Error>) {
        let ended = std::mem::replace(&mut self.0, ptr::null_mut());
        if ended.is_null() {
            return;
        }
        drop(take_on_abort(ended));
        match outcome.and_then(|json| text::to_c(&json)) {
            Ok(json) => unsafe { sys::plue_invocation_succeed(ended, json.as_ptr()) },
            Err(error) => {
                let message = text::to_c_lossy(error.message());
                let status = error.code().status();
                unsafe { sys::plue_invocation_fail(ended, status, message.as_ptr()) }
            }
        }
    }

    /// Sends metadata to the caller, as JSON.
    pub fn metadata(&self, json: &str) {
        let json = text::to_c_lossy(json);
        unsafe { sys::plue_invocation_metadata(self.0, json.as_ptr()) }
    }

    /// Sends a part of the output, as JSON.
    pub fn output(&self, json: &str) {
        let json = text::to_c_lossy(json);
        unsafe { sys::plue_invocation_output(self.0, json.as_ptr()) }
    }

    /// Reports progress; `total` 0 is unknown.
    pub fn progress(&self, done: f64, total: f64, message: Option<&str>) {
        let message: Option<CString> = message.map(text::to_c_lossy);
        let message = text::pointer(&message);
        unsafe { sys::plue_invocation_progress(self.0, done, total, message) }
    }

    pub fn session_id(&self) -> Option<String> {
        unsafe { id(sys::plue_invocation_session_id(self.0)) }
    }

    pub fn message_id(&self) -> Option<String> {
        unsafe { id(sys::plue_invocation_message_id(self.0)) }
    }

    /// The signal of the call, which a long function checks. Pass it to the calls that the tool makes.
    pub fn signal(&self) -> AbortSignal {
        unsafe { AbortSignal::retained(sys::plue_invocation_signal(self.0)) }
    }

    /// Sets a function that [`crate::dispatch`] calls once if the call is or was aborted before its
    /// end. The invocation must still be ended. A panic of `run` is ignored.
    pub fn on_abort(&self, run: impl FnOnce() + Send + 'static) {
        unsafe extern "C" fn told(invocation: *mut plue_invocation_t, _: *mut c_void) {
            if let Some(run) = take_on_abort(invocation) {
                drop(catch_unwind(AssertUnwindSafe(run)));
            }
        }
        drop(take_on_abort(self.0)); // the last one counts
        lock(&ON_ABORT).push((self.0 as usize, Box::new(run)));
        unsafe { sys::plue_invocation_on_abort(self.0, told, ptr::null_mut()) }
    }
}

type OnAbort = Box<dyn FnOnce() + Send>;

/// The functions of [`Invocation::on_abort`], by the address of the invocation. An invocation may end
/// on another thread during its abort.
static ON_ABORT: Mutex<Vec<(usize, OnAbort)>> = Mutex::new(Vec::new());

fn take_on_abort(invocation: *mut plue_invocation_t) -> Option<OnAbort> {
    let mut all = lock(&ON_ABORT);
    let at = all.iter().position(|(address, _)| *address == invocation as usize)?;
    Some(all.swap_remove(at).1)
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe fn id(text: *const c_char) -> Option<String> {
    (!text.is_null()).then(|| text::copy(text))
}

impl Drop for Invocation {
    fn drop(&mut self) {
        self.end_once(Err("The tool ended without a result".into()));
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "The tool panicked".into())
}

/// Registers a tool that this program runs. `run` gets parameters that fit the schema, as JSON, and
/// returns the result as JSON; a panic is a failure. It runs on the thread of [`crate::Call::wait`],
/// and otherwise in [`crate::dispatch`]. Starts the tools, and waits until this one is registered.
///
/// # Errors
/// A bad definition, or a duplicate name.
pub fn register_tool<F>(definition_json: &str, run: F) -> Result<(), Error>
where
    F: Fn(&Invocation, &str) -> Result<String, Error> + Send + Sync + 'static,
{
    register_deferred_tool(definition_json, ending(run))
}

/// Ends the invocation with the function's result or failure.
fn ending<F>(run: F) -> impl Fn(Invocation, &str) + Send + Sync + 'static
where
    F: Fn(&Invocation, &str) -> Result<String, Error> + Send + Sync + 'static,
{
    move |invocation, json| {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&invocation, json)))
            .unwrap_or_else(|panic| Err(said(&*panic).into()));
        invocation.end(outcome);
    }
}

/// [`register_tool`] for a function that may return before it ends the [`Invocation`].
///
/// # Errors
/// A bad definition, or a duplicate name.
pub fn register_deferred_tool<F>(definition_json: &str, run: F) -> Result<(), Error>
where
    F: Fn(Invocation, &str) + Send + Sync + 'static,
{
    let definition = text::to_c(definition_json)?;
    let user_data = Box::into_raw(Box::new(run)).cast();
    // libplue destroys it, even if this fails.
    Error::check(unsafe {
        let definition = definition.as_ptr();
        sys::plue_register_tool(definition, execute::<F>, Some(destroy::<F>), user_data)
    })
}

/// Runs a function of the program, which `user_data` boxes.
unsafe extern "C" fn execute<F: Fn(Invocation, &str)>(
    invocation: *mut plue_invocation_t,
    json: *const c_char,
    user_data: *mut c_void,
) {
    let run = &*user_data.cast::<F>();
    let json = text::copy(json);
    // A panic drops the invocation, which then fails.
    drop(catch_unwind(AssertUnwindSafe(|| run(Invocation(invocation), &json))));
}

unsafe extern "C" fn destroy<F>(user_data: *mut c_void) {
    let run = Box::from_raw(user_data.cast::<F>());
    drop(catch_unwind(AssertUnwindSafe(|| drop(run))));
}

/// Unregisters a tool of this program by its id. Running invocations continue.
///
/// # Errors
/// [`crate::Code::UnknownTool`]: this program has registered no such tool.
pub fn unregister_tool(tool_id: &str) -> Result<(), Error> {
    let id = text::to_c(tool_id)?;
    Error::check(unsafe { sys::plue_unregister_tool(id.as_ptr()) })
}

/// Sets the function that answers the questions of tools. `run` gets a question as JSON, on the thread
/// of [`crate::Call::wait`], and otherwise in [`crate::dispatch`]. It returns an answer as JSON:
/// `{"action":"accept","content":...}`, `{"action":"decline"}` or `{"action":"cancel"}`. For the kind
/// `client`, this program runs the tool, and the content is the result. If `run` fails, the call fails
/// with [`crate::Code::InputRequired`] and a ticket.
///
/// # Errors
/// Out of memory.
pub fn set_question<F>(run: F) -> Result<(), Error>
where
    F: Fn(&Invocation, &str) -> Result<String, Error> + Send + Sync + 'static,
{
    set_deferred_question(ending(run))
}

/// [`set_question`] for a function that may return before it ends the [`Invocation`].
///
/// # Errors
/// Out of memory.
pub fn set_deferred_question<F>(run: F) -> Result<(), Error>
where
    F: Fn(Invocation, &str) + Send + Sync + 'static,
{
    let user_data = Box::into_raw(Box::new(run)).cast();
    // libplue destroys it, even if this fails.
    Error::check(unsafe {
        sys::plue_set_question(Some(execute::<F>), Some(destroy::<F>), user_data)
    })
}

/// Removes the function of [`set_question`].
pub fn clear_question() {
    unsafe { sys::plue_set_question(None, None, ptr::null_mut()) };
}
