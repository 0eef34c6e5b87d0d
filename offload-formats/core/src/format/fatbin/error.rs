//! Errors of fat binaries.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// An error in a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinReadError {
    /// The header is cut, or the images exceed the range.
    Header(OutOfBounds),
    /// The magic is wrong.
    Magic {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// The fat binary has no image.
    Empty {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// An image exceeds the fat binary.
    Image {
        /// Index of the image.
        index: usize,
        /// The range that exceeds it.
        problem: OutOfBounds,
    },
}

impl fmt::Display for FatbinReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(problem) => write!(f, "CUDA fat binary: {problem}"),
            Self::Magic { offset } => write!(f, "expected a CUDA fat binary at offset {offset:#x}"),
            Self::Empty { offset } => {
                write!(f, "the CUDA fat binary at offset {offset:#x} has no image")
            }
            Self::Image { index, problem } => {
                write!(f, "image {index} of a CUDA fat binary: {problem}")
            }
        }
    }
}

impl std::error::Error for FatbinReadError {}
