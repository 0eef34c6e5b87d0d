//! Errors of the tools that replace LLVM's.

use std::fmt;
use std::io;
use std::path::Path;

use crate::files::ReadFailure;
use offload_formats::escape::terminal;

/// A message and, if known, a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LlvmToolError {
    text: String,
    hint: Option<String>,
}

impl LlvmToolError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hint: None,
        }
    }

    #[must_use]
    pub(crate) fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Returns the error for a file that cannot be opened, read or written, in LLVM's words.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(format!("'{}': {}", terminal(path), system_message(error)))
    }

    /// Returns an error about the content of a file.
    pub(crate) fn input(path: &Path, problem: impl fmt::Display) -> Self {
        Self::new(format!("{}: {problem}", terminal(path)))
    }
}

/// Returns the system's message without the number that Rust adds.
pub(crate) fn system_message(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(place) = text.find(" (os error ") {
        text.truncate(place);
    }
    text
}

impl From<ReadFailure> for LlvmToolError {
    fn from(failure: ReadFailure) -> Self {
        Self::new(failure.to_string())
    }
}

impl fmt::Display for LlvmToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LlvmToolError {}
