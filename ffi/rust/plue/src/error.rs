//! Failures, with their codes.

use std::fmt;
use std::os::raw::c_int;

use crate::text;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:ident,)*) => {
        /// Why a call failed. A later version may have more.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            pub(crate) fn of(status: c_int) -> Code {
                match status {
                    $(plue_sys::$status => Code::$name,)*
                    _ => Code::Other,
                }
            }

            pub(crate) fn status(self) -> c_int {
                match self { $(Code::$name => plue_sys::$status,)* }
            }
        }
    };
}

codes! {
    UnknownTool = PLUE_UNKNOWN_TOOL,
    Unavailable = PLUE_UNAVAILABLE,
    Denied = PLUE_DENIED,
    NotExecutable = PLUE_NOT_EXECUTABLE,
    /// What a tool was called with does not fit its schema.
    InvalidArguments = PLUE_INVALID_ARGUMENTS,
    InvalidResult = PLUE_INVALID_RESULT,
    ApprovalRequired = PLUE_APPROVAL_REQUIRED,
    Aborted = PLUE_ABORTED,
    Timeout = PLUE_TIMEOUT,
    TransactionFailed = PLUE_TRANSACTION_FAILED,
    OutputTooLarge = PLUE_OUTPUT_TOO_LARGE,
    Overloaded = PLUE_OVERLOADED,
    Threw = PLUE_THREW,
    InputRequired = PLUE_INPUT_REQUIRED,
    InputUnavailable = PLUE_INPUT_UNAVAILABLE,
    TicketRefused = PLUE_TICKET_REFUSED,
    /// What the library was called with is wrong: text with a NUL, a bad option or definition.
    InvalidArgument = PLUE_INVALID_ARGUMENT,
    WouldDeadlock = PLUE_WOULD_DEADLOCK,
    RuntimeUnavailable = PLUE_RUNTIME_UNAVAILABLE,
    RuntimeGone = PLUE_RUNTIME_GONE,
    RuntimeCrashed = PLUE_RUNTIME_CRASHED,
    Shutdown = PLUE_SHUTDOWN,
    OutOfMemory = PLUE_OUT_OF_MEMORY,
    UnknownTask = PLUE_UNKNOWN_TASK,
    /// A code that this version does not know.
    Other = PLUE_OTHER,
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

    pub(crate) fn of(status: c_int, json: String) -> Error {
        let message = message_of(&json).unwrap_or_else(|| json.clone());
        Error { code: Code::of(status), message, json: Some(json) }
    }

    /// The failure of this thread's last function.
    pub(crate) fn last(status: c_int) -> Error {
        Error::of(status, unsafe { text::copy(plue_sys::plue_get_last_error_json()) })
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// What went wrong, written for a model to act on.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The whole failure as libplue gave it: `error`, `message`, for some codes `issues` and others.
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

/// The message of a failure, which begins `{"error":"<code>","message":"`.
fn message_of(json: &str) -> Option<String> {
    let (_, rest) = json.strip_prefix(r#"{"error":""#)?.split_once(r#"","message":""#)?;
    let mut units = Vec::new();
    let mut characters = rest.chars();
    loop {
        let character = match characters.next()? {
            '"' => return Some(String::from_utf16_lossy(&units)),
            '\\' => match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                other => other,
            },
            other => other,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
}

#[cfg(test)]
mod tests {
    use super::message_of;

    #[test]
    fn the_message_is_read() {
        let json =
            r#"{"error":"threw","message":"a \"b\" \\ \n\u00fc\ud83d\ude42 🙂","issues":[]}"#;
        assert_eq!(message_of(json).as_deref(), Some("a \"b\" \\ \nü🙂 🙂"));
        assert_eq!(message_of(r#"{"error":"threw","message":"cut"#), None);
        assert_eq!(message_of("{}"), None);
    }
}
