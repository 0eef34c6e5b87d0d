//! The JSON of `cargo offload size` and `diff`; `docs/json.md` describes it.

use serde::Serialize;

use super::changes::{by_target, changed_kernels};
use super::compression::EstimatedCompression;
use super::measure::{ImageSizes, MeasuredContainer, MeasuredFile, MeasuredImage};
use crate::cargo_offload::kernels::shown_name;

#[derive(Serialize)]
pub(super) struct SizeDocument<'a> {
    schema: u32,
    file: &'a str,
    size: u64,
    device: u64,
    targets: Vec<SizedTarget<'a>>,
    containers: Vec<SizedContainer<'a>>,
    /// Left out unless kernels were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<SizedKernel<'a>>>,
    /// Left out unless duplicates were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<Vec<SizedDuplicates<'a>>>,
    /// Left out unless compression was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<EstimatedCompression>,
}

#[derive(Serialize)]
struct SizedDuplicates<'a> {
    target: &'a str,
    images: &'a [usize],
    size: u64,
    wasted: u64,
}

#[derive(Serialize)]
struct SizedKernel<'a> {
    symbol: &'a str,
    name: String,
    images: usize,
    code_size: u64,
}

#[derive(Serialize)]
struct SizedTarget<'a> {
    target: &'a str,
    #[serde(flatten)]
    sizes: ImageSizes,
}

#[derive(Serialize)]
struct SizedContainer<'a> {
    place: &'a str,
    index: usize,
    format: &'static str,
    stored: u64,
    unpacked: u64,
    compressed: bool,
    images: &'a [MeasuredImage],
}

#[derive(Serialize)]
pub(super) struct DiffDocument<'a> {
    schema: u32,
    old: SizedFile<'a>,
    new: SizedFile<'a>,
    targets: Vec<TargetChange<'a>>,
    /// Left out unless kernels were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<KernelChange<'a>>>,
}

#[derive(Serialize)]
struct KernelChange<'a> {
    symbol: &'a str,
    name: String,
    old: KernelSizes,
    new: KernelSizes,
}

#[derive(Serialize)]
struct KernelSizes {
    images: usize,
    code_size: u64,
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
    old: ImageSizes,
    new: ImageSizes,
}

impl<'a> SizeDocument<'a> {
    pub(super) fn of(file: &'a MeasuredFile) -> Self {
        let targets = file.targets.iter();
        let targets = targets.map(|(target, sizes)| SizedTarget {
            target,
            sizes: *sizes,
        });
        Self {
            schema: 1,
            file: &file.path,
            size: file.size,
            device: file.device(),
            targets: targets.collect(),
            containers: file.containers.iter().map(SizedContainer::of).collect(),
            kernels: file.kernels.as_ref().map(|kernels| {
                let kernels = kernels.iter().map(|kernel| SizedKernel {
                    symbol: &kernel.symbol,
                    name: shown_name(&kernel.symbol),
                    images: kernel.images,
                    code_size: kernel.code_size,
                });
                kernels.collect()
            }),
            duplicates: file.duplicates.as_ref().map(|duplicates| {
                let duplicates = duplicates.iter().map(|same| SizedDuplicates {
                    target: &same.target,
                    images: &same.images,
                    size: same.size,
                    wasted: same.wasted(),
                });
                duplicates.collect()
            }),
            compression: file.compression,
        }
    }
}

impl<'a> SizedContainer<'a> {
    fn of(container: &'a MeasuredContainer) -> Self {
        Self {
            place: &container.place,
            index: container.index,
            format: container.format.name(),
            stored: container.stored,
            unpacked: container.unpacked(),
            compressed: container.is_compressed,
            images: &container.images,
        }
    }
}

impl<'a> DiffDocument<'a> {
    pub(super) fn of(old: &'a MeasuredFile, new: &'a MeasuredFile) -> Self {
        let [one, two] = [old, new].map(|file| SizedFile {
            file: &file.path,
            size: file.size,
            device: file.device(),
        });
        let targets = by_target(old, new).into_iter();
        let targets = targets.map(|(target, old, new)| TargetChange { target, old, new });
        Self {
            schema: 1,
            old: one,
            new: two,
            targets: targets.collect(),
            kernels: changed_kernels(old, new).map(|changes| {
                let sizes = |(images, code_size)| KernelSizes { images, code_size };
                let changes = changes.into_iter().map(|change| KernelChange {
                    symbol: change.symbol,
                    name: shown_name(change.symbol),
                    old: sizes(change.old),
                    new: sizes(change.new),
                });
                changes.collect()
            }),
        }
    }
}
