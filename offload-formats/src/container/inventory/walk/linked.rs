//! Walks sections that are named like entries of bundles: bundles of objects, and linked images.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{ContainerPlace, Walker};
use crate::container::Standing;
use crate::container::bundled::DeviceTarget;
use crate::container::elf::ElfError;
use crate::container::inventory::found::{
    ContainerData, ContainerFormat, ImageContainer, InventoryImage, UnpackedImage,
};
use crate::container::inventory::identity::Identity;
use crate::container::inventory::linked_images::{
    LinkedImages, LinkedImagesProblem, LinkedSection, LinkedSectionImage,
};
use crate::container::object_bundle::{BundleSection, whole_bundle_sections};
use crate::format::bytes::ReadAt;
use crate::format::unpacked::Unpacked;
use crate::format::zstd_frame::{self, ZstdFrameError};

/// Smallest share of a damaged frame in the limit on unpacked data, in bytes: the buffer for it.
const DAMAGED: u64 = 0x2_0000;

/// Results of unpacking frames, by their start in the file and their uncompressed size in the table.
type Frames = BTreeMap<(u64, u64), Result<Unpacked, ZstdFrameError>>;

impl<'d, R: ReadAt<'d>> Walker<'_, R> {
    /// Adds the bundle in an object's sections, but no linked images.
    pub(super) fn object_bundle(&mut self, range: Range<u64>, linked: &LinkedImages<'d>) {
        let sections = whole_bundle_sections(self.data, range.clone());
        let Some(sections) = self.noted(sections) else {
            return;
        };
        let container = self.container(ContainerFormat::ObjectBundle, range);
        let linked = linked.sections.iter();
        let linked: BTreeSet<_> = linked
            .map(|section| (section.content.start, section.content.end))
            .collect();
        let entries = sections.into_iter();
        let entries = entries.filter(|BundleSection { content, .. }| {
            !linked.contains(&(content.start, content.end))
        });
        let entries = entries.map(|section| (section.id, section.content));
        self.entries(container, entries.collect(), Some(self.data));
    }

    /// Adds what is between the images of a section, which may have other data.
    pub(super) fn between_linked_images(
        &mut self,
        section: &LinkedSection<'d>,
        standing: Standing,
    ) {
        for gap in section.gaps() {
            let content = Ok::<_, ElfError>(gap.clone());
            match self.has_images(gap) {
                true => self.in_section(section.name, standing, content),
                false => self.in_data(section.name, standing, content),
            }
        }
    }

    /// Adds linked images, and what is wrong with their table.
    pub(super) fn linked_images(&mut self, linked: LinkedImages<'d>) {
        for problem in linked.problems {
            self.problem(problem.into());
        }
        let mut frames = Frames::new();
        for section in linked.sections {
            /// Smallest share of an image in the limit in bytes: the size of its entry in the table.
            const SMALLEST: u64 = 16;
            // Each image has a copy of the entry ID.
            let more = SMALLEST.saturating_add(section.id.unwrap_or_default().len() as u64);
            let sizes = section.images.iter().map(|image| {
                let size = image.stored.end.saturating_sub(image.stored.start);
                size.saturating_add(more)
            });
            let size = sizes.fold(0, u64::saturating_add);
            let Some(left) = self.left.checked_sub(size) else {
                return self.problem("images overlap too often".into());
            };
            self.left = left;
            let place = ContainerPlace {
                section: Some(section.name.to_vec()),
                ..self.place.clone()
            };
            let before = std::mem::replace(&mut self.place, place);
            let mut container = self.container(ContainerFormat::LinkedImages, section.content);
            let images = section.images.iter().enumerate();
            container.images = images
                .filter_map(|(index, image)| {
                    self.linked_image(index, section.id, image, &mut frames)
                })
                .collect();
            self.found.containers.push(container);
            self.place = before;
        }
    }

    /// Returns a linked image, unpacked. One that cannot be unpacked becomes a problem.
    fn linked_image(
        &mut self,
        index: usize,
        id: Option<&str>,
        image: &LinkedSectionImage,
        frames: &mut Frames,
    ) -> Option<InventoryImage> {
        let stored = image.stored.clone();
        let Some(size) = image.unpacked else {
            return Some(self.linked_image_in(self.data, index, id, stored));
        };
        let frame = frames.entry((stored.start, size));
        let bytes = frame.or_insert_with(|| self.unpack_frame(stored.clone(), size));
        let bytes = bytes
            .clone()
            .map_err(|problem| LinkedImagesProblem::Packed {
                index,
                offset: stored.start,
                problem,
            });
        let bytes = self.noted(bytes)?;
        let mut found = self.linked_image_in(&bytes.open(), index, id, 0..size);
        self.place_in_frame(&mut found.inner, &bytes);
        found.stored_size = stored.end.saturating_sub(stored.start);
        found.unpacked = Some(UnpackedImage {
            stored,
            data: ContainerData::Unpacked(bytes),
        });
        Some(found)
    }

    /// Unpacks a frame.
    fn unpack_frame(&mut self, stored: Range<u64>, size: u64) -> Result<Unpacked, ZstdFrameError> {
        let left = self.unpacking.left;
        let scratch = &self.unpacking.scratch;
        let bytes = zstd_frame::unpack(self.data, stored, size, left, scratch);
        let used = match &bytes {
            Ok(_) => size,
            // Nothing was unpacked: the size in the table may be damaged.
            Err(ZstdFrameError::Limit { .. }) => 0,
            // Damaged frames count, too: they may be many.
            Err(_) => size.max(DAMAGED),
        };
        self.unpacking.left = left.saturating_sub(used);
        bytes
    }

    /// Gives containers in a frame the data that their ranges refer to. Compressed bundles are unpacked, because the file does
    /// not contain them. One that cannot be unpacked becomes a problem.
    fn place_in_frame(&mut self, containers: &mut Vec<ImageContainer>, frame: &Unpacked) {
        containers.retain_mut(|container| {
            let bundle = match &container.data {
                ContainerData::File => {
                    for image in &mut container.images {
                        self.place_in_frame(&mut image.inner, frame);
                    }
                    container.data = ContainerData::Unpacked(frame.clone());
                    return true;
                }
                ContainerData::Unpacked(_) => return true,
                ContainerData::Packed(bundle) => bundle,
            };
            let (left, claimed) = (self.unpacking.left, bundle.uncompressed_size);
            if claimed <= left {
                self.unpacking.left = left - claimed;
            }
            let bytes = bundle.unpack(&frame.open(), left, &self.unpacking.scratch);
            let Some(bytes) = self.noted(bytes) else {
                return false;
            };
            for image in &mut container.images {
                image.identify(&bytes.open());
            }
            container.data = ContainerData::Unpacked(bytes);
            true
        });
    }

    /// Returns a linked image in `data`, which is the file or its unpacked bytes.
    fn linked_image_in<'b, B: ReadAt<'b>>(
        &mut self,
        data: B,
        index: usize,
        id: Option<&str>,
        range: Range<u64>,
    ) -> InventoryImage {
        if let Some(id) = id {
            return self.entry(index, id.to_owned(), range, Some(data));
        }
        let identity = Identity::of(data, range.clone());
        let mut image = super::image(index, DeviceTarget::default(), identity, range.clone());
        image.inner = self.inner(data, range);
        image
    }
}
