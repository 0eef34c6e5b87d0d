//! Finds every device image of any file, of every vendor, with its container, its place and its target.
//!
//! | file | containers |
//! |---|---|
//! | ELF, COFF, PE, Mach-O | sections that start with a bundle, a CUDA fat binary, an offload binary or a GPU's ELF file; sections named `__CLANG_OFFLOAD_BUNDLE__…`; images anywhere in `.device_images` |
//! | bundles, binary, text or compressed | the bundles |
//! | CUDA fat binaries, offload binaries | the fat binaries, the offload binaries |
//! | a code object, a cubin, PTX, SPIR-V, bitcode for a GPU | the file |
//! | bitcode for a host | its embedded offload binaries |
//! | archives, universal Mach-O files, zip files such as Python wheels | those of their members |
//!
//! An image may be a container, too: an offload binary contains fat binaries, for example.
//!
//! [`exhaustive_inventory`] also finds images in the middle of data, such as those of `include_bytes!`.
//!
//! Reads only headers, whatever the size of the images. Of compressed bundles the headers are decompressed; bitcode,
//! text bundles and compressed offload binaries are read completely. Damage in one part of a file does not hide the
//! others: it is a problem of the result.
//!
//! ```
//! use offload_formats::container::bundled::Unpacking;
//! use offload_formats::container::inventory::{ContainerFormat, inventory};
//! use offload_formats::format::bundle::Bundle;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A bundle with one image of 4 bytes at offset 86.
//! let id = b"hip-amdgcn-amd-amdhsa--gfx1100";
//! let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
//! for field in [1, 86, 4, id.len() as u64] {
//!     file.extend(field.to_le_bytes());
//! }
//! file.extend(id);
//! file.extend(b"code");
//! let found = inventory(&file[..], &mut Unpacking::in_memory(1 << 30));
//! assert_eq!(found.containers[0].format, ContainerFormat::Bundle);
//! let image = &found.containers[0].images[0];
//! assert_eq!(image.target.to_string(), "amdgcn-amd-amdhsa gfx1100");
//! assert_eq!(image.range, 86..90);
//! # Ok(())
//! # }
//! ```

mod found;
mod identity;
mod linked_images;
mod search;
mod sections;
mod walk;

use std::ops::Range;

use super::bundled::Unpacking;
use crate::format::bytes::ReadAt;
use walk::Places;

pub use found::{
    ContainerCompression, ContainerData, ContainerFormat, ImageContainer, Inventory,
    InventoryImage, InventoryProblem, MAX_NESTING, OutsideMember, PackedMember, PlacedImage,
    UnpackedImage, UnsupportedFile,
};
pub use identity::{HEAD_SIZE, ImageForm, may_contain_images};

/// Finds the images of the file that `data` is. Unpacked bytes take memory, as far as `unpacking` allows.
pub fn inventory<'d, R: ReadAt<'d>>(data: R, unpacking: &mut Unpacking) -> Inventory {
    let size = data.size().unwrap_or(0);
    inventory_in(data, 0..size, unpacking)
}

/// Finds the images of the file that a range of `data` is. See [`inventory()`].
pub fn inventory_in<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Inventory {
    walk::walk(data, range, Places::Starts, unpacking)
}

/// Finds the images of the file that `data` is, as [`inventory()`] does, and others in the middle of data: those that a
/// program includes as bytes or strings, and those in a file of an unknown format. Reads all data of the program, except
/// the images.
///
/// Images are recognized by their headers. Text bundles and compressed bundles of version 1 are not found in the middle
/// of data, because they do not say where they end.
pub fn exhaustive_inventory<'d, R: ReadAt<'d>>(data: R, unpacking: &mut Unpacking) -> Inventory {
    let size = data.size().unwrap_or(0);
    walk::walk(data, 0..size, Places::Everywhere, unpacking)
}

#[cfg(test)]
mod tests;
