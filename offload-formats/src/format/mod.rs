//! Floor 1: bytes. Formats as pure functions of bytes; no file, variable or process here.

// Any bytes may come in: what is not there is an error value, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod bitcode;
pub mod bundle;
pub mod bundle_text;
pub mod bundles;
pub mod bytes;
mod codec;
pub mod compressed_bundle;
#[cfg(feature = "tools")]
pub mod device_text;
pub mod fatbin;
pub mod global_symbol;
pub mod hip_bundle;
pub mod magic;
pub mod msgpack;
pub mod offload_binary;
pub mod offload_entry;
#[cfg(feature = "tools")]
pub mod offload_yaml;
pub mod pieces;
pub mod ptx;
pub(crate) mod string_table;
