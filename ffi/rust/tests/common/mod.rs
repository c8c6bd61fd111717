//! What several tests need.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::Duration;

/// Dispatches until the future is ready. Another test's thread may dispatch its end: this one looks again.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Arc::new(Nothing).into();
    let mut future = Box::pin(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        plue::dispatch(Some(Duration::from_millis(10))).unwrap();
    }
}
