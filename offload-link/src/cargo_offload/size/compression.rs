//! The size that bundles would have if they were compressed.

use std::io;

use offload_formats::container::inventory::{ContainerData, ContainerFormat};
use offload_formats::format::compressed_bundle::{Compression, compress_to};
use serde::Serialize;

use crate::cargo_offload::images::FileImages;

/// Sizes of all bundles that are not compressed, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct EstimatedCompression {
    /// Number of bundles.
    pub(super) bundles: usize,
    /// Size in the file.
    pub(super) plain: u64,
    /// Size compressed with zstd at the compilers' level.
    pub(super) packed: u64,
}

impl EstimatedCompression {
    /// Compresses each bundle of at most `limit` bytes, and keeps nothing. Those that cannot be read become problems of the file.
    pub(super) fn of(found: &mut FileImages, limit: u64) -> Self {
        let (mut all, mut problems) = (Self::default(), Vec::new());
        for part in &found.parts {
            for container in &part.inventory.containers {
                let is_plain = container.format == ContainerFormat::Bundle
                    && container.compression.is_none()
                    && matches!(container.data, ContainerData::File);
                if !is_plain {
                    continue;
                }
                let range = container.range.clone();
                let size = range.end.saturating_sub(range.start);
                let mut wrong = |problem: &dyn std::fmt::Display| {
                    problems.push(format!("bundle at offset {:#x}: {problem}", range.start));
                };
                if size > limit {
                    wrong(&format_args!(
                        "the size {size:#x} exceeds the limit {limit:#x}"
                    ));
                    continue;
                }
                let bytes = part.reading.stream(range.clone());
                match compress_to(Compression::default(), size, bytes, &mut io::empty()) {
                    Ok(packed) => {
                        all.bundles += 1;
                        all.plain = all.plain.saturating_add(size);
                        all.packed = all.packed.saturating_add(packed.size);
                    }
                    Err(problem) => wrong(&problem),
                }
            }
        }
        found.problems.extend(problems);
        all
    }
}
