#![doc = include_str!("../README.md")]

mod call;
mod error;
mod library;
mod signal;
mod sys;
mod text;
mod tool;

pub use call::{answer_task, cancel_task, poll_task, Answer, Call, Pending};
pub use error::{Code, Error};
pub use library::{dispatch, events_fd, tools, version, Library, Options};
pub use signal::AbortSignal;
pub use tool::{
    clear_question, register_deferred_tool, register_tool, set_deferred_question, set_question,
    unregister_tool, Invocation,
};
