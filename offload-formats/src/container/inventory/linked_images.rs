//! Images in programs and shared libraries that Intel's compiler links, such as those of SYCL.
//!
//! Its linker wrapper writes the images for a target one after the other into a section, whose name is that of a bundle's
//! entry: `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`. The section `.tgtimg` lists the images of all targets: the address and the
//! size of each.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::container::host_file::HostFile;
use crate::container::object_bundle::BUNDLE_SECTION;
use crate::escape::terminal;
use crate::format::bytes::ReadAt;

/// Section of the table, and the size of its entries: address and size of an image.
const TABLE: &str = ".tgtimg";
const ENTRY_SIZE: u64 = 16;
/// Longest name of a section in bytes, so that a small file has no large list.
const LONGEST_NAME: usize = 256;

/// A section with images for one target.
#[derive(Debug)]
pub(super) struct LinkedSection<'d> {
    pub(super) name: &'d [u8],
    /// Entry ID in the section's name.
    pub(super) id: &'d str,
    pub(super) content: Range<u64>,
    /// Largest size of the padding after an image in bytes.
    padding: u64,
    /// Ranges of the images, in the order of the table.
    pub(super) images: Vec<Range<u64>>,
}

impl LinkedSection<'_> {
    /// Returns the range of bytes at a distance from the start, if they are in the section.
    fn part(&self, distance: u64, size: u64) -> Option<Range<u64>> {
        let start = self.content.start.checked_add(distance)?;
        let end = start.checked_add(size)?;
        (start < self.content.end && end <= self.content.end).then_some(start..end)
    }
}

/// The images of a linked file.
#[derive(Debug, Default)]
pub(super) struct LinkedImages<'d> {
    pub(super) sections: Vec<LinkedSection<'d>>,
    pub(super) problems: Vec<LinkedImagesProblem>,
}

impl<'d> LinkedImages<'d> {
    /// Reads a file; `None` if it is not a linked file with such sections in memory. A section whose images the table does
    /// not list counts as one image.
    pub(super) fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<Self> {
        let host = HostFile::read_for(data, range, TABLE)?;
        let mut found = Self::default();
        let mut places = BTreeMap::new();
        for (section, name) in host.named(&[BUNDLE_SECTION]) {
            if !section.allocated() || name.len() > LONGEST_NAME {
                return None;
            }
            places.insert(section.address, found.sections.len());
            let id = name.get(BUNDLE_SECTION.len()..).unwrap_or_default();
            found.sections.push(LinkedSection {
                name,
                id: std::str::from_utf8(id).ok()?,
                content: host.content(section),
                padding: section.alignment.saturating_sub(1),
                images: Vec::new(),
            });
        }
        found.sections.first()?;
        found.table(&host, &places);
        found.rest();
        Some(found)
    }

    /// Adds the images of the table to their sections. `places` has the indices of sections by their addresses.
    fn table<R: ReadAt<'d>>(&mut self, host: &HostFile<'d, R>, places: &BTreeMap<u64, usize>) {
        let Some(table) = host.first(TABLE) else {
            return;
        };
        let content = host.content(table);
        let count = content.end.saturating_sub(content.start) / ENTRY_SIZE;
        let mut wrong = None;
        for index in 0..count {
            let place = index * ENTRY_SIZE;
            let offset = content.start.saturating_add(place);
            let address = host.pointer_at(table.address.wrapping_add(place), offset);
            let address = address.unwrap_or(0);
            let size = host.word(offset.saturating_add(8)).unwrap_or(0);
            let around = places.range(..=address).next_back();
            let around = around.and_then(|(start, section)| {
                let section = self.sections.get_mut(*section)?;
                let image = section.part(address - start, size)?;
                Some((section, image))
            });
            match around {
                // Linkers may leave space between the tables of two objects.
                None if (address, size) == (0, 0) => {}
                None => {
                    wrong.get_or_insert(index);
                }
                Some((section, image)) => section.images.push(image),
            }
        }
        let wrong = wrong.map(|index| LinkedImagesProblem::Entry { index });
        self.problems.extend(wrong);
    }

    /// Reports bytes that are in no image.
    fn rest(&mut self) {
        for section in &mut self.sections {
            let name = section.name.to_vec();
            let content = section.content.clone();
            if section.images.is_empty() {
                section.images.push(content);
                self.problems.push(LinkedImagesProblem::Unlisted { name });
                continue;
            }
            let mut images: Vec<_> = section.images.iter().collect();
            images.sort_by_key(|image| image.start);
            let mut end = content.start;
            let last = content.end..content.end;
            for image in images.into_iter().chain([&last]) {
                let size = image.start.saturating_sub(end);
                if size > section.padding {
                    let (name, offset) = (name.clone(), end);
                    let problem = LinkedImagesProblem::Between { name, offset, size };
                    self.problems.push(problem);
                }
                end = end.max(image.end);
            }
        }
    }
}

/// A part of a linked file whose images are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkedImagesProblem {
    /// The first wrong entry of the table.
    Entry { index: u64 },
    /// A section without images in the table.
    Unlisted { name: Vec<u8> },
    /// Bytes that are in no image.
    Between {
        name: Vec<u8>,
        offset: u64,
        size: u64,
    },
}

impl fmt::Display for LinkedImagesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { index } => write!(
                f,
                "entry {index} of section `{TABLE}` is not in a section of images"
            ),
            Self::Unlisted { name } => write!(
                f,
                "section `{TABLE}` lists no image in section `{}`, which may contain several: it is shown as one",
                terminal(&name[..])
            ),
            Self::Between { name, offset, size } => write!(
                f,
                "{size:#x} bytes at offset {offset:#x} in section `{}` are in no image that section `{TABLE}` lists",
                terminal(&name[..])
            ),
        }
    }
}

impl std::error::Error for LinkedImagesProblem {}
