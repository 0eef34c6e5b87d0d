//! Sizes of a file's images, by target and by container.

use std::collections::BTreeMap;

use offload_formats::container::inventory::{
    ContainerFormat, ImageContainer, InventoryImage, PlacedImage,
};
use offload_formats::escape::terminal;
use serde::{Serialize, Serializer};

use crate::cargo_offload::image_text;
use crate::cargo_offload::images::{FileImages, FilePart};
use crate::cargo_offload::inputs::OpenInput;
use crate::cargo_offload::kernels::FileKernels;

use super::compression::EstimatedCompression;
use super::duplicates::DuplicateImages;

/// Sizes of a file. All are in bytes.
pub(super) struct MeasuredFile {
    /// Path for people.
    pub(super) name: String,
    /// Path as given.
    pub(super) path: String,
    /// Size of the file. Members of thin archives are other files, and count, too; members of zip files are in the file.
    pub(super) size: u64,
    pub(super) targets: BTreeMap<String, ImageSizes>,
    /// Containers of images in file order.
    pub(super) containers: Vec<MeasuredContainer>,
    /// Kernels, the largest first; `None` if they were not read.
    pub(super) kernels: Option<Vec<MeasuredKernel>>,
    /// Code of each kernel by target, in the order of symbols: its share of the size in the file. Empty if kernels were
    /// not read.
    pub(super) target_kernels: BTreeMap<String, Vec<(String, u64)>>,
    /// Images that are the same; `None` unless they were looked for.
    pub(super) duplicates: Option<Vec<DuplicateImages>>,
    /// Sizes of bundles with and without compression; `None` unless they were compressed.
    pub(super) compression: Option<EstimatedCompression>,
}

/// Code of the kernels of one name in all images.
pub(super) struct MeasuredKernel {
    pub(super) symbol: String,
    /// Number of images that contain it.
    pub(super) images: usize,
    /// Size of its machine code in all of them, unpacked. PTX has none.
    pub(super) code_size: u64,
}

impl MeasuredKernel {
    /// Adds up the code of each kernel.
    fn list(kernels: &FileKernels) -> Vec<Self> {
        let mut sizes: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for kernel in kernels.all() {
            let (images, size) = sizes.entry(&kernel.name).or_default();
            *images += 1;
            *size = size.saturating_add(kernel.code_size.unwrap_or(0));
        }
        let kernels = sizes.into_iter().map(|(symbol, (images, code_size))| Self {
            symbol: symbol.to_owned(),
            images,
            code_size,
        });
        let mut kernels: Vec<Self> = kernels.collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.code_size));
        kernels
    }
}

/// Sizes of several images. JSON has these fields, and those of [`MeasuredImage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ImageSizes {
    pub(super) images: usize,
    /// Size in the file. The size of a compressed container is shared among its images by their unpacked sizes.
    pub(super) stored: u64,
    pub(super) unpacked: u64,
}

/// Sizes of a container of images. JSON has these fields.
#[derive(Serialize)]
pub(super) struct MeasuredContainer {
    /// Place for people: members, section, offset.
    pub(super) place: String,
    /// Members and section alone.
    #[serde(skip)]
    around: String,
    /// Index among the containers of the section or file.
    pub(super) index: usize,
    #[serde(serialize_with = "format_name")]
    pub(super) format: ContainerFormat,
    /// Size in the file.
    pub(super) stored: u64,
    /// Size of its images.
    pub(super) unpacked: u64,
    #[serde(rename = "compressed")]
    pub(super) is_compressed: bool,
    pub(super) images: Vec<MeasuredImage>,
}

/// Sizes of an image.
#[derive(Serialize)]
pub(super) struct MeasuredImage {
    /// Number in the file.
    pub(super) number: usize,
    pub(super) target: String,
    pub(super) form: &'static str,
    /// Size in the file, as for [`ImageSizes`].
    pub(super) stored: u64,
    pub(super) unpacked: u64,
}

impl MeasuredFile {
    /// Measures the images of a file, and its kernels if they were read.
    pub(super) fn of(input: &OpenInput, found: &FileImages, kernels: Option<&FileKernels>) -> Self {
        let files = found.parts.iter();
        let files = files.filter(|part| part.packed_size.is_none());
        let sizes = files.map(|part| part.size);
        let mut file = Self {
            name: terminal(input.name.as_path()).to_string(),
            path: input.name.to_string_lossy().into_owned(),
            size: sizes.fold(0, u64::saturating_add),
            targets: BTreeMap::new(),
            containers: Vec::new(),
            kernels: kernels.map(MeasuredKernel::list),
            target_kernels: BTreeMap::new(),
            duplicates: None,
            compression: None,
        };
        let mut number = 0;
        for part in &found.parts {
            for (container, inside) in part.containers() {
                let measured = MeasuredContainer::of(part, container, &inside, &mut number);
                for image in &measured.images {
                    let sizes = file.targets.entry(image.target.clone()).or_default();
                    sizes.images += 1;
                    sizes.stored = sizes.stored.saturating_add(image.stored);
                    sizes.unpacked = sizes.unpacked.saturating_add(image.unpacked);
                }
                file.containers.push(measured);
            }
        }
        file.number_containers();
        if let Some(kernels) = kernels {
            file.add_target_kernels(kernels);
        }
        file
    }

