//! Formats as pure functions of bytes; no file, variable or process.
//!
//! Writes and reads a bundle:
//!
//! ```
//! # use offload_formats_core as offload_formats;
//! use std::num::NonZeroU64;
//! use offload_formats::format::bundle::{self, Bundle, BundleImage};
//! use offload_formats::names::EntryId;
//!
//! let images = [
//!     BundleImage { id: "host-x86_64-unknown-linux-gnu-", image: b"" },
//!     BundleImage { id: "hip-amdgcn-amd-amdhsa--gfx90a", image: b"code object" },
//! ];
//! let bytes = bundle::to_bytes(&images, NonZeroU64::MIN)?;
//!
//! let bundle = Bundle::parse(&bytes[..], 0, bytes.len() as u64)?;
//! let entry = &bundle.entries[1];
//! assert_eq!(EntryId::parse(&entry.id)?.target_id(), "gfx90a");
//! assert_eq!(&bytes[entry.image.start as usize..entry.image.end as usize], b"code object");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Input may be any bytes: missing bytes are an error, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod bitcode;
pub mod bundle;
pub mod bundle_text;
pub mod bundles;
pub mod bytes;
#[doc(hidden)]
pub mod codec;
pub mod compressed_bundle;
#[cfg(feature = "tools")]
pub mod device_text;
pub mod fatbin;
pub mod global_symbol;
pub mod hip_bundle;
mod lz4;
pub mod magic;
pub mod msgpack;
pub mod offload_binary;
pub mod offload_entry;
#[cfg(feature = "tools")]
pub mod offload_yaml;
pub mod pieces;
pub mod ptx;
#[doc(hidden)]
pub mod string_table;
pub mod unpacked;
#[cfg(feature = "tools")]
pub mod zip;
#[doc(hidden)]
pub mod zstd_frame;
