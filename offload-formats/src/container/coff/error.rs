//! Errors of COFF files.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Reason why a COFF file cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoffError {
    /// A header or a table is not inside the file.
    Outside(OutOfBounds),
    /// A DOS program without the signature of a PE image.
    Signature {
        /// Expected offset of the signature from the start of the file.
        offset: u64,
    },
    /// A header of the same form as a large object's: a member of an import library, or
    /// code for link-time optimization.
    Anonymous,
    /// A PE image, where an object was expected.
    Image,
    /// An optional header of an unknown kind, or too short for its directories.
    OptionalHeader {
        /// Offset from the start of the file.
        offset: u64,
        /// Size in bytes.
        size: u64,
    },
    /// Content or relocations of a section are not inside the file.
    Section {
        /// Number of the section, from 1.
        number: usize,
        /// Their range.
        problem: OutOfBounds,
    },
    /// The name of a section is not in the string table.
    Name {
        /// Number of the section, from 1.
        number: usize,
    },
    /// A symbol whose name, section or auxiliary records are missing.
    Symbol {
        /// Index in the symbol table, with auxiliary records counted.
        index: usize,
    },
    /// A kept section or symbol needs a removed or missing symbol.
    SymbolNeeded {
        /// Index in the symbol table, with auxiliary records counted.
        index: u32,
    },
    /// The debug directory of an image, or data that it refers to, is not inside a section.
    DebugDirectory,
    /// An offset, a size or a count that is too large for the format.
    TooLarge {
        /// The number.
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
            Self::Anonymous => write!(
                f,
                "expected a COFF object, found an import library member or code for link-time optimization"
            ),
            Self::Image => write!(f, "expected a COFF object, found a PE image"),
            Self::OptionalHeader { offset, size } => write!(
                f,
                "optional header at offset {offset:#x} with size {size:#x} is too short or of an unknown kind"
            ),
            Self::Section { number, problem } => write!(f, "section {number}: {problem}"),
            Self::Name { number } => write!(f, "section {number}: its name is missing"),
            Self::Symbol { index } => write!(
                f,
                "symbol {index}: its name, section or auxiliary records are missing"
            ),
            Self::SymbolNeeded { index } => {
                write!(f, "symbol {index} is needed, but removed or missing")
            }
            Self::DebugDirectory => write!(f, "the debug directory is not inside a section"),
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
