//! Why offload binaries cannot be read or written.

use std::fmt;

use super::{Header, MAGIC};
use crate::format::bytes::OutOfBounds;

/// Why bytes are not offload binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Which of several that follow each other.
    pub index: usize,
    /// Which entry, when the version allows several and it is about one of them.
    pub entry: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with an offload binary. Offsets are from the start of the file, unless the text
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Something is not inside the offload binary, or that not inside the file.
    Outside(OutOfBounds),
    /// It starts with something else.
    Magic {
        /// Where.
        offset: u64,
        /// What is there.
        found: [u8; 4],
    },
    /// A version that cannot be read.
    Version {
        /// Which.
        version: u32,
    },
    /// The size it claims does not hold its headers.
    Size {
        /// The size.
        size: u64,
        /// The smallest that does.
        least: u64,
    },
    /// The entries start inside the header.
    EntriesOffset {
        /// From the start of the offload binary.
        offset: u64,
    },
    /// More string entries than there is room for.
    SharedStrings {
        /// Of the offload binary.
        size: u64,
    },
    /// A string without its NUL.
    Unterminated {
        /// `key` or `value`.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// Where the NUL should have come, at the latest.
        end: u64,
    },
    /// The value of a key that is always text is not UTF-8.
    NotText {
        /// The key.
        key: &'static str,
        /// Where the value starts.
        offset: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offload binary {}: ", self.index)?;
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Magic { offset, found } => {
                let (found, magic) = (u32::from_be_bytes(*found), u32::from_be_bytes(MAGIC));
                write!(
                    f,
                    "expected the magic {magic:08x} at offset {offset:#x}, found {found:08x}"
                )
            }
            Self::Version { version: 3 } => {
                write!(f, "version 3 is not supported yet (1 and 2 are)")
            }
            Self::Version { version } => write!(f, "version {version} is not known (1 and 2 are)"),
            Self::Size { size, least } => {
                write!(
                    f,
                    "size {size:#x} is less than the {least:#x} of its headers"
                )
            }
            Self::EntriesOffset { offset } => write!(
                f,
                "entries at offset {offset:#x} of it start inside its header of size {:#x}",
                Header::LEN
            ),
            Self::SharedStrings { size } => {
                write!(
                    f,
                    "its size {size:#x} is too small for the string entries of all entries"
                )
            }
            Self::Unterminated { what, offset, end } => {
                write!(
                    f,
                    "{what} at offset {offset:#x} has no NUL before the end at {end:#x}"
                )
            }
            Self::NotText { key, offset } => {
                write!(f, "value of `{key}` at offset {offset:#x} is not UTF-8")
            }
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Problem {}

/// Why an offload binary cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// A key or value that would be read back short.
    Nul {
        /// The key or value.
        text: String,
    },
    /// An image that no file can hold behind a header.
    TooLarge {
        /// Its size.
        image_size: u64,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nul { text } => {
                write!(f, "a string of an offload binary contains a NUL: {text:?}")
            }
            Self::TooLarge { image_size } => {
                write!(
                    f,
                    "an image of size {image_size:#x} does not fit into an offload binary"
                )
            }
        }
    }
}

impl std::error::Error for WriteError {}
