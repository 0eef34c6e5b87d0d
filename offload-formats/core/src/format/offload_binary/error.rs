//! Errors of offload binaries.

use std::fmt;
use std::io;

use super::layout::MAGIC;
use crate::format::bytes::OutOfBounds;
use crate::format::codec::{Method, not_built};
use crate::settings::decompression_limit::Remedy;

/// An error in offload binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffloadBinaryError {
    /// Index of the offload binary among those that follow each other.
    pub index: usize,
    /// Index of the entry, if the version allows several and the error concerns one.
    pub entry: Option<usize>,
    /// Cause of the error.
    pub problem: OffloadBinaryProblem,
}

/// Cause of an [`OffloadBinaryError`]. Offsets are from the start of the file, unless the text says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadBinaryProblem {
    /// Something exceeds the offload binary, or the offload binary exceeds the file.
    Outside(OutOfBounds),
    /// The magic is wrong.
    Magic {
        /// Offset of the magic.
        offset: u64,
        /// Bytes found there.
        found: [u8; 4],
    },
    /// An unsupported version.
    Version {
        /// The version.
        version: u32,
    },
    /// The size is too small for the headers.
    Size {
        /// The size.
        size: u64,
        /// Minimum size.
        least: u64,
    },
    /// The entries start inside the header; compressed ones must start right after it.
    EntriesOffset {
        /// Offset from the start of the offload binary.
        offset: u64,
        /// Size of the header.
        header_size: u64,
    },
    /// The inflated size is too small for the header.
    InflatedSize {
        /// Inflated size.
        size: u64,
        /// Size of the header.
        header_size: u64,
    },
    /// More string entries than the offload binary has room for.
    SharedStrings {
        /// Size of the offload binary.
        size: u64,
    },
    /// A string without its NUL.
    Unterminated {
        /// `key` or `value`.
        what: &'static str,
        /// Offset of the string.
        offset: u64,
        /// End of the range that must contain the NUL.
        end: u64,
    },
    /// The value of a key that is always text is not UTF-8.
    NotText {
        /// The key.
        key: &'static str,
        /// Offset of the value.
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

/// An error while inflating an offload binary. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InflateError {
    /// The body exceeds the file, which is not the file that it was parsed from.
    Outside(OutOfBounds),
    /// The inflated size exceeds the caller's limit.
    Limit {
        /// Inflated size in the header.
        claimed: u64,
        /// The limit.
        limit: u64,
    },
    /// The compressed data is damaged.
    Data {
        /// Error of the library.
        message: String,
    },
    /// The output cannot be written.
    Output {
        /// Kind of the system's error.
        kind: io::ErrorKind,
    },
    /// The data is larger than the inflated size.
    Longer {
        /// Inflated size in the header.
        claimed: u64,
    },
    /// The data is smaller than the inflated size.
    Shorter {
        /// Inflated size in the header.
        claimed: u64,
        /// Size of the data.
        found: u64,
    },
    /// Other data follows the compressed data.
    Trailing {
        /// Offset of the other data.
        offset: u64,
        /// End of the offload binary.
        end: u64,
    },
    /// The method's cargo feature is off.
    NotBuilt {
        /// The method.
        method: Method,
    },
}

impl InflateError {
    /// Returns what a user changes so that it can be read, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Limit { .. } => Some(Remedy::Limit),
            Self::Output { .. } => Some(Remedy::Space),
            _ => None,
        }
    }
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
            Self::Output { kind } => write!(f, "cannot write its contents: {kind}"),
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

/// A failed write of the inflated bytes.
impl From<io::Error> for InflateError {
    fn from(problem: io::Error) -> Self {
        let kind = problem.kind();
        Self::Output { kind }
    }
}

/// An error while writing an offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadBinaryWriteError {
    /// A key contains a NUL, or in version 1 a value does: readers would cut it.
    Nul {
        /// Index of the entry.
        entry: usize,
        /// The key or value.
        text: Vec<u8>,
    },
    /// An image is too large for a file.
    TooLarge {
        /// Index of the entry.
        entry: usize,
        /// Size of its image.
        image_size: u64,
    },
    /// No entries. Only version 1 has a form for that: no bytes.
    NoEntries,
    /// The input of the compression is not an uncompressed offload binary of version 3.
    NotVersion3,
    /// A level that the method does not have in LLVM.
    Level {
        /// The method.
        method: Method,
        /// The level.
        level: i32,
        /// Lowest level.
        least: i32,
        /// Highest level.
        most: i32,
    },
    /// The method's cargo feature is off.
    NotBuilt {
        /// The method.
        method: Method,
    },
    /// The compression library failed.
    Compressor {
        /// Error of the library.
        message: String,
    },
    /// The offload binary cannot be read.
    Input {
        /// Error of the system.
        message: String,
    },
    /// The output cannot be written.
    Output {
        /// Error of the system.
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
            // LLVM's wording.
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
            Self::Input { message } => write!(f, "cannot read the offload binary: {message}"),
            Self::Output { message } => {
                write!(f, "cannot write the compressed offload binary: {message}")
            }
        }
    }
}

impl std::error::Error for OffloadBinaryWriteError {}
