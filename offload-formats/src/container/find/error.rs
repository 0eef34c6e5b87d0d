use std::fmt;

use crate::container::archive::ArchiveError;
use crate::container::coff::CoffError;
use crate::container::elf::ElfError;
use crate::container::macho::MachOError;
use crate::escape::terminal;
use crate::format::bitcode;
use crate::format::bytes::OutOfBounds;
use crate::format::offload_binary;

/// Archives in archives: more is no use to anybody, and hostile input shall not exhaust the stack.
pub(super) const MAX_DEPTH: usize = 16;

/// Why the images of a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindError {
    /// The names of the archive members that it is about, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// What is wrong.
    pub problem: FindProblem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindProblem {
    /// With an archive.
    Archive(ArchiveError),
    /// With an ELF file.
    Elf(ElfError),
    /// With a COFF file.
    Coff(CoffError),
    /// With the headers of a Mach-O file, which are read with the feature `tools` only.
    MachO(MachOError),
    /// A file in a universal one is not inside of it.
    Slice(OutOfBounds),
    /// With bitcode.
    Bitcode(bitcode::Error),
    /// A section that should hold offload binaries is not inside the file.
    Section {
        /// Its number.
        number: u32,
        /// What should be where.
        problem: OutOfBounds,
    },
    /// With offload binaries.
    OffloadBinary {
        /// The section they are in.
        section: Option<u32>,
        /// What is wrong.
        problem: offload_binary::Error,
    },
    /// With offload binaries in bitcode.
    Embedded {
        /// Which embedded object.
        object: usize,
        /// What is wrong; offsets are from its start.
        problem: offload_binary::Error,
    },
    /// A compressed offload binary cannot be inflated.
    Compressed {
        /// The section it is in.
        section: Option<u32>,
        /// Which of those that follow each other.
        binary: usize,
        /// Why.
        problem: offload_binary::InflateError,
    },
    /// With an offload binary that was compressed; offsets are from its start.
    Inflated {
        /// The section it is in.
        section: Option<u32>,
        /// What is wrong.
        problem: offload_binary::Error,
    },
    /// The same bytes are said to be in many sections or files.
    Overlap,
    /// The member of a thin archive is a file of its own.
    Thin,
    /// Archives are too deep in each other.
    Depth,
}

impl FindError {
    /// Returns whether compressed offload binaries claim more than the caller allows.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        let FindProblem::Compressed { problem, .. } = &self.problem else {
            return false;
        };
        matches!(problem, offload_binary::InflateError::Limit { .. })
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
            Self::Overlap => write!(f, "the same bytes are in many of its sections or files"),
            Self::Thin => write!(f, "of a thin archive, so it is a file of its own"),
            Self::Depth => write!(f, "more than {MAX_DEPTH} archives in each other"),
        }
    }
}

impl std::error::Error for FindError {}
impl std::error::Error for FindProblem {}
