//! Object files and archives that contain the formats of [`format`](crate::format), as pure functions of bytes.
//!
//! | function | finds |
//! |---|---|
//! | [`inventory`](inventory::inventory) | the images in all containers of any file: bundles, fat binaries, offload binaries, code objects |
//! | [`images`], [`find`] | the images in offload binaries: in files of them, objects, archives and programs |
//! | [`bundles::find`] | bundles, in files of them, objects and programs |
//!
//! CUDA and HIP programs usually contain fat binaries and bundles, of which [`images`] finds none.
//!
//! With [`inventory`](inventory::inventory), which needs the feature `tools`:
//!
//! ```
//! # #[cfg(feature = "tools")] {
//! use offload_formats::container::bundled::Unpacking;
//! use offload_formats::container::inventory::inventory;
//!
//! // A bundle with one empty image at offset 81.
//! let id = b"hip-amdgcn-amd-amdhsa--gfx906";
//! let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
//! for field in [1, 85, 0, id.len() as u64] {
//!     file.extend(field.to_le_bytes());
//! }
//! file.extend(id);
//! let found = inventory(&file[..], &mut Unpacking::in_memory(1 << 30));
//! let images = found.containers.iter().flat_map(|container| &container.images);
//! let targets: Vec<String> = images.map(|image| image.target.to_string()).collect();
//! assert_eq!(targets, ["amdgcn-amd-amdhsa gfx906"]);
//! # }
//! ```
//!
//! With [`images`]:
//!
//! ```
//! use offload_formats::container::images;
//! use offload_formats::format::offload_binary::BinaryImage;
//! use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
//!
//! let image = BinaryImage {
//!     image_kind: ImageKind::OBJECT,
//!     offload_kind: OffloadKind::HIP,
//!     strings: &[("triple", "amdgcn-amd-amdhsa"), ("arch", "gfx942")],
//!     image: b"code object",
//!     ..BinaryImage::default()
//! };
//! let file = image.to_bytes(LlvmRelease::V22)?;
//! for found in images(&file[..])? {
//!     assert_eq!(found.entry.arch(), "gfx942");
//!     assert_eq!(found.content(&file[..]).as_deref(), Some(&b"code object"[..]));
//! }
//! # assert_eq!(images(&file[..])?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Input may be any bytes: damage is an error value, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod archive;
pub mod bundled;
#[cfg(feature = "tools")]
mod bundled_library;
#[cfg(feature = "tools")]
pub mod bundles;
pub mod code_object;
pub mod coff;
pub mod cubin;
pub mod data_object;
#[cfg(feature = "tools")]
pub mod device_archive;
pub mod device_library;
pub mod edit;
pub mod elf;
#[cfg(feature = "tools")]
pub mod embed;
pub mod fatbin;
mod fields;
mod find;
mod gnu_lto;
#[cfg(feature = "tools")]
mod host_file;
#[cfg(feature = "tools")]
pub mod inventory;
pub mod kernels;
pub mod large;
mod macho;
pub mod object_bundle;
#[cfg(feature = "tools")]
pub mod prune;
#[cfg(all(test, feature = "tools"))]
mod read_errors;
pub(crate) mod relocatable;
mod symbols;
#[cfg(all(test, feature = "tools"))]
mod test_objects;
#[cfg(feature = "tools")]
pub mod verify;
mod view;

#[cfg(feature = "tools")]
pub use find::link_inputs;
pub use find::{
    FindError, FindProblem, FoundImage, FoundItem, INFLATE_LIMIT, Standing, find, find_within,
    images, images_within,
};
pub use macho::MachOError;
#[doc(inline)]
pub use offload_formats_core::settings::decompression_limit;
#[cfg(feature = "tools")]
pub use symbols::dynamic_symbols;
pub use symbols::{SymbolsError, definitions, symbols};
