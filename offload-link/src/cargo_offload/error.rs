//! Why a command of `cargo offload` fails.

use std::fmt;

use crate::files::ReadFailure;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }

    /// An input that could not be read, which parsers call damaged or empty.
    pub(crate) fn unread(problem: ReadFailure) -> Self {
        Self::new(problem)
    }

    /// What was to be said, and could not be.
    pub(crate) fn unwritten(problem: std::io::Error) -> Self {
        Self::new(format_args!("cannot write: {problem}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
