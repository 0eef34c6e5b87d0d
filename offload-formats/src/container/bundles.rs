//! Bundles wherever they are: in a file of their own, or in the sections of an object or program.
//!
//! HIP programs have them in a section `.hip_fatbin`, at multiples of 4096, as many as there are
//! source files; images of Windows call it `.hip_fat`. Names are not asked for: a section holds
//! bundles when it starts with one. ELF of any class and byte order, COFF and PE are read;
//! archives are left to the caller, who knows their members.
//!
//! Of each section the first bytes are read, then of the bundles what
//! [`bundles::walk`] reads: a program of a gigabyte costs some kilobytes.

use std::fmt;
use std::ops::Range;

use object::elf;

use super::coff::{CoffError, Listing};
use super::elf::{Elf, ElfError};
use crate::escape::terminal;
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::{OutOfBounds, ReadAt};
use crate::format::magic::Magic;

/// The bundles of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundBundles {
    /// In the order of the sections, and in these as they lie.
    pub bundles: Vec<FoundBundle>,
    /// What follows the bundles of a section or file, and is neither zero nor a bundle.
    pub rests: Vec<Rest>,
}

/// A bundle, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBundle {
    /// Which of those of the file.
    pub index: usize,
    /// The name of the section that it is in, as far as there is one.
    pub section: Option<Vec<u8>>,
    /// What it is and where it is, from the start of the data.
    pub bundle: AnyBundle,
}

/// Bytes behind bundles that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The name of the section that they are in, as far as there is one.
    pub section: Option<Vec<u8>>,
    /// From the start of the data, up to the end of the section or file.
    pub range: Range<u64>,
}

/// Finds every bundle in the file that a range of `data` consists of: bundles, or an object or
/// program with sections of them. Anything else holds none.
///
/// # Errors
///
/// When one of these is damaged, or a section that starts with a bundle is not inside the range.
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
    match Magic::at(data, range.clone()) {
        Magic::Bundle | Magic::CompressedBundle => finder.bundles(None, range)?,
        Magic::Elf => finder.elf()?,
        Magic::Coff | Magic::DosProgram => finder.windows()?,
        _ => {}
    }
    Ok(finder.found)
}

struct BundleFinder<R> {
    data: R,
    /// Of the file.
    range: Range<u64>,
    found: FoundBundles,
}

impl<'d, R: ReadAt<'d>> BundleFinder<R> {
    fn elf(&mut self) -> Result<(), FoundBundlesError> {
        let failed = |problem| in_section(None, FoundBundlesProblem::Elf(problem));
        let elf = Elf::parse(self.data, self.range.clone()).map_err(failed)?;
        for section in elf.sections() {
            let has_content = ![elf::SHT_NULL.0, elf::SHT_NOBITS.0].contains(&section.section_type);
            if has_content && self.starts_with_bundle(section.offset, section.size) {
                let names = elf.names().map_err(failed)?;
                let name = names.of(&section).map_err(failed)?.to_vec();
                let range = elf.check(&section).map_err(failed)?;
                self.bundles(Some(name), range)?;
            }
        }
        Ok(())
    }

    /// COFF and PE, which are hardly to be told by their first bytes: what is neither is no error.
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
            self.found.rests.push(Rest { section, range });
        }
        Ok(())
    }
}

fn in_section(section: Option<Vec<u8>>, problem: FoundBundlesProblem) -> FoundBundlesError {
    FoundBundlesError { section, problem }
}

/// Why the bundles of a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBundlesError {
    /// The name of the section that it is about.
    pub section: Option<Vec<u8>>,
    /// What is wrong.
    pub problem: FoundBundlesProblem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundBundlesProblem {
    /// With an ELF file.
    Elf(ElfError),
    /// With the headers of a COFF or PE file.
    Coff(CoffError),
    /// A section is not inside the file.
    Outside(OutOfBounds),
    /// With bundles; the index is that in the section.
    Bundles(bundles::Error),
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
