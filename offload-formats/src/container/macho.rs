//! Mach-O: the content ranges of a file's sections, and the files in a universal one.
//!
//! The layouts are those of the crate `object`; both sizes of word and both byte orders are read.
//!
//! Specification: `mach-o/loader.h` and `mach-o/fat.h` of Darwin.

use std::fmt;
use std::ops::Range;

#[cfg_attr(feature = "tools", path = "macho/read.rs")]
#[cfg_attr(not(feature = "tools"), path = "macho/unread.rs")]
mod read;

pub(super) use read::{sections, slices};

/// Reason why a Mach-O file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachOError(String);

impl fmt::Display for MachOError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MachOError {}

/// A section with content in the file; the numbers are unchecked, as its header has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MachOSection {
    /// Names of segment and section with a comma, as tools write them: `__TEXT,__text`.
    pub(super) name: Vec<u8>,
    /// Position among all sections, from 1.
    pub(super) number: u32,
    /// True if linkers leave the section out.
    pub(super) excluded: bool,
    /// True if the section has data of the program, not code.
    #[cfg(feature = "tools")]
    pub(super) is_data: bool,
    /// Offset from the start of the data; may be outside of the file.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) size: u64,
}

/// A file in a universal one, with `lipo`'s name for its processor.
pub(super) type Slice = (Vec<u8>, Range<u64>);

/// Returns a universal file with these slices: processor, offset, size; then `rest`.
#[cfg(test)]
pub(super) fn universal(slices: &[[u32; 3]], rest: &[u8]) -> Vec<u8> {
    let mut words = vec![0xcafe_babe, slices.len() as u32];
    for [processor, offset, size] in slices {
        words.extend([*processor, 3, *offset, *size, 0]);
    }
    let bytes = words.into_iter().flat_map(u32::to_be_bytes);
    bytes.chain(rest.iter().copied()).collect()
}
