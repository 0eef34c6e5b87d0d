//! Floor 2: what formats live in: object files and archives. Still bytes in, bytes out.

// Any bytes may come in: what is not there is an error value, never a panic.
#![deny(clippy::indexing_slicing)]

pub mod archive;
pub mod elf;
