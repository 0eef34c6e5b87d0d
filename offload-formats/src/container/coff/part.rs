//! Sections of the old file, and of the new one.

use std::ops::Range;

use object::{LittleEndian as LE, U16, U32, pe};

use super::error::CoffError;
use crate::container::edit::NewSection;
use crate::format::pieces::Piece;

/// A section of a COFF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoffSection<'d> {
    /// Name, from the string table if it is long.
    pub name: &'d [u8],
    /// Range of the content from the start of the file that contains the COFF file, without an image's padding. It is
    /// `0..0` if the section has no bytes in the file.
    pub content: Range<u64>,
}

/// A section of the new file.
#[derive(Debug)]
pub(super) struct EditedCoffSection<'d> {
    pub(super) name: &'d [u8],
    /// The old header; writing replaces name, offsets and counts.
    pub(super) header: pe::ImageSectionHeader,
    /// Content of at most `size_of_raw_data` bytes.
    pub(super) content: Piece,
    pub(super) relocations: &'d [pe::ImageRelocation],
    pub(super) kept: bool,
}

impl<'d> EditedCoffSection<'d> {
    /// Creates the added section with that index, at that address.
    pub(super) fn new(
        index: usize,
        section: &NewSection<'d>,
        address: u64,
        alignment: u64,
    ) -> Result<Self, CoffError> {
        let size = section.content.size();
        let padded = align(size, alignment)?;
        Ok(Self {
            name: section.name,
            header: pe::ImageSectionHeader {
                name: [0; 8],
                virtual_size: U32::new(LE, small(size)?),
                virtual_address: U32::new(LE, small(address)?),
                size_of_raw_data: U32::new(LE, small(padded)?),
                pointer_to_raw_data: U32::new(LE, 0),
                pointer_to_relocations: U32::new(LE, 0),
                pointer_to_linenumbers: U32::new(LE, 0),
                number_of_relocations: U16::new(LE, 0),
                number_of_linenumbers: U16::new(LE, 0),
                // Readable, and left out by linkers.
                characteristics: U32::new(LE, pe::IMAGE_SCN_LNK_REMOVE | pe::IMAGE_SCN_MEM_READ),
            },
            content: section.content.piece(index),
            relocations: &[],
            kept: true,
        })
    }

    /// Returns true for an added section.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self.content, Piece::Copy { input: 0, .. } | Piece::Zeros(_))
    }

    pub(super) fn section(&self) -> CoffSection<'d> {
        let content = match &self.content {
            Piece::Copy { range, .. } => range.clone(),
            _ => 0..0,
        };
        let name = self.name;
        CoffSection { name, content }
    }
}

/// Returns the next multiple of `alignment`, a power of two.
pub(super) fn align(value: u64, alignment: u64) -> Result<u64, CoffError> {
    let aligned = value.checked_next_multiple_of(alignment);
    aligned.ok_or(CoffError::TooLarge { value })
}

/// Converts a number to a 32-bit field.
pub(super) fn small(value: u64) -> Result<u32, CoffError> {
    u32::try_from(value).map_err(|_| CoffError::TooLarge { value })
}
