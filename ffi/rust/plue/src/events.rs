//! What the library tells when it is asked to.

use std::os::raw::c_int;
use std::os::unix::io::RawFd;
use std::time::Duration;

use plue_sys::PLUE_OTHER;

use crate::Error;

/// A descriptor that is readable while [`dispatch`] has something to tell, for an event loop.
pub fn events_fd() -> Result<RawFd, Error> {
    match unsafe { plue_sys::plue_events_fd() } {
        -1 => Err(Error::last(PLUE_OTHER)),
        descriptor => Ok(descriptor),
    }
}

/// Tells what waits, on this thread: the ends of calls that [`crate::Call::start`] began, and calls of
/// this program's tools. Where nothing does, waits for it, with `None` for as long as it takes.
/// Returns how many callbacks were called. Several threads may do this at once.
pub fn dispatch(timeout: Option<Duration>) -> Result<usize, Error> {
    let timeout_ms =
        timeout.map_or(-1, |span| c_int::try_from(span.as_millis()).unwrap_or(c_int::MAX));
    let count = unsafe { plue_sys::plue_events_dispatch(timeout_ms) };
    usize::try_from(count).map_err(|_| Error::last(PLUE_OTHER))
}
