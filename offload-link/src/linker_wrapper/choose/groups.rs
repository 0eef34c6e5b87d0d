//! Groups images that are linked together: one device link for each target.
//!
//! | rule          | an image of an object joins                      | an image of an archive member joins     |
//! |---------------|--------------------------------------------------|-----------------------------------------|
//! | LLVM 19 to 23 | the group of its target and earlier compatible ones | compatible groups and its own |
//! | main, ours    | the group of its target                          | groups that it serves                   |
//!
//! With the second rule, an image for `generic` joins every group of its triple, whatever their order, and an image of an
//! archive those that other archives open. LLVM's
//! groups depend on the order, and images for `gfx90a` join the group of `gfx90a:xnack+`, where they define
//! everything a second time. Specification: `docs/spec/linker-wrapper.md` §2.2.

use std::collections::HashMap;

use offload_formats::names::{ImageTarget, OffloadKind};

use crate::linker_wrapper::inputs::host_objects::KINDS;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::report::fates::target;

/// Images that one device link links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub triple: String,
    /// Processor of the first image, as written.
    pub processor: String,
    /// Indices of images in link order.
    pub members: Vec<usize>,
    /// Kinds of the images, each once, in LLVM's order.
    pub kinds: Vec<OffloadKind>,
}

/// Rule by which images join groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joining {
    Until23,
    Main,
}

/// Groups of a host link, in the order of first appearance.
#[derive(Debug)]
pub(crate) struct Groups {
    joining: Joining,
    pub list: Vec<Group>,
}

impl Group {
    fn of(image: &Image) -> Self {
        Self {
            triple: image.triple.clone(),
            processor: image.processor.clone(),
            members: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Returns triple and processor for messages.
    pub(crate) fn target(&self) -> String {
        target(&self.triple, &self.processor)
    }

    /// Returns the target for comparisons.
    pub(crate) fn image_target(&self) -> ImageTarget<'_> {
        ImageTarget {
            triple: &self.triple,
            arch: &self.processor,
        }
    }

    /// Returns the processor for the device linker; an empty one means that there is no option for it.
    pub(crate) fn processor(&self) -> &str {
        canonical(&self.processor)
    }

    fn is_for(&self, image: &Image) -> bool {
        self.triple == image.triple && self.processor() == canonical(&image.processor)
    }
}

/// Returns the processor, an empty one for `generic`: LLVM 19 writes nothing where LLVM 22 writes `generic`.
fn canonical(processor: &str) -> &str {
    match processor {
        "generic" => "",
        other => other,
    }
}

impl Groups {
    pub(crate) fn new(joining: Joining) -> Self {
        Self {
            joining,
            list: Vec::new(),
        }
    }

    /// Tells whether an image joins a group.
    pub(crate) fn takes(&self, group: &Group, image: &Image) -> bool {
        let (group_target, image_target) = (group.image_target(), image.target());
        match self.joining {
            Joining::Until23 => group.is_for(image) || group_target.joins_until_23(&image_target),
            Joining::Main => {
                group_target.is_same(&image_target)
                    || image.in_archive && image_target.serves(&group_target)
            }
        }
    }

