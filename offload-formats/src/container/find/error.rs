use std::fmt;
use std::io;

use crate::container::archive::ArchiveError;
use crate::container::coff::CoffError;
use crate::container::decompression_limit::Remedy;
use crate::container::elf::ElfError;
use crate::container::macho::MachOError;
use crate::escape::terminal;
use crate::format::bitcode;
use crate::format::bytes::{OutOfBounds, SourceError};
use crate::format::offload_binary;

/// Maximum nesting of archives, so that hostile input cannot exhaust the stack.
pub(super) const MAX_DEPTH: usize = 16;

/// Reason why the images of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindError {
    /// Names of the archive members around the problem, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// The problem in that member.
    pub problem: FindProblem,
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindProblem {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Damage in an archive.
    Archive(ArchiveError),
    /// Damage in an ELF file.
    Elf(ElfError),
    /// Damage in a COFF file.
    Coff(CoffError),
    /// Damage in the headers of a Mach-O file, which are read only with the feature `tools`.
    MachO(MachOError),
    /// A slice of a universal file is not inside of it.
    Slice(OutOfBounds),
    /// Damage in bitcode.
    Bitcode(bitcode::BitcodeError),
    /// A section that should hold offload binaries is not inside the file.
    Section {
        /// The section's number.
        number: u32,
        /// Its expected range.
        problem: OutOfBounds,
    },
    /// Damage in an offload binary.
    OffloadBinary {
        /// The section that contains it.
        section: Option<u32>,
        /// The damage.
        problem: offload_binary::OffloadBinaryError,
    },
    /// Damage in an offload binary in bitcode.
    Embedded {
        /// Index of the embedded object.
        object: usize,
        /// The damage; offsets are from the start of the embedded object.
        problem: offload_binary::OffloadBinaryError,
    },
    /// A compressed offload binary cannot be inflated.
    Compressed {
        /// The section that contains it.
        section: Option<u32>,
        /// Index in that section or file.
        binary: usize,
        /// The reason.
        problem: offload_binary::InflateError,
    },
    /// Damage in an inflated offload binary.
    Inflated {
        /// The section that contains it.
        section: Option<u32>,
        /// The damage; offsets are from the start of the inflated bytes.
        problem: offload_binary::OffloadBinaryError,
    },
    /// Bytes that were unpacked cannot be written.
    Output {
        /// Kind of the system's error.
        kind: io::ErrorKind,
    },
    /// Too many sections or slices overlap.
    Overlap,
    /// A member of a thin archive, whose content is another file.
    Thin,
    /// Archives are nested too deeply.
    Depth,
}

impl FindError {
    /// Returns what a user changes so that compressed images can be read, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match &self.problem {
            FindProblem::Output { .. } => Some(Remedy::Space),
            FindProblem::Compressed { problem, .. } => problem.remedy(),
            _ => None,
        }
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for member in &self.members {
            write!(f, "member `{}`: ", terminal(&member[..]))?;
        }
        self.problem.fmt(f)
    }
}

fn in_section(section: Option<u32>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    section.map_or(Ok(()), |section| write!(f, "section {section}: "))
}

impl fmt::Display for FindProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(problem) => problem.fmt(f),
            Self::Archive(problem) => problem.fmt(f),
            Self::Elf(problem) => problem.fmt(f),
            Self::Coff(problem) => problem.fmt(f),
            Self::MachO(problem) => problem.fmt(f),
            Self::Slice(problem) => problem.fmt(f),
            Self::Bitcode(problem) => problem.fmt(f),
            Self::Section { number, problem } => write!(f, "section {number}: {problem}"),
            Self::OffloadBinary { section, problem } => {
                in_section(*section, f)?;
                problem.fmt(f)
            }
            Self::Compressed {
                section,
                binary,
                problem,
            } => {
                in_section(*section, f)?;
                write!(f, "offload binary {binary}: {problem}")
            }
            Self::Inflated { section, problem } => {
                in_section(*section, f)?;
                write!(f, "inflated {problem}")
            }
            Self::Embedded { object, problem } => {
                write!(f, "embedded object {object}: {problem}")
            }
            Self::Output { kind } => write!(f, "cannot write its unpacked bytes: {kind}"),
            Self::Overlap => write!(f, "too many sections or slices share the same bytes"),
            Self::Thin => write!(f, "the archive is thin: the content is another file"),
            Self::Depth => write!(f, "archives are nested more than {MAX_DEPTH} deep"),
        }
    }
}

impl std::error::Error for FindError {}
impl std::error::Error for FindProblem {}
