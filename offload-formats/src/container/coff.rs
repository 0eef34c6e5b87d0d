//! COFF: object files, of the ordinary and the large form, and PE images. Their sections are found,
//! added and removed, and sections and symbols of objects get other names.
//!
//! The layouts are those of the crate `object`. Integers are little-endian.
//!
//! Specification: <https://learn.microsoft.com/windows/win32/debug/pe-format>.

use std::fmt;
use std::ops::Range;

use object::{ReadRef, pe};

use crate::format::bytes::OutOfBounds;
use file::File;

mod edit;
mod file;
mod headers;
mod image;
mod listing;
mod rename;
mod symbols;
mod write;

pub use edit::{add_sections, remove_sections};
pub(super) use listing::{Listed, Listing};
pub use rename::{Object, Symbol};

/// A section of a COFF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'d> {
    /// From the string table, when it is long.
    pub name: &'d [u8],
    /// From the start of the file that the COFF file is in; without the padding that images have. Of a section
    /// that the file does not hold, empty and at 0.
    pub content: Range<u64>,
}

/// All sections, in the order of their headers.
///
/// # Errors
///
/// When it is no COFF object and no PE image, or a section or a name is not inside the file.
pub fn sections<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Section<'d>>, CoffError> {
    let file = File::read(data, range)?;
    Ok(file.parts.iter().map(file::Part::section).collect())
}

/// The processors of COFF objects, which have no other magic: those that LLVM knows, of the years
/// since `0x14c`, the 386.
const MACHINES: [pe::Machine; 6] = [
    pe::IMAGE_FILE_MACHINE_I386,
    pe::IMAGE_FILE_MACHINE_AMD64,
    pe::IMAGE_FILE_MACHINE_ARMNT,
    pe::IMAGE_FILE_MACHINE_ARM64,
    pe::IMAGE_FILE_MACHINE_ARM64EC,
    pe::IMAGE_FILE_MACHINE_ARM64X,
];

/// Whether a range of `data` starts with the headers of a COFF object for a known processor.
pub fn is_object<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> bool {
    let recognized = headers::recognize(data, range);
    recognized.is_ok_and(|(machine, image)| !image && MACHINES.contains(&machine))
}

/// Whether a range of `data` starts with the headers of a PE image.
pub fn is_image<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> bool {
    headers::recognize(data, range).is_ok_and(|(_, image)| image)
}

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

#[cfg(test)]
mod tests;
