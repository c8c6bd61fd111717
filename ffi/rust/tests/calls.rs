//! Calls and tools, with a real sidecar: test/native/rust.bun.test.ts runs them.

mod common;

use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::task::{Context, Wake};
use std::thread;
use std::time::Duration;

use common::block_on;
use plue::{AbortSignal, Call, Code, Error, Invocation};

fn definition(name: &str) -> String {
    format!(
        r#"{{"name":"host:{name}","description":"A tool of Rust.","parameters":{{"type":"object"}}}}"#
    )
}

/// Dispatches what there is. Another test's thread may have dispatched it: the caller looks again.
fn tell() {
    drop(plue::dispatch(Some(Duration::from_millis(10))));
}

#[test]
fn a_text_with_nul_is_refused() {
    assert_eq!(plue::poll_task("a\0b").unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(Call::new("a\0b").wait().unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(plue::version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_panic_of_the_callback_comes_out_of_wait_and_await() {
    let mut count = 0;
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let call = Call::new("progress").params(r#"{"n":3}"#).on_event(|_| {
            count += 1;
            panic!("mine");
        });
        drop(call.wait());
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"mine"));
    assert_eq!(count, 1);
    let call = Call::new("progress").params(r#"{"n":3}"#).on_event(|_| panic!("mine"));
    let pending = call.start().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(pending))).is_err());
}

#[test]
fn a_call_that_is_dropped_is_aborted() {
    let (send, invocations) = mpsc::sync_channel(1);
    plue::register_deferred_tool(&definition("dropped"), move |invocation, _| {
        send.send(invocation).unwrap();
    })
    .unwrap();
    let pending = Call::new("host:dropped").start().unwrap();
    let invocation: Invocation = loop {
        tell();
        if let Ok(invocation) = invocations.try_recv() {
            break invocation;
        }
    };
    let signal = invocation.signal();
    assert!(!signal.aborted());
    drop(pending);
    while !signal.aborted() {
        tell();
    }
    plue::unregister_tool("host:dropped").unwrap();
}

#[test]
fn a_tool_fails_with_its_error_or_its_panic() {
    plue::register_tool(&definition("refuse"), |_, params| match params {
        "{}" => Err(Error::new(Code::Denied, "Not yours")),
        r#"{"nul":true}"# => Ok("a\0b".into()),
        _ => panic!("It broke: {params}"),
    })
    .unwrap();
    let error = Call::new("host:refuse").wait().unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::Denied, "Not yours"));
    let error = Call::new("host:refuse").params(r#"{"a":1}"#).wait().unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::Threw, r#"It broke: {"a":1}"#));
    let error = Call::new("host:refuse").params(r#"{"nul":true}"#).wait().unwrap_err();
    assert!(error.message().contains("NUL"), "{error}");
}

#[test]
fn a_deferred_tool_ends_on_another_thread_or_fails() {
    plue::register_deferred_tool(&definition("later"), |invocation, params| match params {
        "{}" => drop(thread::spawn(move || invocation.end(Ok("1".into())))),
        r#"{"panic":true}"# => panic!("in the tool"),
        _ => drop(invocation),
    })
    .unwrap();
    assert_eq!(Call::new("host:later").wait().unwrap(), "1");
    for params in [r#"{"drop":true}"#, r#"{"panic":true}"#] {
        let error = Call::new("host:later").params(params).wait().unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (Code::Threw, "The tool ended without a result")
        );
    }
}

#[test]
fn a_tool_is_dropped_when_it_is_gone_and_when_it_is_refused() {
    struct Noted(Arc<AtomicUsize>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let register = || {
        let noted = Noted(Arc::clone(&drops));
        plue::register_tool(&definition("brief"), move |_, _| {
            let _ = &noted;
            Ok("null".into())
        })
    };
    register().unwrap();
    let error = register().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("host:brief"), "{error}");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    plue::unregister_tool("host:brief").unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    assert_eq!(plue::unregister_tool("host:brief").unwrap_err().code(), Code::UnknownTool);
}

/// Panics when it is woken, and when it is dropped.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_of_a_waker_or_a_drop_does_not_reach_c() {
    let held = Bomb;
    plue::register_tool(&definition("bomb"), move |_, _| {
        let _ = &held;
        Ok("null".into())
    })
    .unwrap();
    plue::unregister_tool("host:bomb").unwrap();
    let held = Bomb;
    let call = Call::new("echo").on_event(move |_| {
        let _ = &held;
    });
    let mut pending = Box::pin(call.start().unwrap());
    let waker = std::mem::ManuallyDrop::new(Arc::new(Bomb));
    let waker = Arc::clone(&waker).into();
    while pending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        tell();
    }
    std::mem::forget(waker);
}

#[test]
fn a_tool_is_told_of_its_abort() {
    let signal = AbortSignal::new();
    let slow = Arc::new(std::sync::Mutex::new(None));
    let kept = Arc::clone(&slow);
    plue::register_deferred_tool(&definition("slow"), move |invocation, _| {
        let own = Arc::clone(&kept);
        let replaced = Arc::new(());
        let held = Arc::clone(&replaced);
        invocation.on_abort(move || drop(held));
        invocation.on_abort(move || {
            let invocation: Option<Invocation> = own.lock().unwrap().take();
            invocation.unwrap().end(Err(Error::new(Code::Aborted, "stopped")));
        });
        assert_eq!(Arc::strong_count(&replaced), 1);
        *kept.lock().unwrap() = Some(invocation);
    })
    .unwrap();
    let pending = Call::new("host:slow").signal(&signal).start().unwrap();
    while slow.lock().unwrap().is_none() {
        tell();
    }
    signal.abort("enough");
    assert_eq!(block_on(pending).unwrap_err().code(), Code::Aborted);
    while slow.lock().unwrap().is_some() {
        tell();
    }
    plue::unregister_tool("host:slow").unwrap();
}

#[test]
fn a_question_is_answered_on_another_thread() {
    plue::set_deferred_question(|invocation, _| {
        drop(thread::spawn(|| invocation.end(Ok(r#"{"action":"cancel"}"#.into()))));
    })
    .unwrap();
    assert_eq!(Call::new("confirm").wait().unwrap(), r#""cancel""#);
    plue::clear_question();
}
