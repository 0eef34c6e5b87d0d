//! Reasons why a zip file cannot be read or rewritten.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Reason why a zip file cannot be read or rewritten, with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZipError {
    /// Offset from the start of the data; `None` if the problem contains it.
    pub offset: Option<u64>,
    /// The problem.
    pub problem: ZipProblem,
}

/// Reason why a zip file cannot be read or rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZipProblem {
    /// The file does not end with a directory.
    NoDirectory,
    /// A record does not start with its magic.
    Magic {
        /// Name of the record.
        what: &'static str,
    },
    /// A record, name or content exceeds its container.
    Outside(OutOfBounds),
    /// The zip file has several volumes.
    Split,
    /// Two members share bytes.
    Overlap,
    /// Sizes of a member that is not compressed differ.
    StoredSize {
        /// Size according to the directory.
        size: u64,
        /// Size of the stored bytes.
        stored_size: u64,
    },
    /// The new file needs zip64, which the old one does not use.
    Large,
}

impl ZipProblem {
    pub(super) fn at(self, offset: u64) -> ZipError {
        ZipError {
            offset: Some(offset),
            problem: self,
        }
    }
}

impl ZipError {
    pub(super) fn outside(problem: OutOfBounds) -> Self {
        Self {
            offset: None,
            problem: ZipProblem::Outside(problem),
        }
    }
}

impl fmt::Display for ZipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("zip file: ")?;
        match self.problem {
            ZipProblem::NoDirectory => f.write_str("expected a directory at the end"),
            ZipProblem::Magic { what } => write!(f, "expected a {what}"),
            ZipProblem::Outside(problem) => problem.fmt(f),
            ZipProblem::Split => f.write_str("files of several volumes are not supported"),
            ZipProblem::Overlap => f.write_str("the member overlaps the one before it"),
            ZipProblem::StoredSize { size, stored_size } => write!(
                f,
                "size {size:#x} differs from the stored size {stored_size:#x} of a member without compression"
            ),
            ZipProblem::Large => {
                f.write_str("the new file needs zip64, which the old one does not use")
            }
        }?;
        match self.offset {
            Some(offset) => write!(f, " at offset {offset:#x}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ZipError {}
