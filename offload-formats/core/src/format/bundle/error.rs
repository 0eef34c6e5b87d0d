//! Errors of bundles.

use std::fmt;

use crate::format::bytes::OutOfBounds;
use crate::format::magic::BUNDLE;

/// An error in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleError {
    /// Index of the bundle among those that follow each other.
    pub index: usize,
    /// Index of the entry, if the error concerns one.
    pub entry: Option<u64>,
    /// Cause of the error.
    pub problem: BundleProblem,
}

/// Cause of a [`BundleError`]. Offsets are from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleProblem {
    /// Something exceeds the file.
    Outside(OutOfBounds),
    /// The magic is wrong.
    Magic {
        /// Offset of the magic.
        offset: u64,
        /// Bytes found there.
        found: [u8; 24],
    },
    /// The offset of an image is 0.
    NoImageOffset {
        /// Offset of the bundle.
        offset: u64,
    },
    /// An entry ID that is not UTF-8.
    NotText {
        /// Offset of the ID.
        offset: u64,
    },
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bundle {}: ", self.index)?;
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Magic { offset, found } => write!(
                f,
                "expected the magic `{}` at offset {offset:#x}, found `{}`",
                BUNDLE.escape_ascii(),
                found.escape_ascii()
            ),
            Self::NoImageOffset { offset } => {
                write!(
                    f,
                    "expected an image offset after the headers of the bundle at {offset:#x}, found 0"
                )
            }
            Self::NotText { offset } => {
                write!(f, "entry ID at offset {offset:#x} is not UTF-8")
            }
        }
    }
}

impl std::error::Error for BundleError {}
impl std::error::Error for BundleProblem {}

/// An error while writing a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleWriteError {
    /// Two images with the same ID, of which readers would find one.
    Twice {
        /// The ID.
        id: String,
    },
    /// The images up to this one are too large for a file.
    TooLarge {
        /// ID of the image.
        id: String,
    },
}

impl fmt::Display for BundleWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { id } => write!(f, "two images for the entry ID {id:?}"),
            Self::TooLarge { id } => {
                write!(f, "the image for {id:?} does not fit into a bundle")
            }
        }
    }
}

impl std::error::Error for BundleWriteError {}