    /// Finds the groups that take each of the images.
    pub(crate) fn takers<'a>(&self, images: &'a [Image]) -> Takers<'a> {
        let mut takers = Takers::default();
        for image in images {
            takers.0.entry(Takers::key(image)).or_insert_with(|| {
                let groups = self.list.iter().enumerate();
                let taking = groups.filter(|(_, group)| self.takes(group, image));
                taking.map(|(index, _)| index).collect()
            });
        }
        takers
    }

    /// Groups the images that a host link takes (`taken`), by our rule. An image of an archive has a group of its own only if no
    /// group of an object takes it; then the order of archives does not matter.
    pub(crate) fn of_host_link(images: &[Image], taken: &[bool]) -> Self {
        let mut groups = Self::new(Joining::Main);
        let of = |in_archive: bool| {
            let taken = images.iter().zip(taken).enumerate();
            let taken =
                taken.filter(move |(_, (image, taken))| **taken && image.in_archive == in_archive);
            taken.map(|(index, (image, _))| (index, image))
        };
        for (index, image) in of(false) {
            groups.open(image);
            groups.join(image, index);
        }
        let takers = groups.takers(images);
        for (_, image) in of(true) {
            if takers.of(image).is_empty() {
                groups.open(image);
            }
        }
        for (index, image) in of(true) {
            groups.join(image, index);
        }
        groups
    }

    /// Adds a group for the target of an image, unless one exists.
    pub(crate) fn open(&mut self, image: &Image) {
        let is_own = |group: &Group| {
            group.is_for(image)
                || self.joining == Joining::Main && group.image_target().is_same(&image.target())
        };
        if !self.list.iter().any(is_own) {
            self.list.push(Group::of(image));
        }
    }

    /// Adds an image to the groups that take it.
    pub(crate) fn join(&mut self, image: &Image, index: usize) {
        let takes = |group: &Group| self.takes(group, image);
        let takes: Vec<bool> = self.list.iter().map(takes).collect();
        for (group, takes) in self.list.iter_mut().zip(takes) {
            if takes {
                group.members.push(index);
            }
        }
    }

    /// Completes the groups when all images are known: sets their kinds, and adds images for any processor to all
    /// groups that they join.
    pub(crate) fn finish(mut self, images: &[Image]) -> Vec<Group> {
        if self.joining == Joining::Main {
            self.spread_generic(images);
        }
        for group in &mut self.list {
            group.kinds = KINDS
                .into_iter()
                .filter(|kind| {
                    let mut members = group.members.iter().filter_map(|index| images.get(*index));
                    members.any(|image| image.offload_kind == *kind && !image.library)
                })
                .collect();
        }
        self.list
    }

    fn spread_generic(&mut self, images: &[Image]) {
        let generic = |image: &Image| image.processor == "generic" && !image.in_archive;
        let mut added = Vec::new();
        for group in &self.list {
            let same_triple = |other: &&Group| other.triple == group.triple;
            let from = self
                .list
                .iter()
                .filter(same_triple)
                .flat_map(|other| &other.members);
            let missing = from
                .copied()
                .filter(|index| images.get(*index).is_some_and(generic))
                .filter(|index| !group.members.contains(index));
            added.push(missing.collect::<Vec<_>>());
        }
        for (group, added) in self.list.iter_mut().zip(added) {
            group.members.extend(added);
        }
    }
}

/// Indices of the groups that take images. Targets are compared once: an archive has thousands of images for a few.
#[derive(Debug, Default)]
pub(crate) struct Takers<'a>(HashMap<TakerKey<'a>, Vec<usize>>);

/// Triple and processor, and whether the image is in an archive.
type TakerKey<'a> = (&'a str, &'a str, bool);

