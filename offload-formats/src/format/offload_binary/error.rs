//! Why offload binaries cannot be read or written.

use std::fmt;

use super::layout::MAGIC;
use crate::format::bytes::OutOfBounds;
use crate::format::codec::{Method, not_built};

/// Why bytes are not offload binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadBinaryError {
    /// Which of several that follow each other.
    pub index: usize,
    /// Which entry, when the version allows several and it is about one of them.
    pub entry: Option<usize>,
    /// What is wrong.
    pub problem: OffloadBinaryProblem,
}

/// What is wrong with an offload binary. Offsets are from the start of the file, unless the text
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadBinaryProblem {
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
    /// The entries start inside the header, or compressed ones not right after it.
    EntriesOffset {
        /// From the start of the offload binary.
        offset: u64,
        /// Of the header.
        header_size: u64,
    },
    /// The size that it claims to have had before it was compressed does not hold its header.
    InflatedSize {
        /// That size.
        size: u64,
        /// Of the header.
        header_size: u64,
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

impl fmt::Display for OffloadBinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offload binary {}: ", self.index)?;
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for OffloadBinaryProblem {
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
            Self::Version { version } => {
                write!(f, "expected version 1, 2 or 3, found {version}")
            }
            Self::Size { size, least } => {
                write!(f, "expected a size of {least:#x} or more, found {size:#x}")
            }
            Self::EntriesOffset {
                offset,
                header_size,
            } if offset > header_size => write!(
                f,
                "expected compressed entries at its offset {header_size:#x}, found {offset:#x}"
            ),
            Self::EntriesOffset {
                offset,
                header_size,
            } => write!(
                f,
                "expected entries at its offset {header_size:#x} or later, found {offset:#x}"
            ),
            Self::InflatedSize { size, header_size } => write!(
                f,
                "expected an inflated size of {header_size:#x} or more, found {size:#x}"
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

impl std::error::Error for OffloadBinaryError {}
impl std::error::Error for OffloadBinaryProblem {}

/// Why the body of an offload binary cannot be inflated. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InflateError {
    /// It is not inside the file, which is another than it was read from.
    Outside(OutOfBounds),
    /// More is claimed than the caller wants.
    Limit {
        /// The inflated size in the header.
        claimed: u64,
        /// What the caller wants.
        limit: u64,
    },
    /// The compressed data is damaged.
    Data {
        /// What the library says.
        message: String,
    },
    /// More data than claimed.
    Longer {
        /// The inflated size in the header.
        claimed: u64,
    },
    /// Less data than claimed.
    Shorter {
        /// The inflated size in the header.
        claimed: u64,
        /// That of what there is.
        found: u64,
    },
    /// Something follows the compressed data.
    Trailing {
        /// Where.
        offset: u64,
        /// Where the offload binary ends.
        end: u64,
    },
    /// A method whose cargo feature is off.
    NotBuilt {
        /// Which.
        method: Method,
    },
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compressed offload binary: ")?;
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Limit { claimed, limit } => write!(
                f,
                "inflated size {claimed:#x} is more than the allowed {limit:#x}"
            ),
            Self::Data { message } => write!(f, "the data is damaged: {message}"),
            Self::Longer { claimed } => {
                write!(f, "expected data of inflated size {claimed:#x}, found more")
            }
            Self::Shorter { claimed, found } => write!(
                f,
                "expected data of inflated size {claimed:#x}, found {found:#x}"
            ),
            Self::Trailing { offset, end } => {
                write!(
                    f,
                    "expected compressed data up to offset {end:#x}, found its end at {offset:#x}"
                )
            }
            Self::NotBuilt { method } => not_built(*method, f),
        }
    }
}

impl std::error::Error for InflateError {}

/// Why an offload binary cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadBinaryWriteError {
    /// A key, or in version 1 a value, that would be read back short.
    Nul {
        /// Index of the entry.
        entry: usize,
        /// The key or value.
        text: Vec<u8>,
    },
    /// Images that no file can hold behind a header.
    TooLarge {
        /// Index of the entry that is too much.
        entry: usize,
        /// The size of its image.
        image_size: u64,
    },
    /// No entries, for which only version 1 has a form: no bytes.
    NoEntries,
    /// What is to be compressed is something else.
    NotVersion3,
    /// A level that the method does not have in LLVM.
    Level {
        /// Which method.
        method: Method,
        /// The level.
        level: i32,
        /// The first one.
        least: i32,
        /// The last one.
        most: i32,
    },
    /// A method whose cargo feature is off.
    NotBuilt {
        /// Which.
        method: Method,
    },
    /// The library that compresses failed.
    Compressor {
        /// What it says.
        message: String,
    },
}

impl fmt::Display for OffloadBinaryWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nul { text, .. } => write!(
                f,
                "a string of an offload binary contains a NUL: \"{}\"",
                text.escape_ascii()
            ),
            Self::TooLarge { image_size, .. } => write!(
                f,
                "an image of size {image_size:#x} does not fit into an offload binary"
            ),
            Self::NoEntries => write!(f, "an offload binary must have at least one image"),
            Self::NotVersion3 => {
                write!(f, "expected an uncompressed offload binary of version 3")
            }
            // In LLVM's words.
            Self::Level {
                method,
                level,
                least,
                most,
            } => write!(
                f,
                "invalid {method} compression level {level}; expected a value in [{least}, {most}]"
            ),
            Self::NotBuilt { method } => not_built(*method, f),
            Self::Compressor { message } => {
                write!(f, "cannot compress the offload binary: {message}")
            }
        }
    }
}

impl std::error::Error for OffloadBinaryWriteError {}
