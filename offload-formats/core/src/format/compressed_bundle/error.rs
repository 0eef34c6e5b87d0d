//! Errors of compressed bundles.

use std::fmt;
use std::io;

use super::header::CompressedBundleVersion;
use crate::format::bundle;
use crate::format::bytes::OutOfBounds;
use crate::format::codec::Method;
use crate::format::codec::not_built;
use crate::format::magic::COMPRESSED_BUNDLE;
use crate::settings::decompression_limit::Remedy;

/// An error in a compressed bundle. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedBundleError {
    /// Something exceeds the file.
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
        version: u16,
    },
    /// An unknown method.
    Method {
        /// Number of the method.
        method: u16,
    },
    /// The method's cargo feature is off.
    NotBuilt {
        /// The method.
        method: Method,
    },
    /// The size is too small for the header.
    Size {
        /// The size.
        size: u64,
        /// Minimum size.
        least: u64,
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
    /// The data is larger than the uncompressed size.
    Longer {
        /// Uncompressed size in the header.
        claimed: u64,
    },
    /// The data is smaller than the uncompressed size.
    Shorter {
        /// Uncompressed size in the header.
        claimed: u64,
        /// Size of the data.
        found: u64,
    },
    /// The uncompressed size exceeds the caller's limit.
    Limit {
        /// Uncompressed size in the header.
        claimed: u64,
        /// The limit.
        limit: u64,
    },
    /// The data has another hash.
    Hash {
        /// Hash in the header.
        claimed: [u8; 8],
        /// Hash of the data.
        found: [u8; 8],
    },
    /// The bundle inside is damaged.
    Bundle(bundle::BundleError),
}

impl CompressedBundleError {
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

/// A failed write of the decompressed bytes.
impl From<io::Error> for CompressedBundleError {
    fn from(problem: io::Error) -> Self {
        let kind = problem.kind();
        Self::Output { kind }
    }
}

/// An error while compressing a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedBundleWriteError {
    /// The method's cargo feature is off.
    NotBuilt {
        /// The method.
        method: Method,
    },
    /// A size that does not fit into the header.
    TooLarge {
        /// Version of the header.
        version: CompressedBundleVersion,
        /// The size.
        size: u64,
    },
    /// The bundle's size differs from the announced one.
    Size {
        /// Announced size.
        expected: u64,
        /// Number of bytes received, at least up to the first excess.
        found: u64,
    },
    /// The library failed.
    Compressor {
        /// Error of the library.
        message: String,
    },
    /// The bundle cannot be read.
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
