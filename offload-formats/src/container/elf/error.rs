//! Why a file is not the ELF file that was expected.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Why a file is not the ELF file that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfError {
    /// It starts with something else.
    Magic {
        /// From the start of the file.
        offset: u64,
    },
    /// A class other than 32 and 64 bits, or a byte order other than little and big.
    Class {
        /// `EI_CLASS`.
        class: u8,
        /// `EI_DATA`.
        encoding: u8,
    },
    /// A version of ELF other than 1.
    Version,
    /// A header is not inside the file.
    Outside(OutOfBounds),
    /// Section headers of a size that their class does not have.
    EntrySize {
        /// `e_shentsize`.
        found: u16,
        /// What it is in that class.
        expected: u16,
    },
    /// The content of a section is not inside the file.
    Section {
        /// In the section header table.
        index: u32,
        /// Where it should be.
        problem: OutOfBounds,
    },
    /// A segment is not inside the file.
    Segment {
        /// In the program header table.
        index: usize,
        /// Where it should be.
        problem: OutOfBounds,
    },
    /// The program header table is not inside the file, or not of the headers of its class.
    Segments {
        /// `e_phoff`, from the start of the ELF file.
        offset: u64,
        /// `e_phnum`.
        count: u32,
        /// `e_phentsize`.
        entry_size: u16,
    },
    /// A section that is referred to does not exist.
    SectionIndex {
        /// The index.
        index: u32,
        /// How many sections there are.
        count: usize,
    },
    /// The name of a section is not in the section of names.
    Name {
        /// Of the section.
        index: u32,
        /// From the start of the section of names.
        offset: u32,
    },
    /// A symbol table that does not consist of symbols.
    SymbolTable {
        /// Of its section.
        index: u32,
    },
    /// The name of a symbol is not in the string table.
    SymbolName {
        /// In the symbol table.
        index: u32,
        /// From the start of the string table.
        offset: u32,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { offset } => write!(f, "expected an ELF file at offset {offset:#x}"),
            Self::Class { class, encoding } => write!(
                f,
                "ELF class {class} with byte order {encoding} is not known (both are 1 or 2)"
            ),
            Self::Version => write!(f, "the version of this ELF file is not known (1 is)"),
            Self::Outside(problem) => problem.fmt(f),
            Self::EntrySize { found, expected } => {
                write!(
                    f,
                    "section headers of size {found:#x}, where {expected:#x} was expected"
                )
            }
            Self::Section { index, problem } => write!(f, "section {index}: {problem}"),
            Self::Segment { index, problem } => write!(f, "segment {index}: {problem}"),
            Self::Segments {
                offset,
                count,
                entry_size,
            } => write!(
                f,
                "{count} program headers of size {entry_size:#x} at offset {offset:#x} are not there"
            ),
            Self::SectionIndex { index, count } => {
                write!(f, "section {index} is referred to, and there are {count}")
            }
            Self::Name { index, offset } => {
                write!(
                    f,
                    "section {index}: its name, at {offset:#x} of the names, is not there"
                )
            }
            Self::SymbolTable { index } => {
                write!(
                    f,
                    "section {index}: its size is no multiple of that of a symbol"
                )
            }
            Self::SymbolName { index, offset } => {
                write!(
                    f,
                    "symbol {index}: its name, at {offset:#x} of the strings, is not there"
                )
            }
        }
    }
}

impl std::error::Error for ElfError {}
