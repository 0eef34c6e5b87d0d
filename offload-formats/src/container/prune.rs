//! Rewrites linked files without the device images of some targets.
//!
//! | file | what is pruned |
//! |---|---|
//! | 64-bit little-endian ELF program or shared library | the sections `.hip_fatbin`, `.nv_fatbin`, `__nv_relfatbin`, and OpenMP's offload binaries |
//! | such an object | the same, and sections of offload binaries |
//! | an archive of these | its members, and those of a native library that rustc put into an rlib |
//! | a file of bundles, plain or compressed, of CUDA fat binaries, of offload binaries | the file |
//!
//! The program registers each bundle or fat binary (a **unit**) by its address. So units stay in their section, in their
//! order, each as small as it can be; pointers to them are changed; whole pages that become free are cut out of the
//! file, and the segment around them is split. No other address changes, and kept images keep their bytes.
//!
//! | part | steps |
//! |---|---|
//! | `choice.rs`, `job.rs` | which images are kept, and what all parts have in common |
//! | `recompress.rs` | bundles with another compression, whose images all stay |
//! | `pruned.rs` | the new file and its units |
//! | `units.rs`, `fatbins.rs`, `binaries.rs` | units, and their replacements |
//! | `elf_headers.rs` | file header, segments, sections |
//! | `pointers.rs` | relocations, wrappers and symbols that point to units |
//! | `large_data.rs` | images in `.lrodata`, which stay as they are if code may use them by their addresses |
//! | `address_uses.rs` | code and data that use units by their addresses |
//! | `tables.rs` | OpenMP's tables of images, which point into offload binaries |
//! | `layout.rs` | where units go, which pages are cut, room for another program header |
//! | `rewrite.rs` | the new file as pieces |
//! | `object.rs` | an object, whose sections may move |
//! | `archive.rs`, `member.rs` | an archive, and a file that may be its member |
//!
//! Outside of `.lrodata`, a file whose pointers cannot all be found is an error: pointers into the middle of a unit, a unit without a pointer,
//! unknown bytes between units.

mod address_uses;
mod archive;
mod binaries;
mod choice;
mod elf_headers;
mod error;
mod fatbins;
mod job;
mod large_data;
mod layout;
mod member;
mod object;
mod pointers;
mod pruned;
mod recompress;
mod rewrite;
mod tables;
mod units;

use crate::container::decompression_limit::DecompressionLimit;
use crate::format::bytes::{ReadAt, unless_unread};
use crate::format::magic::Magic;
use crate::format::unpacked::Scratch;

use job::PruneJob;

pub use choice::{FatbinRecompression, PruneChoice, PtxChoice, Recompression};
pub use error::{PruneError, PruneProblem};
pub use pruned::{ImageSizes, PruneCounts, PrunedFile};

/// Prunes the file `data`. The content of a compressed bundle or offload binary, or a compressed image of a fat binary, which
/// is in memory, may not be larger than `limit`.
///
/// Contents are unpacked to others of the scratch's kind, one after the other. `scratch` keeps what was compressed anew or
/// decompressed: the pieces of the new file refer to it as input 1.
///
/// If no image is removed, the new file is the old one.
///
/// # Errors
///
/// Fails if the format is not supported, the file has no device images that can be pruned, or it is damaged or refers
/// to its images in an unknown way; if `data` cannot be read, or a scratch cannot be written.
pub fn prune<'d, R: ReadAt<'d>>(
    data: R,
    choice: &PruneChoice,
    limit: DecompressionLimit,
    scratch: &Scratch,
) -> Result<PrunedFile, PruneError> {
    let job = PruneJob {
        choice,
        limit,
        scratch,
    };
    let size = data.size().unwrap_or(0);
    let pruned = match Magic::at(data, 0..size) {
        Magic::Archive | Magic::ThinArchive => archive::archive(data, 0..size, job),
        _ => member::file(data, job, &|library| archive::archive(data, library, job)),
    };
    unless_unread(data, pruned, |problem| {
        PruneError::whole(PruneProblem::Read(problem))
    })
}

#[cfg(test)]
mod tests;
