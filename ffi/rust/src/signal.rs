//! Abort signals.

use crate::sys::{self, plue_abort_signal_t};
use crate::text;

/// Stops the calls that carry it, from any thread. Clones are the same signal.
#[derive(Debug)]
pub struct AbortSignal(*mut plue_abort_signal_t);

// The functions of abort signals may be called from every thread.
unsafe impl Send for AbortSignal {}
unsafe impl Sync for AbortSignal {}

impl AbortSignal {
    /// # Panics
    /// When out of memory.
    pub fn new() -> AbortSignal {
        let signal = unsafe { sys::plue_abort_signal_new() };
        assert!(!signal.is_null(), "out of memory");
        AbortSignal(signal)
    }

    /// # Safety
    /// `signal` is a signal, or NULL.
    pub(crate) unsafe fn retained(signal: *mut plue_abort_signal_t) -> AbortSignal {
        AbortSignal(sys::plue_abort_signal_retain(signal))
    }

    /// Aborts the running calls and all later ones. Never waits. The first reason counts.
    pub fn abort(&self, reason: &str) {
        let reason = text::to_c_lossy(reason);
        unsafe { sys::plue_abort_signal_abort(self.0, reason.as_ptr()) }
    }

    pub fn aborted(&self) -> bool {
        unsafe { sys::plue_abort_signal_aborted(self.0) != 0 }
    }

    pub(crate) fn as_ptr(&self) -> *mut plue_abort_signal_t {
        self.0
    }
}

impl Default for AbortSignal {
    fn default() -> AbortSignal {
        AbortSignal::new()
    }
}

impl Clone for AbortSignal {
    fn clone(&self) -> AbortSignal {
        unsafe { AbortSignal::retained(self.0) }
    }
}

impl Drop for AbortSignal {
    fn drop(&mut self) {
        unsafe { sys::plue_abort_signal_release(self.0) }
    }
}
