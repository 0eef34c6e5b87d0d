//! Why bundles cannot be read or written.

use std::fmt;

use crate::format::bytes::OutOfBounds;
use crate::format::magic::BUNDLE;

/// Why bytes are not bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleError {
    /// Which of several that follow each other.
    pub index: usize,
    /// Which entry, when it is about one.
    pub entry: Option<u64>,
    /// What is wrong.
    pub problem: BundleProblem,
}

/// What is wrong with a bundle. Offsets are from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleProblem {
    /// Something is not inside the file.
    Outside(OutOfBounds),
    /// It starts with something else.
    Magic {
        /// Where.
        offset: u64,
        /// What is there.
        found: [u8; 24],
    },
    /// An image where the magic is.
    NoImageOffset {
        /// Where the bundle starts.
        offset: u64,
    },
    /// An entry ID that is not UTF-8.
    NotText {
        /// Where it starts.
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

/// Why a bundle cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleWriteError {
    /// Two images with one ID, of which readers would find one.
    Twice {
        /// The ID.
        id: String,
    },
    /// An image that no file can hold behind those before it.
    TooLarge {
        /// Its ID.
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
