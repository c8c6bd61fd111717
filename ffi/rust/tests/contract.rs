//! The cases of ffi/test/contract.txt, read by ffi/test/contract.c, which libsuite has.

mod common;

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int};
use std::ptr;

use common::block_on;
use plue::{AbortSignal, Answer, Call, Code, Error, Invocation};

#[repr(C)]
struct ContractCall {
    operation: *const c_char,
    is_submitted: bool,
    name: *const c_char,
    json: *const c_char,
    session_id: *const c_char,
    message_id: *const c_char,
    abort_reason: *const c_char,
}

#[repr(C)]
struct Driver {
    call: unsafe extern "C" fn(*const ContractCall),
    define: unsafe extern "C" fn(*const c_char, *const c_char, *const c_char),
}

#[link(name = "suite")]
extern "C" {
    fn contract_run(driver: *const Driver, group: *const c_char);
    fn contract_event(json: *const c_char);
    fn contract_end(status: c_int, flags: c_int, json: *const c_char, message: *const c_char);
    fn contract_expect(params: *const c_char, part: *const c_char);
    fn check_failures() -> c_int;
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

unsafe fn text(pointer: *const c_char) -> Option<String> {
    (!pointer.is_null()).then(|| CStr::from_ptr(pointer).to_str().unwrap().to_owned())
}

/// Codes have no number in Rust: the one in JSON counts.
const NO_NUMBER: c_int = -1;

fn end(outcome: Result<(String, c_int), Error>) {
    let (status, flags, json, message) = match outcome {
        Ok((json, flags)) => (0, flags, json, "No error".to_owned()),
        Err(error) => {
            let json = error.json().unwrap().to_owned();
            let code = json.split('"').nth(3).unwrap().replace('_', "");
            assert_eq!(format!("{:?}", error.code()).to_lowercase(), code);
            (NO_NUMBER, 0, json, error.message().to_owned())
        }
    };
    unsafe { contract_end(status, flags, c(&json).as_ptr(), c(&message).as_ptr()) }
}

unsafe extern "C" fn call(given: *const ContractCall) {
    let given = &*given;
    let name = text(given.name).unwrap();
    let json = text(given.json).unwrap_or_else(|| "{}".into());
    let operation = text(given.operation).unwrap();
    let mut call = match operation.as_str() {
        "poll" => return end(plue::poll_task(&name).map(|state| (state, 0))),
        "cancel" => return end(plue::cancel_task(&name).map(|state| (state, 0))),
        "answer" => return end(plue::answer_task(&name, &json).map(|state| (state, 0))),
        "resume" => Call::resume(name, json),
        _ => Call::new(name).params(json),
    };
    if let Some(id) = text(given.session_id) {
        call = call.session_id(id);
    }
    if let Some(id) = text(given.message_id) {
        call = call.message_id(id);
    }
    let signal = AbortSignal::new();
    if let Some(reason) = text(given.abort_reason) {
        signal.abort(&reason);
    }
    let call = call.signal(&signal).on_event(|json| contract_event(c(json).as_ptr()));
    let parts = |answer: Answer| (answer.json, answer.flags);
    end(match (operation.as_str(), given.is_submitted) {
        ("start", _) => call.start_task().map(|state| (state, 0)),
        (_, true) => call.start().and_then(|pending| block_on(pending)).map(parts),
        (_, false) => call.wait().map(parts),
    });
}

fn run_steps(steps: &str, invocation: &Invocation, params: &str) -> Result<String, Error> {
    for step in steps.lines() {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        let mut words = rest.splitn(3, ' ');
        match kind {
            "expects" => unsafe { contract_expect(c(params).as_ptr(), c(rest).as_ptr()) },
            "metadata" => invocation.metadata(rest),
            "output" => invocation.output(rest),
            "session" => invocation
                .metadata(&format!(r#"{{"session":"{}"}}"#, invocation.session_id().unwrap())),
            "progress" => {
                let mut number = || words.next().unwrap().parse().unwrap();
                let (done, total) = (number(), number());
                invocation.progress(done, total, words.next());
            }
            "failure" => {
                let (status, message) = rest.split_once(' ').unwrap();
                let code = match status {
                    "2" => Code::Unavailable,
                    "3" => Code::Denied,
                    _ => Code::Timeout,
                };
                return Err(Error::new(code, message));
            }
            "result" => return Ok(rest.into()),
            _ => return Ok(params.into()),
        }
    }
    Ok("null".into())
}

unsafe extern "C" fn define(operation: *const c_char, given: *const c_char, steps: *const c_char) {
    let (given, steps) = (text(given).unwrap(), text(steps).unwrap());
    let run = move |invocation: &Invocation, json: &str| run_steps(&steps, invocation, json);
    let outcome = match text(operation).unwrap().as_str() {
        "register" => plue::register_tool(&given, run),
        "unregister" => plue::unregister_tool(&given),
        "question" => plue::set_question(run),
        _ => {
            plue::clear_question();
            Ok(())
        }
    };
    end(outcome.map(|()| ("null".into(), 0)));
}

#[test]
fn the_cases_hold_for_calls_that_wait_and_for_futures() {
    let driver = Driver { call, define };
    unsafe {
        contract_run(&driver, ptr::null());
        assert_eq!(check_failures(), 0);
    }
}
