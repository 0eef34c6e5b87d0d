//! Floor 2: what formats live in: object files and archives. Still bytes in, bytes out.

// Any bytes may come in: what is not there is an error value, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod archive;
pub mod bundled;
#[cfg(feature = "tools")]
pub mod bundles;
pub mod code_object;
pub mod coff;
pub mod decompression_limit;
#[cfg(feature = "tools")]
pub mod device_archive;
pub mod device_library;
pub mod edit;
pub mod elf;
#[cfg(feature = "tools")]
pub mod embed;
pub mod fatbin;
mod find;
pub mod kernels;
#[cfg_attr(not(feature = "tools"), path = "macho/unread.rs")]
mod macho;
pub mod object_bundle;
mod symbols;

pub use find::{
    Error, FoundImage, INFLATE_LIMIT, Item, Problem, Standing, find, find_within, images,
    images_within, link_inputs,
};
pub use macho::MachOError;
pub use symbols::{SymbolsError, definitions, symbols};
