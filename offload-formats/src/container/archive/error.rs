//! Errors of archives.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Reason why an archive cannot be read. Members are identified by their header's offset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Another magic.
    Magic {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// A header is not inside the archive.
    Outside(OutOfBounds),
    /// A member header with another end.
    Terminator {
        /// Offset of the header.
        offset: u64,
        /// The bytes found.
        found: [u8; 2],
    },
    /// A size that is not a number.
    Size {
        /// Offset of the header.
        offset: u64,
        /// The field found.
        field: [u8; 10],
    },
    /// The content of a member is not inside the archive.
    Content {
        /// Offset of the header.
        offset: u64,
        /// Range of the content.
        problem: OutOfBounds,
    },
    /// A size or an offset in a big archive that is not a number.
    Place {
        /// Offset of the header.
        offset: u64,
        /// The field found.
        field: [u8; 20],
    },
    /// A cycle in the chain of members of a big archive.
    Chain {
        /// Offset of the header that the chain reaches twice.
        offset: u64,
    },
    /// A missing long name.
    LongName {
        /// Offset of the header.
        offset: u64,
    },
    /// A member of another archive, which GNU's thin archive of archives names.
    Nested {
        /// Offset of the header.
        offset: u64,
    },
    /// The symbol index is damaged.
    Index {
        /// Description of the damage.
        cause: String,
    },
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
                write!(
                    f,
                    "member at offset {offset:#x}: the chain of members has a cycle"
                )
            }
            Self::LongName { offset } => {
                write!(f, "member at offset {offset:#x}: its long name is missing")
            }
            Self::Nested { offset } => write!(
                f,
                "member at offset {offset:#x}: it is a member of another archive, which is not supported (`ar` with the members \
                 themselves makes an archive that is)"
            ),
            Self::Index { cause } => write!(f, "symbol index: {cause}"),
        }
    }
}

impl std::error::Error for ArchiveError {}
