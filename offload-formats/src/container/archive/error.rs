//! Why a file is not an archive.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Why a file is not the archive that was expected. Members are named by where their header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It starts with something else.
    Magic {
        /// From the start of the file.
        offset: u64,
    },
    /// A header is not inside the archive.
    Outside(OutOfBounds),
    /// A member header ends with something else.
    Terminator {
        /// Of the header.
        offset: u64,
        /// What is there.
        found: [u8; 2],
    },
    /// A size that is not a number.
    Size {
        /// Of the header.
        offset: u64,
        /// What is there.
        field: [u8; 10],
    },
    /// The content of a member is not inside the archive.
    Content {
        /// Of the header.
        offset: u64,
        /// Where it should be.
        problem: OutOfBounds,
    },
    /// In a big archive, a size or a place that is not a number.
    Place {
        /// Of the header.
        offset: u64,
        /// What is there.
        field: [u8; 20],
    },
    /// In a big archive, a member that comes after itself.
    Chain {
        /// Of its header.
        offset: u64,
    },
    /// A long name that is not there.
    LongName {
        /// Of the header.
        offset: u64,
    },
    /// The index cannot be read.
    Index(object::read::Error),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { offset } => write!(f, "expected an archive at offset {offset:#x}"),
            Self::Outside(problem) => problem.fmt(f),
            Self::Terminator { offset, found } => write!(
                f,
                "member at offset {offset:#x}: expected its header to end with \"`\\n\", found \"{}\"",
                found.escape_ascii()
            ),
            Self::Size { offset, field } => write!(
                f,
                "member at offset {offset:#x}: size field `{}` is not a decimal number",
                field.trim_ascii_end().escape_ascii()
            ),
            Self::Content { offset, problem } => {
                write!(f, "member at offset {offset:#x}: {problem}")
            }
            Self::Place { offset, field } => write!(
                f,
                "header at offset {offset:#x}: `{}` is not a decimal number",
                field.trim_ascii_end().escape_ascii()
            ),
            Self::Chain { offset } => {
                write!(f, "member at offset {offset:#x} comes after itself")
            }
            Self::LongName { offset } => {
                write!(
                    f,
                    "member at offset {offset:#x}: its long name is not there"
                )
            }
            Self::Index(problem) => write!(f, "symbol index: {problem}"),
        }
    }
}

impl std::error::Error for ArchiveError {}
