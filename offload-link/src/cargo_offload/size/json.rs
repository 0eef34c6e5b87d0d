//! The JSON of `cargo offload size` and `diff`; `docs/json.md` describes it.

use serde::Serialize;

use super::changes::by_target;
use super::measure::{ImageSizes, MeasuredContainer, MeasuredFile};

#[derive(Serialize)]
pub(super) struct SizeDocument<'a> {
    schema: u32,
    file: &'a str,
    size: u64,
    device: u64,
    targets: Vec<SizedTarget<'a>>,
    containers: Vec<SizedContainer<'a>>,
}

#[derive(Serialize)]
struct SizedTarget<'a> {
    target: &'a str,
    #[serde(flatten)]
    sizes: Sizes,
}

#[derive(Serialize)]
struct Sizes {
    images: usize,
    stored: u64,
    unpacked: u64,
}

#[derive(Serialize)]
struct SizedContainer<'a> {
    place: &'a str,
    format: &'static str,
    stored: u64,
    unpacked: u64,
    compressed: bool,
    images: Vec<SizedImage<'a>>,
}

#[derive(Serialize)]
struct SizedImage<'a> {
    number: usize,
    target: &'a str,
    form: &'static str,
    stored: u64,
    unpacked: u64,
}

#[derive(Serialize)]
pub(super) struct DiffDocument<'a> {
    schema: u32,
    old: SizedFile<'a>,
    new: SizedFile<'a>,
    targets: Vec<TargetChange<'a>>,
}

#[derive(Serialize)]
struct SizedFile<'a> {
    file: &'a str,
    size: u64,
    device: u64,
}

#[derive(Serialize)]
struct TargetChange<'a> {
    target: &'a str,
    old: Sizes,
    new: Sizes,
}

impl From<ImageSizes> for Sizes {
    fn from(sizes: ImageSizes) -> Self {
        let ImageSizes {
            images,
            stored,
            unpacked,
        } = sizes;
        Self {
            images,
            stored,
            unpacked,
        }
    }
}

impl<'a> SizeDocument<'a> {
    pub(super) fn of(file: &'a MeasuredFile) -> Self {
        let targets = file.targets.iter();
        let targets = targets.map(|(target, sizes)| SizedTarget {
            target,
            sizes: (*sizes).into(),
        });
        Self {
            schema: 1,
            file: &file.name,
            size: file.size,
            device: file.device(),
            targets: targets.collect(),
            containers: file.containers.iter().map(SizedContainer::of).collect(),
        }
    }
}

impl<'a> SizedContainer<'a> {
    fn of(container: &'a MeasuredContainer) -> Self {
        let images = container.images.iter();
        let images = images.map(|image| SizedImage {
            number: image.number,
            target: &image.target,
            form: image.form,
            stored: image.stored,
            unpacked: image.unpacked,
        });
        Self {
            place: &container.place,
            format: container.format.name(),
            stored: container.stored,
            unpacked: container.unpacked(),
            compressed: container.is_compressed,
            images: images.collect(),
        }
    }
}

impl<'a> DiffDocument<'a> {
    pub(super) fn of(old: &'a MeasuredFile, new: &'a MeasuredFile) -> Self {
        let [one, two] = [old, new].map(|file| SizedFile {
            file: &file.name,
            size: file.size,
            device: file.device(),
        });
        let targets = by_target(old, new).into_iter();
        let targets = targets.map(|(target, old, new)| TargetChange {
            target,
            old: old.into(),
            new: new.into(),
        });
        Self {
            schema: 1,
            old: one,
            new: two,
            targets: targets.collect(),
        }
    }
}