    /// Numbers the containers of each section or file.
    fn number_containers(&mut self) {
        let mut next: BTreeMap<String, usize> = BTreeMap::new();
        for container in &mut self.containers {
            let index = next.entry(container.around.clone()).or_default();
            container.index = *index;
            *index += 1;
        }
    }

    fn add_target_kernels(&mut self, kernels: &FileKernels) {
        let mut targets: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for image in self
            .containers
            .iter()
            .flat_map(|container| &container.images)
        {
            let Some(list) = kernels.of(image.number) else {
                continue;
            };
            let sizes = targets.entry(&image.target).or_default();
            for kernel in list {
                let code = kernel.code_size.unwrap_or(0).min(image.unpacked);
                let size = sizes.entry(&kernel.name).or_default();
                *size = size.saturating_add(part_of(image.stored, code, image.unpacked));
            }
        }
        let targets = targets.into_iter().map(|(target, sizes)| {
            let sizes = sizes.into_iter();
            let sizes = sizes.map(|(symbol, size)| (symbol.to_owned(), size));
            (target.to_owned(), sizes.collect())
        });
        self.target_kernels = targets.collect();
    }

    /// Returns the size of all images, unpacked.
    pub(super) fn unpacked(&self) -> u64 {
        let sizes = self.targets.values().map(|sizes| sizes.unpacked);
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns the size of all containers in the file.
    pub(super) fn device(&self) -> u64 {
        let sizes = self.containers.iter().map(|container| container.stored);
        sizes.fold(0, u64::saturating_add)
    }
}

impl MeasuredContainer {
    fn of(
        part: &FilePart,
        container: &ImageContainer,
        inside: &[PlacedImage<'_>],
        number: &mut usize,
    ) -> Self {
        let around = around(part, container);
        let is_compressed = container.compression.is_some() || part.packed_size.is_some();
        // Images in one that is compressed have their sizes there.
        let has_containers =
            |image: &InventoryImage| image.unpacked.is_some() && !image.inner.is_empty();
        let is_shared = is_compressed || container.images.iter().any(has_containers);
        let sizes = inside.iter().map(|placed| placed.image.stored_size);
        let whole = sizes.fold(0, u64::saturating_add);
        let stored = match container.format {
            // Its range is the whole object's.
            ContainerFormat::ObjectBundle => whole,
            _ => container.range.end.saturating_sub(container.range.start),
        };
        // The size of a compressed member is shared among its parts by their unpacked sizes.
        let stored = match part.packed_size {
            Some(packed) => part_of(packed, stored.min(part.size), part.size),
            None => stored,
        };
        let sizes = inside.iter().map(|placed| placed.image.size);
        let unpacked = sizes.fold(0, u64::saturating_add);
        let images = inside.iter().map(|placed| {
            let stored_size = placed.image.stored_size;
            *number += 1;
            MeasuredImage {
                number: *number - 1,
                target: image_text::target(placed),
                form: image_text::form(placed),
                stored: match is_shared {
                    true => part_of(stored, stored_size, whole),
                    false => stored_size,
                },
                unpacked: placed.image.size,
            }
        });
        Self {
            place: place(&around, container),
            around,
            index: 0,
            format: container.format,
            stored,
            unpacked,
            is_compressed,
            images: images.collect(),
        }
    }
}

fn format_name<S: Serializer>(format: &ContainerFormat, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

/// Returns `whole * size / all`, rounded down.
fn part_of(whole: u64, size: u64, all: u64) -> u64 {
    let part = u128::from(whole) * u128::from(size);
    let part = part.checked_div(all.into()).unwrap_or(0);
    u64::try_from(part).expect("an image is no larger than all images together")
}

/// Returns the members and the section around a container.
fn around(part: &FilePart, container: &ImageContainer) -> String {
    let members = part.members.iter().chain(&container.members);
    let members = members.map(|member| terminal(&**member).to_string());
    let section = container.section.iter();
    let section = section.map(|name| terminal(&**name).to_string());
    let places: Vec<String> = members.chain(section).collect();
    places.join(" ")
}

fn place(around: &str, container: &ImageContainer) -> String {
    let offset = container.range.start;
    match around {
        "" => format!("{offset:#x}"),
        around => format!("{around} {offset:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_the_size_of_a_compressed_container() {
        assert_eq!(part_of(10, 1, 3), 3);
        assert_eq!(part_of(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(part_of(10, 0, 0), 0);
    }
}
