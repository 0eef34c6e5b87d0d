//! Why a file is not a COFF file, or cannot be written.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Why a file is not the COFF file that was expected, or cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoffError {
    /// A header or a table is not inside the file.
    Outside(OutOfBounds),
    /// A DOS program without the signature of a PE image.
    Signature {
        /// Where it should be, from the start of the file.
        offset: u64,
    },
    /// A header of the same shape as that of a large object: a member of an import library, or
    /// code for a linker that optimizes.
    Anonymous,
    /// A PE image, where an object was expected.
    Image,
    /// An optional header of an unknown kind, or too short for its directories.
    OptionalHeader {
        /// From the start of the file.
        offset: u64,
        /// In bytes.
        size: u64,
    },
    /// Contents or relocations of a section are not inside the file.
    Section {
        /// Of the section, the first being 1.
        number: usize,
        /// What should be where.
        problem: OutOfBounds,
    },
    /// The name of a section is not in the string table.
    Name {
        /// Of the section, the first being 1.
        number: usize,
    },
    /// A symbol whose name, section or auxiliary records are not there.
    Symbol {
        /// In the symbol table, auxiliary records counted.
        index: usize,
    },
    /// A section or symbol that stays needs a symbol that does not, or that is not there.
    SymbolNeeded {
        /// In the symbol table, auxiliary records counted.
        index: u32,
    },
    /// The debug directory of an image, or what it refers to, is in no section.
    DebugDirectory,
    /// An offset, a size or a count that the format cannot hold.
    TooLarge {
        /// It.
        value: u64,
    },
}

impl fmt::Display for CoffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Signature { offset } => {
                write!(f, "expected a PE signature at offset {offset:#x}")
            }
            Self::Anonymous => write!(f, "no object: of an import library, or code for a linker"),
            Self::Image => write!(f, "no object: a PE image"),
            Self::OptionalHeader { offset, size } => write!(
                f,
                "optional header at offset {offset:#x} with size {size:#x} is not that of an image"
            ),
            Self::Section { number, problem } => write!(f, "section {number}: {problem}"),
            Self::Name { number } => write!(f, "section {number}: its name is not there"),
            Self::Symbol { index } => write!(
                f,
                "symbol {index}: its name, section or auxiliary records are not there"
            ),
            Self::SymbolNeeded { index } => {
                write!(
                    f,
                    "symbol {index} is needed, and not there or to be removed"
                )
            }
            Self::DebugDirectory => write!(f, "the debug directory is in no section"),
            Self::TooLarge { value } => write!(f, "{value:#x} is too large for this file"),
        }
    }
}

impl std::error::Error for CoffError {}

impl From<OutOfBounds> for CoffError {
    fn from(problem: OutOfBounds) -> Self {
        Self::Outside(problem)
    }
}
