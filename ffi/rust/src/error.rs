//! Failures, with their codes.

use std::fmt;
use std::os::raw::c_int;

use crate::{sys, text};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal,)*) => {
        /// Why a call failed. A later version may have more.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            pub(crate) fn of(status: c_int) -> Code {
                match status {
                    $($status => Code::$name,)*
                    _ => Code::Other,
                }
            }

            pub(crate) fn status(self) -> c_int {
                match self { $(Code::$name => $status,)* }
            }
        }
    };
}

codes! {
    UnknownTool = 1,
    Unavailable = 2,
    Denied = 3,
    NotExecutable = 4,
    /// The arguments do not fit the tool's schema.
    InvalidArguments = 5,
    InvalidResult = 6,
    ApprovalRequired = 7,
    Aborted = 8,
    Timeout = 9,
    TransactionFailed = 10,
    OutputTooLarge = 11,
    Overloaded = 12,
    Threw = 13,
    InputRequired = 14,
    InputUnavailable = 15,
    TicketRefused = 16,
    /// A function of the library was called with a text with NUL, a bad option or a bad definition.
    InvalidArgument = 64,
    WouldDeadlock = 65,
    RuntimeUnavailable = 66,
    RuntimeGone = 67,
    RuntimeCrashed = 68,
    Shutdown = 69,
    OutOfMemory = 70,
    UnknownTask = 71,
    /// A code that is unknown to this version.
    Other = 127,
}

/// A failure of a call, or of a function of the library. A tool in Rust returns one to fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    code: Code,
    message: String,
    json: Option<String>,
}

impl Error {
    /// A failure of a tool of this program.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), json: None }
    }

    /// The failure of this thread's last function or, in a `plue_done_t`, of the ended call.
    pub(crate) fn of(status: c_int, json: String) -> Error {
        let message = unsafe { text::copy(sys::plue_get_last_error()) };
        Error { code: Code::of(status), message, json: Some(json) }
    }

    /// The failure of this thread's last function.
    pub(crate) fn last(status: c_int) -> Error {
        Error::of(status, unsafe { text::copy(sys::plue_get_last_error_json()) })
    }

    /// The failure of this thread's last function, if its status is one.
    pub(crate) fn check(status: c_int) -> Result<(), Error> {
        match status {
            sys::PLUE_OK => Ok(()),
            status => Err(Error::last(status)),
        }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// The cause, in words for a model.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The failure as JSON: `error`, `message` and, for some codes, `issues` and others.
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }
}

/// An [`Error`] with [`Code::Threw`], for a tool's `?`.
impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::new(Code::Threw, message)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(Code::Threw, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
