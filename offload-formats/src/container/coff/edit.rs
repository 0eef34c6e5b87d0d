//! COFF files with other sections: new ones at the end, or some fewer.
//!
//! As [`crate::container::elf`] does it for ELF: with the bytes of LLVM's `llvm-objcopy`, contents
//! copied from where they are.

use std::ops::Range;

use object::LittleEndian as LE;

use super::error::CoffError;
use super::file::EditedCoff;
use super::part::{EditedCoffSection, align};
use crate::container::edit::NewSection;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// A COFF file with more sections, after the others and in this order, which linkers leave out
/// (`IMAGE_SCN_LNK_REMOVE`). There may be sections of the same names already.
///
/// Input 0 of the pieces is `data`; those that follow are told at [`NewSection`].
///
/// # Errors
///
/// When it is no COFF object and no PE image, is damaged, or becomes too large.
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
        // Also in objects each has an address past the last, as in an image.
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

/// A COFF file without the sections whose names match, those associated with them, and the symbols
/// in them.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// As [`add_sections`], and when something that stays needs what is removed.
pub fn remove_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    matches: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Piece>, CoffError> {
    let mut file = EditedCoff::read(data, range)?;
    for part in &mut file.parts {
        part.kept = !matches(part.name);
    }
    // What is associated with a removed section would not be used by anyone.
    let mut changed = true;
    while changed {
        changed = false;
        for symbol in &file.symbols {
            if symbol.associate.is_some_and(|number| !file.is_kept(number)) {
                let part = usize::try_from(symbol.section - 1).ok();
                if let Some(part) = part.and_then(|index| file.parts.get_mut(index)) {
                    changed |= std::mem::replace(&mut part.kept, false);
                }
            }
        }
    }
    let kept: Vec<bool> = file
        .symbols
        .iter()
        .map(|symbol| file.is_kept(symbol.section))
        .collect();
    for (symbol, kept) in file.symbols.iter_mut().zip(kept) {
        symbol.kept = kept;
    }
    file.write()
}

impl EditedCoff<'_> {
    /// Whether the section of that number stays, if it is one.
    pub(super) fn is_kept(&self, number: i32) -> bool {
        let index = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let part = index.and_then(|index| self.parts.get(index));
        part.is_none_or(|part| part.kept)
    }
}
