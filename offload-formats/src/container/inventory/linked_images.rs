//! Images in programs and shared libraries that Intel's compiler links, such as those of SYCL.
//!
//! Its linker wrapper writes the images for a target one after the other into a section, whose name is that of a bundle's
//! entry: `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`. Newer ones write all images into a section such as `OFFLOAD_DEVICE_CODE`.
//! The section `.tgtimg` lists the images of all targets: the address and the size of each.
//!
//! With `--offload-compress` each image that shrinks is a zstd frame, and the table has its uncompressed size. The end is
//! that of the frame, as in the runtime's descriptor of the image (measured: all 5204 images of `libmkl_sycl_rng.so.6`,
//! oneMKL 2026.2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::found::OVERLAP;
use crate::container::elf::ElfSection;
use crate::container::host_file::HostFile;
use crate::container::large::LARGE_SECTION;
use crate::container::object_bundle::BUNDLE_SECTION;
use crate::escape::terminal;
use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;
use crate::format::zstd_frame::{self, ZstdFrameError};

/// Section of the table, and the size of its entries: address and size of an image.
const TABLE: &str = ".tgtimg";
const ENTRY_SIZE: u64 = 16;
/// Longest name of a section in bytes, so that a small file has no large list.
const LONGEST_NAME: usize = 256;

/// Tells whether a file with a section of this name may have linked images.
fn has_linked_images(name: &[u8]) -> bool {
    name == TABLE.as_bytes() || name.starts_with(BUNDLE_SECTION.as_bytes())
}

/// An image.
#[derive(Clone, Debug)]
pub(super) struct LinkedSectionImage {
    /// Range in the file.
    pub(super) stored: Range<u64>,
    /// Uncompressed size in bytes, if the image is a zstd frame.
    pub(super) unpacked: Option<u64>,
}

/// A section with images: for one target, or for any.
#[derive(Debug)]
pub(super) struct LinkedSection<'d> {
    /// Index in the section header table.
    index: u32,
    pub(super) name: &'d [u8],
    /// Entry ID in the section's name; `None` if only the table lists its images.
    pub(super) id: Option<&'d str>,
    pub(super) content: Range<u64>,
    /// Largest size of the padding after an image in bytes.
    padding: u64,
    /// Images in the order of the table.
    pub(super) images: Vec<LinkedSectionImage>,
}

impl<'d> LinkedSection<'d> {
    /// Returns a section that may have linked images: part of the program in memory, with an ID in UTF-8.
    fn new<R: ReadAt<'d>>(
        host: &HostFile<'d, R>,
        section: &ElfSection,
        name: &'d [u8],
    ) -> Option<Self> {
        let content = host.content(section);
        if !section.allocated() || content.is_empty() || name.len() > LONGEST_NAME {
            return None;
        }
        let id = name.strip_prefix(BUNDLE_SECTION.as_bytes());
        let id = id.map(std::str::from_utf8).transpose().ok()?;
        Some(Self {
            index: section.index,
            name,
            id,
            content,
            padding: section.alignment.saturating_sub(1),
            images: Vec::new(),
        })
    }

    /// Returns the image at a distance from the start, if it is in the section. An empty one may be at its end. Without its
    /// end, a frame takes the rest of the section.
    fn image<R: ReadAt<'d>>(
        &self,
        data: R,
        distance: u64,
        size: u64,
    ) -> Option<LinkedSectionImage> {
        let start = self.content.start.checked_add(distance)?;
        let rest = start..self.content.end;
        if size > 0 && zstd_frame::starts(data, rest.clone()) {
            let (stored, unpacked) = (rest, Some(size));
            return Some(LinkedSectionImage { stored, unpacked });
        }
        let end = start.checked_add(size)?;
        let is_inside = start <= rest.end && end <= rest.end;
        is_inside.then_some(LinkedSectionImage {
            stored: start..end,
            unpacked: None,
        })
    }

    /// Finds the ends of the images that are frames. A damaged one ends where the next image starts.
    fn end_frames<R: ReadAt<'d>>(&mut self, data: R) {
        let starts: BTreeSet<u64> = self.images.iter().map(|image| image.stored.start).collect();
        let next = starts.iter().skip(1).copied().chain([self.content.end]);
        // Images are next to each other, so that no byte is read twice.
        let frames: BTreeMap<u64, u64> = starts
            .iter()
            .zip(next)
            .map(|(start, next)| {
                let end = zstd_frame::first_end(data, *start..next);
                (*start, end.unwrap_or(next))
            })
            .collect();
        for image in self
            .images
            .iter_mut()
            .filter(|image| image.unpacked.is_some())
        {
            if let Some(end) = frames.get(&image.stored.start) {
                image.stored.end = *end;
            }
        }
    }

    /// Lists the ranges that are in no image and larger than padding.
    pub(super) fn gaps(&self) -> Vec<Range<u64>> {
        let mut images: Vec<_> = self.images.iter().map(|image| &image.stored).collect();
        images.sort_by_key(|image| image.start);
        let mut end = self.content.start;
        let last = self.content.end..self.content.end;
        let mut gaps = Vec::new();
        for image in images.into_iter().chain([&last]) {
            if image.start.saturating_sub(end) > self.padding {
                gaps.push(end..image.start);
            }
            end = end.max(image.end);
        }
        gaps
    }
}

