//! Floor 2: what formats live in: object files and archives. Still bytes in, bytes out.

// Any bytes may come in: what is not there is an error value, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod archive;
pub mod bundles;
pub mod coff;
pub mod device_archive;
pub mod edit;
pub mod elf;
pub mod object_bundle;
mod symbols;

use std::fmt;
use std::ops::Range;

use object::ReadRef;

use crate::format::magic::Magic;
use crate::format::offload_binary::{self, BinaryEntry};
use archive::{Archive, ArchiveError};
use elf::{Elf, ElfError, FINISHED_SECTION, Section};

pub use symbols::{SymbolsError, definitions};

/// An image, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundImage {
    /// The names of the archive members that it is in, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// The section that it is in, when it is in an object.
    pub section: Option<Section>,
    /// Whether a linker wrapper would link it.
    pub standing: Standing,
    /// Which of the offload binaries of that section or file it is in.
    pub binary: usize,
    /// Where that offload binary is in the file.
    pub binary_range: Range<u64>,
    /// Which entry of that offload binary it is.
    pub index: usize,
    /// What it is and where it is.
    pub entry: BinaryEntry,
}

/// Whether the images of a place are input of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In a file of offload binaries: whoever names the file means them.
    Raw,
    /// In a section that the host linker leaves out: input.
    Excluded,
    /// In a section that programs have in memory: as a rule linked and registered already;
    /// without a registration, what Rust makes of a `static` in such a section.
    Allocated,
    /// In our section of images that are linked and registered: never input.
    Finished,
}

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// For what a linker wrapper links: by the types of sections, names are not read.
    Inputs,
    /// For everything.
    All,
}

/// Finds every image in `data`: offload binaries, an ELF file with sections of them, or an archive
/// of such members. Anything else holds none.
///
/// In the order of the members, of the sections, of the offload binaries.
///
/// # Errors
///
/// When one of these is invalid, or the archive is thin: its members are files of their own.
pub fn images<'d, R: ReadRef<'d>>(data: R) -> Result<Vec<FoundImage>, Error> {
    look(data, Look::All)
}

/// As [`images`], without the finished ones, for which the names of all sections are read.
///
/// # Errors
///
/// As [`images`].
pub fn link_inputs<'d, R: ReadRef<'d>>(data: R) -> Result<Vec<FoundImage>, Error> {
    look(data, Look::Inputs)
}

fn look<'d, R: ReadRef<'d>>(data: R, look: Look) -> Result<Vec<FoundImage>, Error> {
    let mut finder = Finder {
        data,
        look,
        members: Vec::new(),
        found: Vec::new(),
    };
    match finder.file(0..data.len().unwrap_or(0)) {
        Ok(()) => Ok(finder.found),
        Err(problem) => Err(Error {
            members: finder.members,
            problem,
        }),
    }
}

struct Finder<R> {
    data: R,
    look: Look,
    /// Where we are.
    members: Vec<Vec<u8>>,
    found: Vec<FoundImage>,
}

/// Archives in archives: more is no use to anybody, and hostile input shall not exhaust the stack.
const MAX_DEPTH: usize = 16;

impl<'d, R: ReadRef<'d>> Finder<R> {
    fn file(&mut self, range: Range<u64>) -> Result<(), Problem> {
        match Magic::at(self.data, range.clone()) {
            Magic::OffloadBinary => self.binaries(range, None, Standing::Raw),
            Magic::Elf => self.elf(range),
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => self.archive(range),
            _ => Ok(()),
        }
    }

    fn archive(&mut self, range: Range<u64>) -> Result<(), Problem> {
        if self.members.len() == MAX_DEPTH {
            return Err(Problem::Depth);
        }
        for member in Archive::parse(self.data, range)
            .map_err(Problem::Archive)?
            .members
        {
            self.members.push(member.name.to_vec());
            self.file(member.content.ok_or(Problem::Thin)?)?;
            self.members.pop();
        }
        Ok(())
    }

    fn elf(&mut self, range: Range<u64>) -> Result<(), Problem> {
        let elf = Elf::parse(self.data, range).map_err(Problem::Elf)?;
        let names = match self.look {
            Look::Inputs => None,
            Look::All => Some(elf.names().map_err(Problem::Elf)?),
        };
        for section in elf.sections() {
            let finished = match names {
                Some(names) if section.index > 0 => {
                    names.of(&section).map_err(Problem::Elf)? == FINISHED_SECTION.as_bytes()
                }
                _ => false,
            };
            let standing = match section.section_type {
                _ if finished => Standing::Finished,
                elf::SHT_LLVM_OFFLOADING if section.excluded() => Standing::Excluded,
                elf::SHT_LLVM_OFFLOADING if section.allocated() => Standing::Allocated,
                // Neither flag: nobody writes it, and no program has it.
                elf::SHT_LLVM_OFFLOADING => Standing::Excluded,
                _ => continue,
            };
            let range = elf.check(&section).map_err(Problem::Elf)?;
            self.binaries(range, Some(section), standing)?;
        }
        Ok(())
    }

    fn binaries(
        &mut self,
        range: Range<u64>,
        section: Option<Section>,
        standing: Standing,
    ) -> Result<(), Problem> {
        let binaries = offload_binary::walk(self.data, range).map_err(|problem| {
            let section = section.map(|section| section.index);
            Problem::OffloadBinary { section, problem }
        })?;
        for (binary, parsed) in binaries.into_iter().enumerate() {
            if parsed.compressed.is_some() {
                let section = section.map(|section| section.index);
                return Err(Problem::Compressed { section, binary });
            }
            let binary_range = parsed.range();
            for (index, entry) in parsed.entries.into_iter().enumerate() {
                self.found.push(FoundImage {
                    members: self.members.clone(),
                    section,
                    standing,
                    binary,
                    binary_range: binary_range.clone(),
                    index,
                    entry,
                });
            }
        }
        Ok(())
    }
}

/// Why the images of a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The names of the archive members that it is about, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// With an archive.
    Archive(ArchiveError),
    /// With an ELF file.
    Elf(ElfError),
    /// With offload binaries.
    OffloadBinary {
        /// The section they are in.
        section: Option<u32>,
        /// What is wrong.
        problem: offload_binary::Error,
    },
    /// An offload binary has to be inflated before its images can be told.
    Compressed {
        /// The section it is in.
        section: Option<u32>,
        /// Which of those that follow each other.
        binary: usize,
    },
    /// The member of a thin archive is a file of its own.
    Thin,
    /// Archives are too deep in each other.
    Depth,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for member in &self.members {
            write!(f, "member `{}`: ", String::from_utf8_lossy(member))?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(problem) => problem.fmt(f),
            Self::Elf(problem) => problem.fmt(f),
            Self::OffloadBinary { section, problem } => {
                if let Some(section) = section {
                    write!(f, "section {section}: ")?;
                }
                problem.fmt(f)
            }
            Self::Compressed { section, binary } => {
                if let Some(section) = section {
                    write!(f, "section {section}: ")?;
                }
                write!(
                    f,
                    "offload binary {binary} is compressed, and has to be inflated first"
                )
            }
            Self::Thin => write!(f, "of a thin archive, so it is a file of its own"),
            Self::Depth => write!(f, "more than {MAX_DEPTH} archives in each other"),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Problem {}

#[cfg(test)]
mod tests;
