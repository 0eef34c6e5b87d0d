//! COFF: object files of the ordinary and the large form, and PE images. Finds, adds and removes sections, and renames
//! sections and symbols of objects.
//!
//! The layouts are those of the crate `object`. Integers are little-endian.
//!
//! Specification: <https://learn.microsoft.com/windows/win32/debug/pe-format>.

use std::ops::Range;

use object::pe;

use crate::format::bytes::ReadAt;
use file::EditedCoff;

mod edit;
mod error;
mod file;
mod headers;
mod image;
mod listing;
mod part;
#[cfg(feature = "tools")]
mod remove;
mod rename;
mod symbols;
mod write;

pub use edit::add_sections;
pub use error::CoffError;
pub(super) use listing::{ListedSection, Listing};
pub use part::CoffSection;
#[cfg(feature = "tools")]
pub use remove::remove_sections;
pub use rename::{NamedSymbol, Object};

/// Lists all sections in the order of their headers.
///
/// # Errors
///
/// Fails if the range is neither a COFF object nor a PE image, or a section or a name is not inside the file.
pub fn sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<CoffSection<'d>>, CoffError> {
    let file = EditedCoff::read(data, range)?;
    Ok(file
        .parts
        .iter()
        .map(part::EditedCoffSection::section)
        .collect())
}

/// Processors of COFF objects, whose only magic is the processor: those that LLVM supports, from the 386 on.
const MACHINES: [pe::Machine; 6] = [
    pe::IMAGE_FILE_MACHINE_I386,
    pe::IMAGE_FILE_MACHINE_AMD64,
    pe::IMAGE_FILE_MACHINE_ARMNT,
    pe::IMAGE_FILE_MACHINE_ARM64,
    pe::IMAGE_FILE_MACHINE_ARM64EC,
    pe::IMAGE_FILE_MACHINE_ARM64X,
];

/// Returns true if a range of `data` starts with the headers of a COFF object for a known processor.
pub(super) fn is_object<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> bool {
    let recognized = headers::recognize(data, range);
    recognized.is_ok_and(|(machine, image)| !image && MACHINES.contains(&machine))
}

/// Returns true if a range of `data` starts with the headers of a PE image.
pub(super) fn is_image<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> bool {
    headers::recognize(data, range).is_ok_and(|(_, image)| image)
}

#[cfg(test)]
mod tests;
