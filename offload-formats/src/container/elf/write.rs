//! ELF files, written: for which machines, and why not.

use std::fmt;

use object::elf;

use super::ElfError;

/// What the headers of a host's objects say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// `e_machine`.
    pub number: u16,
    /// `e_flags`; some linkers refuse objects whose flags differ.
    pub flags: u32,
}

/// Architecture of triples, its machine with the flags of Linux distributions.
const MACHINES: [(&str, Machine); 4] = [
    ("x86_64", Machine::X86_64),
    ("aarch64", Machine::AARCH64),
    ("riscv64", Machine::RISCV64),
    ("powerpc64le", Machine::POWERPC64LE),
];

#[cfg(feature = "tools")]
impl Machine {
    /// Returns an error unless objects for it can be written.
    pub(in crate::container) fn check(self) -> Result<(), ElfWriteError> {
        let number = self.number;
        let known = MACHINES.iter().any(|(_, known)| known.number == number);
        known.then_some(()).ok_or(ElfWriteError::Machine { number })
    }

    /// That of a host, when objects for it can be written.
    #[must_use]
    pub fn of(triple: &crate::names::Triple) -> Option<Self> {
        let row = MACHINES.iter().find(|(arch, _)| *arch == triple.arch());
        row.map(|(_, machine)| *machine)
    }
}

impl Machine {
    /// x86-64.
    pub const X86_64: Self = Self {
        number: elf::EM_X86_64.0,
        flags: 0,
    };
    /// AArch64, little-endian.
    pub const AARCH64: Self = Self {
        number: elf::EM_AARCH64.0,
        flags: 0,
    };
    /// RISC-V with compressed instructions and hardware floating point of double precision.
    pub const RISCV64: Self = Self {
        number: elf::EM_RISCV.0,
        flags: 5,
    };
    /// POWER, little-endian, second version of the ABI.
    pub const POWERPC64LE: Self = Self {
        number: elf::EM_PPC64.0,
        flags: 2,
    };
}

/// Why an ELF file cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfWriteError {
    /// No objects can be written for a host.
    Machine {
        /// `e_machine`.
        number: u16,
    },
    /// What was given is not the ELF file that was expected.
    Elf(ElfError),
    /// A file of 32 bits, or without sections.
    NotWide,
    /// A file without a section header table.
    NoSections,
    /// A section of names that is no string table, or one that programs have in memory.
    Strings {
        /// Its index.
        index: u32,
    },
    /// Two sections of which there can be one.
    Twice {
        /// Index of the first.
        first: u32,
        /// And of another.
        index: u32,
    },
    /// A section group without flags.
    Group {
        /// Its index.
        index: u32,
    },
    /// Relocations that do not have the size of their kind, or are in a form that is only copied.
    Relocations {
        /// Index of their section.
        index: u32,
    },
    /// A symbol whose section is in a table that is not there.
    WideIndex {
        /// In the symbol table.
        symbol: u32,
    },
    /// A section that stays needs one that does not.
    Needed {
        /// The one that was to be removed.
        index: u32,
        /// The one that stays; 0 stands for the file header.
        by: u32,
    },
    /// A section that stays needs a symbol of one that does not.
    SymbolNeeded {
        /// In the symbol table.
        symbol: u32,
        /// The section that stays.
        by: u32,
    },
    /// An offset, a size or a number that the format cannot hold.
    TooLarge {
        /// It, or the largest there is.
        value: u64,
    },
    /// The section to rename is not there.
    NoSection {
        /// Its name.
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
            Self::NotWide => write!(f, "expected an ELF file of 64 bits with sections"),
            Self::NoSections => write!(f, "the ELF file has no section header table"),
            Self::Strings { index } => {
                write!(
                    f,
                    "section {index}: names are in it, and it is no string table"
                )
            }
            Self::Twice { first, index } => {
                write!(
                    f,
                    "section {index}: of a type of which there is one, in section {first}"
                )
            }
            Self::Group { index } => write!(f, "section {index}: a group without flags"),
            Self::Relocations { index } => {
                write!(f, "section {index}: its relocations cannot be written anew")
            }
            Self::WideIndex { symbol } => {
                write!(f, "symbol {symbol}: the index of its section is not there")
            }
            Self::Needed { index, by: 0 } => {
                write!(f, "section {index} cannot be removed: names are in it")
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
            Self::NoSection { name } => {
                write!(f, "there is no section `{}`", crate::escape::terminal(name))
            }
        }
    }
}

impl std::error::Error for ElfWriteError {}
