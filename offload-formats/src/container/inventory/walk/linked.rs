//! Walks sections that are named like entries of bundles: bundles of objects, and linked images.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Walker;
use crate::container::Standing;
use crate::container::bundled::DeviceTarget;
use crate::container::elf::ElfError;
use crate::container::inventory::found::ContainerFormat;
use crate::container::inventory::identity::Identity;
use crate::container::inventory::linked_images::{LinkedImages, LinkedSection};
use crate::container::object_bundle::{BundleSection, whole_bundle_sections};
use crate::format::bytes::ReadAt;

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
        for section in linked.sections {
            /// Smallest share of an image in the limit in bytes: the size of its entry in the table.
            const SMALLEST: u64 = 16;
            // Each image has a copy of the entry ID.
            let more = SMALLEST.saturating_add(section.id.unwrap_or_default().len() as u64);
            let sizes = section.images.iter().map(|image| {
                let size = image.end.saturating_sub(image.start);
                size.saturating_add(more)
            });
            let size = sizes.fold(0, u64::saturating_add);
            let Some(left) = self.left.checked_sub(size) else {
                return self.problem("images overlap too often".into());
            };
            self.left = left;
            let mut container = self.container(ContainerFormat::LinkedImages, section.content);
            container.section = Some(section.name.to_vec());
            let images = section.images.into_iter();
            if let Some(id) = section.id {
                let images = images.map(|image| (id.to_owned(), image));
                self.entries(container, images.collect(), Some(self.data));
                continue;
            }
            for (index, range) in images.enumerate() {
                let identity = Identity::of(self.data, range.clone());
                let mut image =
                    super::image(index, DeviceTarget::default(), identity, range.clone());
                image.inner = self.inner(self.data, range);
                container.images.push(image);
            }
            self.found.containers.push(container);
        }
    }
}
