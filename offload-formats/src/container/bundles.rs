//! Finds bundles in a file of bundles, or in the sections of an object or program.
//!
//! HIP programs have one bundle for each source file in the section `.hip_fatbin` (in PE images
//! `.hip_fat`), at multiples of 4096. The name does not matter: a section contains bundles if it
//! starts with one. ELF of any class and byte order, COFF and PE are read. The caller walks the
//! members of archives.
//!
//! Reads the first bytes of each section, then what [`bundles::walk`] reads: some kilobytes of a
//! program of a gigabyte.

use std::fmt;
use std::ops::Range;

use object::elf;

use super::coff::{CoffError, Listing};
use super::elf::{Elf, ElfError};
use super::large::{self, SHF_X86_64_LARGE};
use crate::escape::terminal;
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::{OutOfBounds, ReadAt, SourceError, unless_unread};
use crate::format::magic::Magic;

/// The bundles of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundBundles {
    /// All bundles, in the order of sections and offsets.
    pub bundles: Vec<FoundBundle>,
    /// Bytes after the bundles of a section or file that are neither zero nor a bundle.
    pub trailing: Vec<TrailingBytes>,
}

/// A bundle and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundBundle {
    /// Index among the bundles of the file.
    pub index: usize,
    /// Name of the section that contains the bundle; `None` if the file consists of bundles.
    pub section: Option<Vec<u8>>,
    /// The bundle, with offsets from the start of the data.
    pub bundle: AnyBundle,
}

/// Bytes after the bundles of a section or file that are not a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrailingBytes {
    /// Name of the section that contains the bytes; `None` if the file consists of bundles.
    pub section: Option<Vec<u8>>,
    /// Range from the start of the data; ends at the end of the section or file.
    pub range: Range<u64>,
}

/// Finds every bundle in the file that a range of `data` consists of: bundles, or an object or
/// program with sections of bundles. Files of other formats contain none.
///
/// # Errors
///
/// Fails if the file or a bundle is damaged, a section that starts with a bundle is not inside the range, or `data` cannot
/// be read.
pub fn find<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<FoundBundles, FoundBundlesError> {
    let range = range.start..range.end.min(data.size().unwrap_or(0));
    let mut finder = BundleFinder {
        data,
        range: range.clone(),
        found: FoundBundles::default(),
    };
    let done = match Magic::at(data, range.clone()) {
        Magic::Bundle | Magic::CompressedBundle => finder.bundles(None, range),
        Magic::Elf => finder.elf(),
        Magic::Coff | Magic::DosProgram => finder.windows(),
        _ => Ok(()),
    };
    unless_unread(data, done, |problem| FoundBundlesError {
        section: None,
        problem: FoundBundlesProblem::Read(problem),
    })?;
    Ok(finder.found)
}

struct BundleFinder<R> {
    data: R,
    /// The file's range in `data`.
    range: Range<u64>,
    found: FoundBundles,
}

impl<'d, R: ReadAt<'d>> BundleFinder<R> {
    fn elf(&mut self) -> Result<(), FoundBundlesError> {
        let failed = |problem| in_section(None, FoundBundlesProblem::Elf(problem));
        let elf = Elf::parse(self.data, self.range.clone()).map_err(failed)?;
        for section in elf.sections() {
            let has_content = ![elf::SHT_NULL.0, elf::SHT_NOBITS.0].contains(&section.section_type);
            if !has_content {
                continue;
            }
            // Large data of a linked file may start with other data.
            let is_large = section.flags & SHF_X86_64_LARGE.0 != 0;
            if is_large || self.starts_with_bundle(section.offset, section.size) {
                let names = elf.names().map_err(failed)?;
                let name = names.of(&section).map_err(failed)?;
                let range = elf.check(&section).map_err(failed)?;
                for part in large::parts(self.data, name, range) {
                    if self.starts_with_bundle(part.start, part.end - part.start) {
                        self.bundles(Some(name.to_vec()), part)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Searches COFF and PE. Their first bytes are ambiguous, so a file of another format is not an error.
    fn windows(&mut self) -> Result<(), FoundBundlesError> {
        let listing = match Listing::parse(self.data, self.range.clone()) {
            Ok(Some(listing)) => listing,
            Ok(None) | Err(CoffError::Anonymous) => return Ok(()),
            Err(problem) => return Err(in_section(None, FoundBundlesProblem::Coff(problem))),
        };
        for section in listing.sections() {
            if self.starts_with_bundle(section.offset, section.size) {
                let name = listing
                    .name(&section)
                    .unwrap_or(section.header.raw_name())
                    .to_vec();
                match listing.check(&section) {
                    Ok(range) => self.bundles(Some(name), range)?,
                    Err(problem) => {
                        return Err(in_section(
                            Some(name),
                            FoundBundlesProblem::Outside(problem),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn starts_with_bundle(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size).min(self.range.end);
        let magic = Magic::at(self.data, offset..end);
        matches!(magic, Magic::Bundle | Magic::CompressedBundle)
    }

    fn bundles(
        &mut self,
        section: Option<Vec<u8>>,
        range: Range<u64>,
    ) -> Result<(), FoundBundlesError> {
        let end = range.end;
        let walked = bundles::walk(self.data, range);
        let walked = walked.map_err(|problem| {
            in_section(section.clone(), FoundBundlesProblem::Bundles(problem))
        })?;
        for bundle in walked.bundles {
            let index = self.found.bundles.len();
            let section = section.clone();
            self.found.bundles.push(FoundBundle {
                index,
                section,
                bundle,
            });
        }
        if walked.end < end {
            let range = walked.end..end;
            self.found.trailing.push(TrailingBytes { section, range });
        }
        Ok(())
    }
}

fn in_section(section: Option<Vec<u8>>, problem: FoundBundlesProblem) -> FoundBundlesError {
    FoundBundlesError { section, problem }
}

/// Reason why the bundles of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundBundlesError {
    /// Name of the section with the problem.
    pub section: Option<Vec<u8>>,
    /// The problem.
    pub problem: FoundBundlesProblem,
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundBundlesProblem {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Damage in an ELF file.
    Elf(ElfError),
    /// Damage in the headers of a COFF or PE file.
    Coff(CoffError),
    /// A section is not inside the file.
    Outside(OutOfBounds),
    /// Damage in a bundle; the index counts in the section.
    Bundles(bundles::BundleSequenceError),
}

impl fmt::Display for FoundBundlesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = &self.section {
            write!(f, "section `{}`: ", terminal(&section[..]))?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for FoundBundlesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(problem) => problem.fmt(f),
            Self::Elf(problem) => problem.fmt(f),
            Self::Coff(problem) => problem.fmt(f),
            Self::Outside(problem) => problem.fmt(f),
            Self::Bundles(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for FoundBundlesError {}
impl std::error::Error for FoundBundlesProblem {}

#[cfg(test)]
mod tests;
