//! Errors of `cargo offload`.

use std::fmt;

use crate::files::ReadFailure;

/// Message of a failed command.
#[derive(Debug)]
pub(crate) struct CargoOffloadError(String);

impl CargoOffloadError {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }

    /// Returns the error for an input that could not be read; parsers would call it damaged or empty.
    pub(crate) fn unread(problem: ReadFailure) -> Self {
        Self::new(problem)
    }

    /// Returns the error for failed output.
    pub(crate) fn unwritten(problem: std::io::Error) -> Self {
        Self::new(format_args!("cannot write: {problem}"))
    }
}

impl fmt::Display for CargoOffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
