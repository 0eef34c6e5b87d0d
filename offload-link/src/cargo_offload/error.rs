//! Errors of `cargo offload`.

use std::fmt;

use crate::files::ReadFailure;

/// Message of a failed command.
#[derive(Debug)]
pub(crate) struct CargoOffloadError {
    message: String,
    /// Nobody reads the output any more: `cargo offload inspect … | head`.
    closed: bool,
}

impl CargoOffloadError {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self {
            message: problem.to_string(),
            closed: false,
        }
    }

    /// Returns the error for an input that could not be read; parsers would call it damaged or empty.
    pub(crate) fn unread(problem: ReadFailure) -> Self {
        Self::new(problem)
    }

    /// Returns the error for failed output.
    pub(crate) fn unwritten(problem: std::io::Error) -> Self {
        Self {
            closed: problem.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::new(format_args!("cannot write: {problem}"))
        }
    }

    /// Tells whether the reader of the output stopped reading, which is no failure.
    pub(crate) fn is_closed_output(&self) -> bool {
        self.closed
    }
}

impl fmt::Display for CargoOffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
