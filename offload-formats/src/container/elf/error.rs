//! Errors of ELF files.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Reason why an ELF file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfError {
    /// Another magic.
    Magic {
        /// Offset from the start of the file.
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
    /// Section headers with a wrong size for their class.
    EntrySize {
        /// `e_shentsize`.
        found: u16,
        /// The size in that class.
        expected: u16,
    },
    /// The content of a section is not inside the file.
    Section {
        /// Index in the section header table.
        index: u32,
        /// Range of the content.
        problem: OutOfBounds,
    },
    /// A segment is not inside the file.
    Segment {
        /// Index in the program header table.
        index: usize,
        /// Range of the segment.
        problem: OutOfBounds,
    },
    /// The program header table is not inside the file, or its headers have a wrong size for their class.
    Segments {
        /// `e_phoff`, from the start of the ELF file.
        offset: u64,
        /// `e_phnum`.
        count: u32,
        /// `e_phentsize`.
        entry_size: u16,
    },
    /// Notes that are invalid or overlap.
    Notes {
        /// Offset of the notes from the start of the file that contains the ELF file.
        offset: u64,
    },
    /// A reference to a missing section.
    SectionIndex {
        /// The section's index.
        index: u32,
        /// The number of sections.
        count: usize,
    },
    /// The name of a section is not in the section of names.
    Name {
        /// Index of the section.
        index: u32,
        /// Offset of the name from the start of the section of names.
        offset: u32,
    },
    /// A symbol table whose size is not a multiple of a symbol's size.
    SymbolTable {
        /// Index of its section.
        index: u32,
    },
    /// The name of a symbol is not in the string table.
    SymbolName {
        /// Index in the symbol table.
        index: u32,
        /// Offset of the name from the start of the string table.
        offset: u32,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { offset } => write!(f, "expected an ELF file at offset {offset:#x}"),
            Self::Class { class, encoding } => write!(
                f,
                "ELF class {class} with byte order {encoding} is not supported (1 and 2 are)"
            ),
            Self::Version => write!(f, "ELF version is not supported (1 is)"),
            Self::Outside(problem) => problem.fmt(f),
            Self::EntrySize { found, expected } => {
                write!(
                    f,
                    "expected section headers of size {expected:#x}, found {found:#x}"
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
                "{count} program headers of size {entry_size:#x} at offset {offset:#x} are invalid or outside of the file"
            ),
            Self::Notes { offset } => {
                write!(f, "the notes at offset {offset:#x} are invalid or overlap")
            }
            Self::SectionIndex { index, count } => {
                write!(
                    f,
                    "invalid section index {index}: the file has {count} sections"
                )
            }
            Self::Name { index, offset } => {
                write!(
                    f,
                    "section {index}: its name, at offset {offset:#x} of the section names, is missing"
                )
            }
            Self::SymbolTable { index } => {
                write!(
                    f,
                    "section {index}: its size is not a multiple of a symbol's size"
                )
            }
            Self::SymbolName { index, offset } => {
                write!(
                    f,
                    "symbol {index}: its name, at offset {offset:#x} of the string table, is missing"
                )
            }
        }
    }
}

impl std::error::Error for ElfError {}
