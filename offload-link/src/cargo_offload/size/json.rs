//! The JSON of `cargo offload size` and `diff`; `docs/json.md` describes it.

use serde::Serialize;

use super::changes::{KernelSizes, by_target, changed_kernels};
use super::compression::EstimatedCompression;
use super::duplicates::DuplicateImages;
use super::measure::{ImageSizes, MeasuredContainer, MeasuredFile};
use crate::cargo_offload::kernels::shown_name;

#[derive(Serialize)]
pub(super) struct SizeDocument<'a> {
    schema: u32,
    file: &'a str,
    size: u64,
    device: u64,
    targets: Vec<SizedTarget<'a>>,
    containers: &'a [MeasuredContainer],
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
    #[serde(flatten)]
    images: &'a DuplicateImages,
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
            containers: &file.containers,
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
                    images: same,
                    wasted: same.wasted(),
                });
                duplicates.collect()
            }),
            compression: file.compression,
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
                let changes = changes.into_iter().map(|change| KernelChange {
                    symbol: change.symbol,
                    name: shown_name(change.symbol),
                    old: change.old,
                    new: change.new,
                });
                changes.collect()
            }),
        }
    }
}
