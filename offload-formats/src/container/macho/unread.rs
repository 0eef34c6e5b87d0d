//! Replaces `read.rs` in builds without the feature `tools`. Device code is never in Mach-O files there, and the Mach-O
//! reader takes longest to compile of all parts of the crate `object`.

use std::ops::Range;

use super::{MachOError, MachOSection, Slice};

pub(in crate::container) fn sections<R>(
    _: R,
    _: &Range<u64>,
) -> Result<Vec<MachOSection>, MachOError> {
    Err(unread())
}

pub(in crate::container) fn slices<R>(
    _: R,
    _: &Range<u64>,
) -> Result<Option<Vec<Slice>>, MachOError> {
    Err(unread())
}

fn unread() -> MachOError {
    MachOError("Mach-O files are read with the cargo feature `tools`".to_owned())
}
