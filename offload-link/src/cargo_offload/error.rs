//! Errors of `cargo offload`.

use std::fmt;
use std::path::Path;

use offload_formats::escape::terminal;

use crate::decompressed;
use crate::files::{self, ReadFailure};

/// Message of a failed command.
#[derive(Debug)]
pub(crate) struct CargoOffloadError {
    message: String,
    report: ErrorReport,
}

/// Tells what is left to do with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorReport {
    /// Print the message.
    Print,
    /// Print the message: the command line is invalid.
    Usage,
    /// Nothing: the message was printed.
    Printed,
    /// Nothing: nobody reads the output any more, as in `cargo offload inspect … | head`.
    Closed,
}

impl CargoOffloadError {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self {
            message: problem.to_string(),
            report: ErrorReport::Print,
        }
    }

    /// Returns an error about a file or folder.
    pub(super) fn of(path: &Path, problem: impl fmt::Display) -> Self {
        Self::new(format_args!("{}: {problem}", terminal(path)))
    }

    /// Fails if content of an input could not be written to a temporary file; parsers would call it damaged.
    pub(super) fn check_unpacked(path: &Path) -> Result<(), Self> {
        files::check_unpacked().map_err(|problem| {
            let hint = decompressed::FULL;
            Self::of(path, format_args!("{problem}\nhint: {hint}"))
        })
    }

    /// Returns the error of an invalid command line.
    pub(crate) fn usage(problem: impl fmt::Display) -> Self {
        Self {
            report: ErrorReport::Usage,
            ..Self::new(problem)
        }
    }

    /// Tells whether the command line is invalid.
    pub(crate) fn is_usage(&self) -> bool {
        self.report == ErrorReport::Usage
    }

    /// Returns the error for an input that could not be read; parsers would call it damaged or empty.
    pub(crate) fn unread(problem: ReadFailure) -> Self {
        Self::new(problem)
    }

    /// Returns the error for failed output.
    pub(crate) fn unwritten(problem: std::io::Error) -> Self {
        Self {
            report: match problem.kind() {
                std::io::ErrorKind::BrokenPipe => ErrorReport::Closed,
                _ => ErrorReport::Print,
            },
            ..Self::new(format_args!("cannot write: {problem}"))
        }
    }

    /// Tells whether the reader of the output stopped reading, which is no failure.
    pub(crate) fn is_closed_output(&self) -> bool {
        self.report == ErrorReport::Closed
    }

    /// Returns the error of a command that has printed its errors.
    pub(crate) fn reported() -> Self {
        Self {
            report: ErrorReport::Printed,
            ..Self::new("")
        }
    }

    /// Tells whether the message was printed.
    pub(crate) fn is_reported(&self) -> bool {
        self.report == ErrorReport::Printed
    }
}

impl fmt::Display for CargoOffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
