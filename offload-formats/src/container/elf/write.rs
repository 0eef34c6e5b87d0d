//! Machines of written ELF files, and errors.

use std::fmt;

use offload_formats_core::names::host::MACHINES;

use super::ElfError;

#[doc(inline)]
pub use offload_formats_core::names::host::Machine;

#[cfg(feature = "tools")]
/// Returns an error unless objects for a machine can be written.
pub(in crate::container) fn check(machine: Machine) -> Result<(), ElfWriteError> {
    let number = machine.number;
    let known = MACHINES.iter().any(|(_, known)| known.number == number);
    known.then_some(()).ok_or(ElfWriteError::Machine { number })
}

/// Reason why an ELF file cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfWriteError {
    /// Objects for a machine cannot be written.
    Machine {
        /// `e_machine`.
        number: u16,
    },
    /// The input cannot be read.
    Elf(ElfError),
    /// A 32-bit file, or one without sections.
    NotWide,
    /// A file without a section header table.
    NoSections,
    /// A section of names that is not a string table, or that programs load.
    Strings {
        /// The section's index.
        index: u32,
    },
    /// Two sections of a type that a file can have once.
    Twice {
        /// Index of the first.
        first: u32,
        /// Index of the second.
        index: u32,
    },
    /// A section group without flags.
    Group {
        /// The group's index.
        index: u32,
    },
    /// Relocations with a wrong size, or in a form that can only be copied.
    Relocations {
        /// Index of their section.
        index: u32,
    },
    /// A symbol whose section index is in a missing table.
    WideIndex {
        /// The symbol's index.
        symbol: u32,
    },
    /// A kept section needs a removed one.
    Needed {
        /// Index of the removed section.
        index: u32,
        /// Index of the kept section; 0 represents the file header.
        by: u32,
    },
    /// A kept section needs a symbol of a removed one.
    SymbolNeeded {
        /// The symbol's index.
        symbol: u32,
        /// Index of the kept section.
        by: u32,
    },
    /// An offset, a size or a count that is too large for the format.
    TooLarge {
        /// The number, or `u64::MAX` if it does not fit in a `u64`.
        value: u64,
    },
    /// A symbol to rename that is missing, or that other objects do not see.
    NoSymbol {
        /// The symbol's index.
        symbol: u32,
    },
    /// A missing section.
    NoSection {
        /// The section's name.
        name: String,
    },
}

impl From<ElfError> for ElfWriteError {
    fn from(problem: ElfError) -> Self {
        Self::Elf(problem)
    }
}

impl fmt::Display for ElfWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine { number } => {
                write!(
                    f,
                    "objects for machine {number:#x} cannot be written (those for"
                )?;
                for (index, (name, machine)) in MACHINES.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "," };
                    write!(f, "{separator} {name}, {:#x}", machine.number)?;
                }
                write!(f, " can)")
            }
            Self::Elf(problem) => problem.fmt(f),
            Self::NotWide => write!(f, "expected a 64-bit ELF file with sections"),
            Self::NoSections => write!(f, "the ELF file has no section header table"),
            Self::Strings { index } => {
                write!(
                    f,
                    "section {index}: expected a string table that programs do not load"
                )
            }
            Self::Twice { first, index } => {
                write!(
                    f,
                    "section {index}: expected one section of this type, found it in section {first}, too"
                )
            }
            Self::Group { index } => write!(f, "section {index}: the group has no flags"),
            Self::Relocations { index } => {
                write!(f, "section {index}: its relocations cannot be rewritten")
            }
            Self::WideIndex { symbol } => {
                write!(f, "symbol {symbol}: its section index is missing")
            }
            Self::Needed { index, by: 0 } => {
                write!(f, "section {index} cannot be removed: it contains names")
            }
            Self::Needed { index, by } => {
                write!(
                    f,
                    "section {index} cannot be removed: section {by} needs it"
                )
            }
            Self::SymbolNeeded { symbol, by } => {
                write!(
                    f,
                    "symbol {symbol} cannot be removed: section {by} needs it"
                )
            }
            Self::TooLarge { value } => write!(f, "{value:#x} is too large for this file"),
            Self::NoSymbol { symbol } => {
                write!(
                    f,
                    "symbol {symbol}: expected a defined symbol that other objects see"
                )
            }
            Self::NoSection { name } => {
                write!(f, "section `{}` is missing", crate::escape::terminal(name))
            }
        }
    }
}

impl std::error::Error for ElfWriteError {}
