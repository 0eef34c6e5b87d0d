//! CUDA's fat binary: images and PTX for several processors, as its runtime and driver load them.
//!
//! | offset | size | field |
//! |-------:|-----:|-------|
//! | `0x00` |   16 | header: magic, version, its size, size of what follows |
//! |        |   64 | for each image, a header |
//! |        |      | name of the source with `-ident`, NUL, padded to 8 |
//! |        |      | options of `ptxas`, for PTX; a cubin's `.nv.compat`, for `sm_100` and later |
//! |        |      | then the cubin, or PTX and a NUL at least, padded to 8; or the compressed image, padded to 8 |
//!
//! The flags of an image's header say how it is compressed; the header has the compressed and the uncompressed size:
//!
//! | flag | method | writer |
//! |-----:|--------|--------|
//! | `0x2000` | a block of LZ4 | CUDA 11.0 to 12.2, at least in relocatable code (`__nv_relfatbin`), 13.5 with `--compress-mode=speed` |
//! | `0x8000` | a frame of Zstandard | 13.5 with `--compress-mode=default`, `balance` and `size` |
//!
//! LTO IR (kind 8, `-dlto` of nvcc 13.5) has the flag `0x10000`, too: what is stored is no frame of Zstandard, and only
//! NVIDIA's tools can read it.
//!
//! With `--concat`, `fatbinary` 13.5 compresses images of one kind together, if that is smaller. Such a group is an
//! image of kind `0x100`. Between its header and the compressed bytes is a table:
//!
//! | size | field |
//! |-----:|-------|
//! |    8 | number of images, size of the table |
//! |   64 | for each image, a header: its size field is the image's offset in the uncompressed bytes |
//! |      | then name and options as above |
//!
//! NVIDIA documents only the wrapper that points here (`fatbinary_section.h`). The layout was
//! measured: `fatbinary` of CUDA 13.5 writes these bytes for every processor from `sm_75` to
//! `sm_121a`. Linked images, relocatable ones and images with debug information were compared. By
//! default `fatbinary` compresses PTX and images with debug information. Compressed images were compared with those
//! that `cuobjdump` 13.5 extracts, also from libraries that CUDA 11.0, 11.1, 11.8 and 12.2 made.

mod entry;
mod error;
mod layout;
mod pack;
mod unpack;
mod walk;

use std::ops::Range;

use super::bytes::{Cursor, ReadAt};

pub use entry::{FatbinCompression, FatbinEntry, FatbinGroup, FatbinKind};
pub use error::FatbinReadError;
#[doc(hidden)]
pub use layout::{CUBIN, FatbinHeader, ImageHeader, MAGIC, PTX, THIS_FAMILY, THIS_PROCESSOR};
pub use pack::{CompressedImage, FatbinCompressor, FatbinPackError};
pub use unpack::{FatbinUnpackError, FatbinUnpacker, UnpackedBytes};
pub use walk::{FatbinWalk, FoundFatbin, walk};

/// Reads the images of the consecutive fat binaries in a range of `data`, between which are no other bytes.
/// [`walk`] skips padding.
///
/// # Errors
///
/// Fails if the range does not consist of fat binaries, or a header or image exceeds the range.
pub fn parse<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<FatbinEntry>, FatbinReadError> {
    let mut cursor = Cursor::new(data, range);
    let mut entries = Vec::new();
    while entries.is_empty() || cursor.position() < cursor.end() {
        let found = walk::fatbin(&mut cursor, entries.len())?;
        if found.entries.is_empty() {
            let offset = found.range.start;
            return Err(FatbinReadError::Empty { offset });
        }
        entries.extend(found.entries);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
