//! Rewrites linked files without the device images of some targets.
//!
//! | file | what is pruned |
//! |---|---|
//! | 64-bit little-endian ELF program or shared library | the sections `.hip_fatbin`, `.nv_fatbin`, `__nv_relfatbin` |
//! | a file of bundles, plain or compressed, or of CUDA fat binaries | the file |
//!
//! The program registers each bundle or fat binary (a **unit**) by its address. So units stay in their section, in their
//! order, each as small as it can be; pointers to them are changed; whole pages that become free are cut out of the
//! file, and the segment around them is split. No other address changes, and kept images keep their bytes.
//!
//! | part | steps |
//! |---|---|
//! | `choice.rs` | which images are kept |
//! | `recompress.rs` | bundles with another compression, whose images all stay |
//! | `units.rs` | units, and their replacements |
//! | `elf_headers.rs` | file header, segments, sections |
//! | `pointers.rs` | relocations, wrappers and symbols that point to units |
//! | `layout.rs` | where units go, which pages are cut, room for another program header |
//! | `rewrite.rs` | the new file as pieces |
//!
//! A file whose pointers cannot all be found is an error: pointers into the middle of a unit, a unit without a pointer,
//! unknown bytes between units.

mod choice;
mod elf_headers;
mod error;
mod layout;
mod pointers;
mod recompress;
mod rewrite;
mod units;

use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;
use crate::format::pieces::Piece;

pub use choice::{PruneChoice, PtxChoice, Recompression};
pub use error::{PruneError, PruneProblem};
pub use rewrite::PrunedFile;
pub use units::PruneCounts;

/// Prunes the file `data`. Each compressed bundle may take `limit` bytes of memory.
///
/// If no image is removed, the new file is the old one.
///
/// # Errors
///
/// Fails if the format is not supported, the file has no device images that can be pruned, or it is damaged or refers
/// to its images in an unknown way.
pub fn prune<'d, R: ReadAt<'d>>(
    data: R,
    choice: &PruneChoice,
    limit: u64,
) -> Result<PrunedFile, PruneError> {
    let size = data.size().unwrap_or(0);
    match Magic::at(data, 0..size) {
        Magic::Elf => rewrite::elf(data, choice, limit),
        Magic::Bundle | Magic::CompressedBundle | Magic::Fatbin => containers(data, choice, limit)
            .map_err(|problem| PruneError {
                section: None,
                problem,
            }),
        _ => Err(PruneError {
            section: None,
            problem: PruneProblem::Format,
        }),
    }
}

/// Prunes a file that consists of units.
fn containers<'d, R: ReadAt<'d>>(
    data: R,
    choice: &PruneChoice,
    limit: u64,
) -> Result<PrunedFile, PruneProblem> {
    let mut counts = PruneCounts::default();
    let size = data.size().unwrap_or(0);
    let units = units::units(data, 0..size, choice, limit, &mut counts)?;
    let (mut pieces, mut end, mut copied) = (Vec::new(), 0_u64, Vec::new());
    for unit in units {
        let alignment = match unit.old.start % unit.alignment {
            0 => unit.alignment,
            _ => 1,
        };
        let start = end.next_multiple_of(alignment);
        pieces.push(Piece::Zeros(start - end));
        pieces.extend(unit.pieces);
        copied.extend(unit.copied.into_iter().map(|(old, place)| {
            let new = start + place;
            let size = old.end - old.start;
            (old, new..new + size)
        }));
        end = start + unit.size;
    }
    Ok(PrunedFile {
        pieces,
        size: end,
        counts,
        copied,
    })
}

#[cfg(test)]
mod tests;
