//! Blocking and asynchronous calls of tools, and tasks.

use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::sys::{self, plue_tool_context_t, Wait, PLUE_OK, PLUE_RESULT_BLOCKS};
use crate::{text, AbortSignal, Error};

type Panic = Box<dyn Any + Send>;
type Outcome = Result<Answer, Error>;

/// The result of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The JSON, which is also the target of `Deref`.
    pub json: String,
    /// The `PLUE_RESULT_...` of the result.
    pub flags: c_int,
}

impl Answer {
    /// Returns true if the result is blocks (see BLOCKS in `plue.h`), and not a value.
    pub fn has_blocks(&self) -> bool {
        self.flags & PLUE_RESULT_BLOCKS != 0
    }
}

impl Deref for Answer {
    type Target = str;

    fn deref(&self) -> &str {
        &self.json
    }
}

impl PartialEq<&str> for Answer {
    fn eq(&self, json: &&str) -> bool {
        self.json == *json
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.json)
    }
}

/// A call of a tool, which [`Call::wait`] or [`Call::start`] makes.
#[must_use = "it is made by wait() or start()"]
pub struct Call<F = fn(&str)> {
    /// The name of the tool, or a ticket.
    tool: String,
    is_resumed: bool,
    params: String,
    session_id: Option<String>,
    message_id: Option<String>,
    signal: Option<AbortSignal>,
    on_event: Option<F>,
}

impl Call {
    /// A call with the parameters `{}`.
    pub fn new(tool: impl Into<String>) -> Call {
        Call {
            tool: tool.into(),
            is_resumed: false,
            params: "{}".into(),
            session_id: None,
            message_id: None,
            signal: None,
            on_event: None,
        }
    }

    /// Continues a call that failed with [`crate::Code::InputRequired`], by the `ticket` in the JSON of
    /// that failure. The answers are an object with an answer by each question's key:
    /// `{"sure":{"action":"accept"}}`.
    pub fn resume(ticket: impl Into<String>, answers_json: impl Into<String>) -> Call {
        Call { is_resumed: true, ..Call::new(ticket).params(answers_json) }
    }
}

impl<F> Call<F> {
    /// The parameters, as JSON.
    pub fn params(mut self, json: impl Into<String>) -> Self {
        self.params = json.into();
        self
    }

    /// Is passed to the tool.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Is passed to the tool.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Aborts the call.
    pub fn signal(mut self, signal: &AbortSignal) -> Self {
        self.signal = Some(signal.clone());
        self
    }

    /// Sets a function that gets the JSON of each event of the running tool, on the thread of
    /// [`Call::wait`] or of [`crate::dispatch`]. If it panics, it gets no further events, and the
    /// caller panics at the end of the call.
    pub fn on_event<G: FnMut(&str)>(self, on_event: G) -> Call<G> {
        Call {
            tool: self.tool,
            is_resumed: self.is_resumed,
            params: self.params,
            session_id: self.session_id,
            message_id: self.message_id,
            signal: self.signal,
            on_event: Some(on_event),
        }
    }

    fn prepare(&self) -> Result<Prepared, Error> {
        Ok(Prepared {
            tool: text::to_c(&self.tool)?,
            params: text::to_c(&self.params)?,
            session_id: text::to_c_or_null(self.session_id.as_deref())?,
            message_id: text::to_c_or_null(self.message_id.as_deref())?,
        })
    }
}

/// The strings of a call for C.
struct Prepared {
    tool: CString,
    params: CString,
    session_id: Option<CString>,
    message_id: Option<CString>,
}

impl Prepared {
    fn context(&self, signal: Option<&AbortSignal>) -> plue_tool_context_t {
        plue_tool_context_t {
            session_id: text::pointer(&self.session_id),
            message_id: text::pointer(&self.message_id),
            abort_signal: signal.map_or(ptr::null_mut(), |signal| signal.as_ptr()),
            metadata_callback: None,
            user_data: ptr::null_mut(),
        }
    }
}

/// Returns the result of this thread's last call or, in a `plue_done_t`, of the ended call.
fn outcome(status: c_int, json: String) -> Outcome {
    if status == PLUE_OK {
        Ok(Answer { json, flags: unsafe { sys::plue_get_last_result_flags() } })
    } else {
        Err(Error::of(status, json))
    }
}

/// Receives the events of a call until its function panics.
struct Listener<F> {
    on_event: Option<F>,
    panic: Option<Panic>,
}

impl<F: FnMut(&str)> Listener<F> {
    /// # Safety
    /// `json` ends with a NUL.
    unsafe fn tell(&mut self, json: *const c_char) {
        if let (Some(on_event), None) = (&mut self.on_event, &self.panic) {
            let json = text::copy(json);
            self.panic = catch_unwind(AssertUnwindSafe(|| on_event(&json))).err();
        }
    }
}

impl<F: FnMut(&str)> Call<F> {
    /// Makes the call, and blocks this thread until the call ends.
    pub fn wait(self) -> Outcome {
        let resumed = self.is_resumed;
        self.wait_for(if resumed { sys::plue_tool_resume } else { sys::plue_tool_call })
    }

    /// Starts a task, and returns its state as JSON, with an `id` for [`crate::poll_task`]. The
    /// events of a task are discarded, and the signal aborts only the start.
    pub fn start_task(self) -> Result<String, Error> {
        Ok(self.wait_for(sys::plue_tool_start)?.json)
    }