impl<'a> Takers<'a> {
    fn key(image: &'a Image) -> TakerKey<'a> {
        (&image.triple, &image.processor, image.in_archive)
    }

    /// Returns the groups that take this image.
    pub(crate) fn of(&self, image: &'a Image) -> &[usize] {
        self.0.get(&Self::key(image)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(images: &[(&str, &str, bool)]) -> Vec<Image> {
        let image = |(triple, processor, object): &(&str, &str, bool)| {
            Image::for_test(triple, processor, !object)
        };
        images.iter().map(image).collect()
    }

    fn finished(groups: Groups, images: &[Image]) -> Vec<(String, Vec<usize>)> {
        let groups = groups.finish(images).into_iter();
        groups
            .map(|group| (group.processor, group.members))
            .collect()
    }

    /// Groups objects by LLVM 22's rule.
    fn by_llvm(objects: &[(&str, &str, bool)]) -> Vec<(String, Vec<usize>)> {
        let images = images(objects);
        let mut groups = Groups::new(Joining::Until23);
        for (index, image) in images.iter().enumerate() {
            groups.open(image);
            groups.join(image, index);
        }
        finished(groups, &images)
    }

    /// Groups objects (true) and members of archives by our rule.
    fn by_host_link(all: &[(&str, &str, bool)]) -> Vec<(String, Vec<usize>)> {
        let images = images(all);
        let groups = Groups::of_host_link(&images, &vec![true; images.len()]);
        finished(groups, &images)
    }

    const AMD: &str = "amdgcn-amd-amdhsa";

    fn group(processor: &str, members: &[usize]) -> (String, Vec<usize>) {
        (processor.to_owned(), members.to_vec())
    }

    #[test]
    fn groups_objects_as_llvm_22_does() {
        // The table of `docs/spec/offload-binary.md` §4.2, observed with LLVM 22.1.8.
        for (images, expected) in [
            (
                [(AMD, "gfx90a"), (AMD, "gfx90a:xnack+")],
                [group("gfx90a", &[0, 1]), group("gfx90a:xnack+", &[1])],
            ),
            (
                [(AMD, "gfx90a:xnack+"), (AMD, "gfx90a")],
                [group("gfx90a:xnack+", &[0, 1]), group("gfx90a", &[1])],
            ),
            (
                [(AMD, "gfx90a:xnack+"), (AMD, "gfx90a:xnack-")],
                [group("gfx90a:xnack+", &[0]), group("gfx90a:xnack-", &[1])],
            ),
            (
                [(AMD, "gfx90a"), (AMD, "generic")],
                [group("gfx90a", &[0, 1]), group("generic", &[1])],
            ),
            (
                [(AMD, "generic"), (AMD, "gfx90a")],
                [group("generic", &[0, 1]), group("gfx90a", &[1])],
            ),
            (
                [(AMD, "gfx90a"), (AMD, "gfx906")],
                [group("gfx90a", &[0]), group("gfx906", &[1])],
            ),
            (
                [
                    ("nvptx64-nvidia-cuda", "sm_70"),
                    ("nvptx64-nvidia-cuda", "generic"),
                ],
                [group("sm_70", &[0, 1]), group("generic", &[1])],
            ),
        ] {
            let images = images.map(|(triple, processor)| (triple, processor, true));
            assert_eq!(by_llvm(&images), expected, "{images:?}");
        }
    }

    #[test]
    fn makes_one_image_for_a_cpu_of_objects_of_19_and_of_22() {
        let cpu = "x86_64-pc-linux-gnu";
        assert_eq!(
            by_llvm(&[(cpu, "", true), (cpu, "generic", true)]),
            [group("", &[0, 1])]
        );
    }

    #[test]
    fn adds_archive_members_to_every_group_that_they_serve() {
        assert_eq!(
            by_host_link(&[
                (AMD, "gfx90a", false),
                (AMD, "gfx90a:xnack+", true),
                (AMD, "gfx90a:xnack-", true),
                (AMD, "gfx1100", false),
            ]),
            [
                group("gfx90a:xnack+", &[1, 0]),
                group("gfx90a:xnack-", &[2, 0]),
                group("gfx1100", &[3]),
            ]
        );
    }

    #[test]
    fn groups_what_only_archives_have_whatever_their_order() {
        let (generic, gpu) = ((AMD, "gfx9-4-generic", false), (AMD, "gfx942", false));
        assert_eq!(
            by_host_link(&[generic, gpu]),
            [group("gfx9-4-generic", &[0]), group("gfx942", &[0, 1])]
        );
        assert_eq!(
            by_host_link(&[gpu, generic]),
            [group("gfx942", &[0, 1]), group("gfx9-4-generic", &[1])]
        );
        // These are an error later, because no bundle holds both.
        let (any, on) = ((AMD, "gfx90a", false), (AMD, "gfx90a:xnack+", false));
        assert_eq!(
            by_host_link(&[on, any]),
            [group("gfx90a:xnack+", &[0, 1]), group("gfx90a", &[1])]
        );
        // An object's group takes it.
        let object = (AMD, "gfx942", true);
        assert_eq!(by_host_link(&[generic, object]), [group("gfx942", &[1, 0])]);
    }

    #[test]
    fn keeps_targets_apart_as_the_main_branch_does() {
        // `docs/spec/linker-wrapper.md` §10.1, numbers 16 to 18.
        let objects = [
            "gfx90a",
            "gfx90a:xnack+",
            "gfx90a:xnack-",
            "gfx90a:sramecc+",
            "gfx900",
            "gfx9-generic",
            "gfx906",
        ];
        let images = objects.map(|processor| (AMD, processor, true));
        let alone: Vec<_> = (0..)
            .zip(objects)
            .map(|(at, name)| group(name, &[at]))
            .collect();
        assert_eq!(by_host_link(&images), alone);
        // Two spellings of one instruction set.
        assert_eq!(
            by_host_link(&[(AMD, "gfx90a", true), ("amdgpu-amd-amdhsa", "gfx90a", true)]),
            [group("gfx90a", &[0, 1])]
        );
        // A member joins each group that it serves, and its own once.
        assert_eq!(
            by_host_link(&[
                (AMD, "gfx90a:xnack+", true),
                (AMD, "gfx90a:xnack-", true),
                (AMD, "gfx90a", false),
                (AMD, "gfx9-generic", false),
                (AMD, "gfx900", true),
                (AMD, "gfx900", false),
            ]),
            [
                group("gfx90a:xnack+", &[0, 2]),
                group("gfx90a:xnack-", &[1, 2]),
                group("gfx900", &[4, 3, 5]),
            ]
        );
    }

    #[test]
    fn gives_what_is_for_any_processor_to_every_group_whatever_the_order() {
        for (images, expected) in [
            (
                [(AMD, "generic", true), (AMD, "gfx90a", true)],
                [group("generic", &[0]), group("gfx90a", &[1, 0])],
            ),
            (
                [(AMD, "gfx90a", true), (AMD, "generic", true)],
                [group("gfx90a", &[0, 1]), group("generic", &[1])],
            ),
        ] {
            assert_eq!(by_host_link(&images), expected);
        }
        assert_eq!(
            by_host_link(&[(AMD, "gfx90a", true), (AMD, "generic", false)]),
            [group("gfx90a", &[0, 1])]
        );
    }
}