/// The images of a linked file.
#[derive(Debug, Default)]
pub(super) struct LinkedImages<'d> {
    /// Sections, sorted by index.
    pub(super) sections: Vec<LinkedSection<'d>>,
    pub(super) problems: Vec<LinkedImagesProblem>,
}

impl<'d> LinkedImages<'d> {
    /// Reads a file whose sections have these names.
    pub(super) fn among<R: ReadAt<'d>>(
        mut names: impl Iterator<Item = &'d [u8]>,
        data: R,
        range: Range<u64>,
    ) -> Self {
        match names.any(has_linked_images) {
            true => Self::read(data, range),
            false => Self::default(),
        }
    }

    /// Reads a file. The result is empty if it is not a linked file with such sections in memory. A section for a target
    /// whose images the table does not list counts as one image.
    fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Self {
        let mut found = Self::default();
        let size = range.end.saturating_sub(range.start);
        let Some(host) = HostFile::read_for(data, range, TABLE) else {
            return found;
        };
        let mut places = BTreeMap::new();
        for (section, name) in host.sections() {
            if let Some(linked) = LinkedSection::new(&host, section, name) {
                places.insert(section.address, found.sections.len());
                found.sections.push(linked);
            }
        }
        found.table(&host, data, &places);
        found.end_frames(data, size);
        // Containers have their own lists of images.
        found.sections.retain(|section| {
            let is_other = || {
                !section.images.is_empty()
                    && section.name != LARGE_SECTION.as_bytes()
                    && !Magic::at(data, section.content.clone()).is_container()
            };
            section.id.is_some() || is_other()
        });
        found.rest(host.first(TABLE).is_some());
        found
    }

    /// Returns the section with an index in the section header table.
    pub(super) fn section(&self, index: u32) -> Option<&LinkedSection<'d>> {
        let found = self
            .sections
            .binary_search_by_key(&index, |section| section.index);
        self.sections.get(found.ok()?)
    }

    /// Adds the images of the table to their sections. `places` has the indices of sections by their addresses.
    fn table<R: ReadAt<'d>>(
        &mut self,
        host: &HostFile<'d, R>,
        data: R,
        places: &BTreeMap<u64, usize>,
    ) {
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
                let image = section.image(data, address - start, size)?;
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

    /// Finds the ends of the images that are frames, in a file of `size` bytes. Sections may overlap, but not often.
    fn end_frames<R: ReadAt<'d>>(&mut self, data: R, size: u64) {
        let mut left = size.saturating_mul(OVERLAP);
        for section in &mut self.sections {
            if section.images.iter().all(|image| image.unpacked.is_none()) {
                continue;
            }
            let size = section.content.end.saturating_sub(section.content.start);
            let Some(rest) = left.checked_sub(size) else {
                return self.problems.push(LinkedImagesProblem::Overlap);
            };
            left = rest;
            section.end_frames(data);
        }
    }

    /// Reports sections for a target that have bytes in no image. A linker may have removed the table: then there is nothing
    /// to compare with.
    fn rest(&mut self, has_table: bool) {
        for section in &mut self.sections {
            let is_empty = section.images.is_empty();
            if is_empty {
                section.images.push(LinkedSectionImage {
                    stored: section.content.clone(),
                    unpacked: None,
                });
            }
            if !has_table || section.id.is_none() {
                continue;
            }
            let name = section.name.to_vec();
            let gaps = section.gaps();
            if is_empty {
                self.problems.push(LinkedImagesProblem::Unlisted { name });
            } else if let Some(first) = gaps.first() {
                let sizes = gaps.iter().map(|gap| gap.end.saturating_sub(gap.start));
                self.problems.push(LinkedImagesProblem::Between {
                    name,
                    offset: first.start,
                    size: sizes.fold(0, u64::saturating_add),
                });
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
    /// Bytes of a section that are in no image: the first one, and their number.
    Between {
        name: Vec<u8>,
        offset: u64,
        size: u64,
    },
    /// Sections with frames that share bytes of the file: the ends of other frames are not known.
    Overlap,
    /// An image that cannot be unpacked: its index in its section, and its place.
    Packed {
        index: usize,
        offset: u64,
        problem: ZstdFrameError,
    },
}

impl LinkedImagesProblem {
    /// Tells whether a higher limit on decompressed data solves it.
    pub(super) fn is_limit(&self) -> bool {
        let Self::Packed { problem, .. } = self else {
            return false;
        };
        matches!(problem, ZstdFrameError::Limit { .. })
    }
}

impl fmt::Display for LinkedImagesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { index } => write!(
                f,
                "entry {index} of section `{TABLE}` is not in a section that the program loads"
            ),
            Self::Unlisted { name } => write!(
                f,
                "section `{TABLE}` lists no image in section `{}`, which may contain several: it is shown as one",
                terminal(&name[..])
            ),
            Self::Between { name, offset, size } => write!(
                f,
                "section `{TABLE}` lists no image for {size:#x} bytes of section `{}`, the first at offset {offset:#x}",
                terminal(&name[..])
            ),
            Self::Overlap => f.write_str("sections with compressed images overlap too often"),
            Self::Packed {
                index,
                offset,
                problem,
            } => write!(f, "image {index} at offset {offset:#x}: {problem}"),
        }
    }
}

impl std::error::Error for LinkedImagesProblem {}