    fn wait_for(self, function: Wait) -> Outcome {
        unsafe extern "C" fn on_event<F: FnMut(&str)>(json: *const c_char, user_data: *mut c_void) {
            (*user_data.cast::<Listener<F>>()).tell(json);
        }
        let prepared = self.prepare()?;
        let mut context = prepared.context(self.signal.as_ref());
        let mut listener = Listener { on_event: self.on_event, panic: None };
        if listener.on_event.is_some() {
            context.metadata_callback = Some(on_event::<F>);
            context.user_data = ptr::addr_of_mut!(listener).cast();
        }
        let mut json = ptr::null_mut();
        let (status, json) = unsafe {
            let (tool, params) = (prepared.tool.as_ptr(), prepared.params.as_ptr());
            let status = function(tool, params, &context, &mut json);
            (status, text::take(json))
        };
        match listener.panic {
            Some(panic) => resume_unwind(panic),
            None => outcome(status, json),
        }
    }
}

#[derive(Default)]
struct State {
    end: Option<Result<Outcome, Panic>>,
    waker: Option<Waker>,
}

type Shared = Arc<Mutex<State>>;

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A future of the outcome of a running call. A drop before the end aborts the call, unless the
/// caller has set a signal. The future becomes ready in [`crate::dispatch`], which a thread or an
/// event loop has to call.
#[must_use = "dropping it aborts the call"]
pub struct Pending {
    state: Shared,
    own_signal: Option<AbortSignal>,
}

/// The state of a running call, owned by libplue until the end.
struct Started<F> {
    listener: Listener<F>,
    state: Shared,
}

impl<F: FnMut(&str) + Send + 'static> Call<F> {
    /// Begins the call, and returns immediately.
    pub fn start(self) -> Result<Pending, Error> {
        unsafe extern "C" fn on_event<F: FnMut(&str)>(json: *const c_char, user_data: *mut c_void) {
            (*user_data.cast::<Started<F>>()).listener.tell(json);
        }
        unsafe extern "C" fn on_done<F>(
            status: c_int,
            json: *const c_char,
            user_data: *mut c_void,
        ) {
            let Started { listener, state } = *Box::from_raw(user_data.cast::<Started<F>>());
            let end = match listener.panic {
                Some(panic) => Err(panic),
                None => Ok(outcome(status, text::copy(json))),
            };
            let waker = {
                let mut state = lock(&state);
                state.end = Some(end);
                state.waker.take()
            };
            // Neither a waker nor the drop of a closure may unwind into C.
            drop(catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake))));
            drop(catch_unwind(AssertUnwindSafe(|| drop(listener.on_event))));
        }
        let prepared = self.prepare()?;
        let own_signal = if self.signal.is_none() { Some(AbortSignal::new()) } else { None };
        let mut context = prepared.context(self.signal.as_ref().or(own_signal.as_ref()));
        if self.on_event.is_some() {
            context.metadata_callback = Some(on_event::<F>);
        }
        let state = Shared::default();
        let started = Box::into_raw(Box::new(Started {
            listener: Listener { on_event: self.on_event, panic: None },
            state: Arc::clone(&state),
        }));
        context.user_data = started.cast();
        let resumed = self.is_resumed;
        let submit = if resumed { sys::plue_tool_submit_resume } else { sys::plue_tool_submit };
        let status = unsafe {
            let (tool, params) = (prepared.tool.as_ptr(), prepared.params.as_ptr());
            submit(tool, params, &context, on_done::<F>, started.cast())
        };
        if status != PLUE_OK {
            let error = Error::last(status);
            drop(unsafe { Box::from_raw(started) });
            return Err(error);
        }
        Ok(Pending { state, own_signal })
    }
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = lock(&self.state);
        match state.end.take() {
            Some(Ok(outcome)) => Poll::Ready(outcome),
            Some(Err(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Has no effect after the end.
        if let Some(signal) = &self.own_signal {
            signal.abort("its future was dropped");
        }
    }
}

/// Returns the state of a task as JSON, as in `plue.h`: its `status`, and `result` at the end.
///
/// # Errors
/// [`crate::Code::UnknownTask`]: there is no such task.
pub fn poll_task(id: &str) -> Result<String, Error> {
    of_task(id, |id, json| unsafe { sys::plue_tool_poll(id, json) })
}

/// Cancels a task, unless it has ended, and returns its state.
///
/// # Errors
/// [`crate::Code::UnknownTask`]: there is no such task.
pub fn cancel_task(id: &str) -> Result<String, Error> {
    of_task(id, |id, json| unsafe { sys::plue_tool_cancel(id, json) })
}

/// Answers the questions of a task, as [`Call::resume`] does, and returns its state.
///
/// # Errors
/// [`crate::Code::UnknownTask`]: there is no such task.
pub fn answer_task(id: &str, answers_json: &str) -> Result<String, Error> {
    Ok(Call::new(id).params(answers_json).wait_for(sys::plue_tool_answer)?.json)
}

fn of_task(
    id: &str,
    ask: impl Fn(*const c_char, *mut *mut c_char) -> c_int,
) -> Result<String, Error> {
    let id = text::to_c(id)?;
    let mut json = ptr::null_mut();
    let status = ask(id.as_ptr(), &mut json);
    Ok(outcome(status, unsafe { text::take(json) })?.json)
}
