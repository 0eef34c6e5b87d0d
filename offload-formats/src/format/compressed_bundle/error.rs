//! Why compressed bundles cannot be read or written.

use std::fmt;
use std::io;

use super::header::CompressedBundleVersion;
use crate::format::bundle;
use crate::format::bytes::OutOfBounds;
use crate::format::codec::Method;
use crate::format::codec::not_built;
use crate::format::magic::COMPRESSED_BUNDLE;

/// Why bytes are not a compressed bundle. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedBundleError {
    /// Something is not inside the file.
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
        version: u16,
    },
    /// A method that cannot be read.
    Method {
        /// Which.
        method: u16,
    },
    /// A method whose cargo feature is off.
    NotBuilt {
        /// Which.
        method: Method,
    },
    /// The size it claims does not hold its header.
    Size {
        /// The size.
        size: u64,
        /// The smallest that does.
        least: u64,
    },
    /// The compressed data is damaged.
    Data {
        /// What the library says.
        message: String,
    },
    /// The output cannot be written.
    Output {
        /// What kept it.
        kind: io::ErrorKind,
    },
    /// More data than claimed.
    Longer {
        /// The uncompressed size in the header.
        claimed: u64,
    },
    /// Less data than claimed.
    Shorter {
        /// The uncompressed size in the header.
        claimed: u64,
        /// The size of the data.
        found: u64,
    },
    /// More data is claimed than the caller wants.
    Limit {
        /// The uncompressed size in the header.
        claimed: u64,
        /// What the caller wants.
        limit: u64,
    },
    /// Other data than claimed.
    Hash {
        /// The hash in the header.
        claimed: [u8; 8],
        /// That of the data.
        found: [u8; 8],
    },
    /// The bundle inside is damaged.
    Bundle(bundle::BundleError),
}

impl fmt::Display for CompressedBundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compressed bundle: ")?;
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Magic { offset, found } => write!(
                f,
                "expected the magic `{}` at offset {offset:#x}, found `{}`",
                COMPRESSED_BUNDLE.escape_ascii(),
                found.escape_ascii()
            ),
            Self::Version { version } => {
                write!(f, "expected version 1, 2 or 3, found {version}")
            }
            Self::Method { method } => {
                write!(f, "expected method 0 (zlib) or 1 (zstd), found {method}")
            }
            Self::NotBuilt { method } => not_built(*method, f),
            Self::Size { size, least } => {
                write!(f, "expected a size of {least:#x} or more, found {size:#x}")
            }
            Self::Data { message } => write!(f, "the data is damaged: {message}"),
            Self::Output { kind } => write!(f, "cannot write its contents: {kind}"),
            Self::Longer { claimed } => {
                write!(
                    f,
                    "expected data of uncompressed size {claimed:#x}, found more"
                )
            }
            Self::Shorter { claimed, found } => write!(
                f,
                "expected data of uncompressed size {claimed:#x}, found {found:#x}"
            ),
            Self::Limit { claimed, limit } => write!(
                f,
                "uncompressed size {claimed:#x} is more than the allowed {limit:#x}"
            ),
            Self::Hash { claimed, found } => write!(
                f,
                "expected data with the hash {:016x}, found {:016x}",
                u64::from_be_bytes(*claimed),
                u64::from_be_bytes(*found)
            ),
            Self::Bundle(problem) => write!(f, "inside of it, {problem}"),
        }
    }
}

impl std::error::Error for CompressedBundleError {}

/// Why a bundle cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedBundleWriteError {
    /// A method whose cargo feature is off.
    NotBuilt {
        /// Which.
        method: Method,
    },
    /// A size that the header has no room for.
    TooLarge {
        /// Whose header.
        version: CompressedBundleVersion,
        /// The size.
        size: u64,
    },
    /// A bundle of another size than was announced.
    Size {
        /// What was announced.
        expected: u64,
        /// What came, or what came before it was too much.
        found: u64,
    },
    /// The library failed.
    Compressor {
        /// What it says.
        message: String,
    },
    /// The bundle cannot be read.
    Input {
        /// What the system says.
        message: String,
    },
    /// The output cannot be written.
    Output {
        /// What the system says.
        message: String,
    },
}

impl fmt::Display for CompressedBundleWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt { method } => not_built(*method, f),
            Self::TooLarge { version, size } => write!(
                f,
                "size {size:#x} does not fit into version {} of a compressed bundle",
                version.raw()
            ),
            Self::Size { expected, found } => write!(
                f,
                "expected a bundle of size {expected:#x} to compress, found {found:#x}"
            ),
            Self::Compressor { message } => write!(f, "cannot compress the bundle: {message}"),
            Self::Input { message } => write!(f, "cannot read the bundle: {message}"),
            Self::Output { message } => write!(f, "cannot write the compressed bundle: {message}"),
        }
    }
}

impl std::error::Error for CompressedBundleWriteError {}
