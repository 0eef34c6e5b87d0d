//! Floor 2: what formats live in: object files and archives. Still bytes in, bytes out.

pub mod archive;
pub mod elf;
