//! Mach-O in builds without the feature `tools`: device code comes in no file of this kind, and what reads them takes
//! longest to compile of all that the crate `object` has.

use std::fmt;
use std::ops::Range;

/// Why a Mach-O file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachOError(());

impl fmt::Display for MachOError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mach-O files are read with the cargo feature `tools`")
    }
}

impl std::error::Error for MachOError {}

/// A section, of which there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) number: u32,
    pub(super) excluded: bool,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// A file in a universal one, of which there is none.
pub(super) type Slice = (Vec<u8>, Range<u64>);

pub(super) fn sections<R>(_: R, _: &Range<u64>) -> Result<Vec<Listed>, MachOError> {
    Err(MachOError(()))
}

pub(super) fn slices<R>(_: R, _: &Range<u64>) -> Result<Option<Vec<Slice>>, MachOError> {
    Err(MachOError(()))
}
