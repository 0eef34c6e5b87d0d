//! Adds sections at the end of COFF files.
//!
//! The bytes are those of LLVM's `llvm-objcopy`, as in [`crate::container::elf`]. Contents are copied from the old
//! file.

use std::ops::Range;

use object::LittleEndian as LE;

use super::error::CoffError;
use super::file::EditedCoff;
use super::part::{EditedCoffSection, align};
use crate::container::edit::NewSection;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// Returns a COFF file with `sections` after its own, in this order. Linkers leave them out
/// (`IMAGE_SCN_LNK_REMOVE`). Names may repeat.
///
/// Input 0 of the pieces is `data`; [`NewSection`] describes the others.
///
/// # Errors
///
/// Fails if the file is neither a COFF object nor a PE image, is damaged, or becomes too large.
pub fn add_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    sections: &[NewSection<'_>],
) -> Result<Vec<Piece>, CoffError> {
    let mut file = EditedCoff::read(data, range)?;
    let (of_files, of_sections) = match &file.image {
        Some(image) => (image.file_alignment, image.section_alignment),
        None => (1, 1),
    };
    for (index, section) in sections.iter().enumerate() {
        // In objects, too, each new section has an address after the last, as in an image.
        let address = file.parts.last().map_or(0, |last| {
            let address = u64::from(last.header.virtual_address.get(LE));
            address + u64::from(last.header.virtual_size.get(LE))
        });
        let address = align(address, of_sections)?;
        file.parts
            .push(EditedCoffSection::new(index, section, address, of_files)?);
    }
    file.write()
}
