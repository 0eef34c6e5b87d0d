//! Sections of the file, as they were and as they will be.

use std::ops::Range;

use object::{LittleEndian as LE, U16, U32, pe};

use super::error::CoffError;
use crate::container::edit::NewSection;
use crate::format::pieces::Piece;

/// A section of a COFF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoffSection<'d> {
    /// From the string table, when it is long.
    pub name: &'d [u8],
    /// From the start of the file that the COFF file is in; without the padding that images have. Of a section
    /// that the file does not hold, empty and at 0.
    pub content: Range<u64>,
}

/// A section, as it will be.
#[derive(Debug)]
pub(super) struct EditedCoffSection<'d> {
    pub(super) name: &'d [u8],
    /// As it was, apart from what `layout` decides.
    pub(super) header: pe::ImageSectionHeader,
    /// As large as `size_of_raw_data` or smaller.
    pub(super) content: Piece,
    pub(super) relocations: &'d [pe::ImageRelocation],
    pub(super) kept: bool,
}

impl<'d> EditedCoffSection<'d> {
    /// One to add, of that index among those, at that address.
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
                // What linkers leave out, and can be read.
                characteristics: U32::new(LE, pe::IMAGE_SCN_LNK_REMOVE | pe::IMAGE_SCN_MEM_READ),
            },
            content: section.content.piece(index),
            relocations: &[],
            kept: true,
        })
    }

    /// Whether it is one that is added.
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

/// The next multiple of a power of two.
pub(super) fn align(value: u64, alignment: u64) -> Result<u64, CoffError> {
    let aligned = value.checked_next_multiple_of(alignment);
    aligned.ok_or(CoffError::TooLarge { value })
}

/// As a field of 32 bits.
pub(super) fn small(value: u64) -> Result<u32, CoffError> {
    u32::try_from(value).map_err(|_| CoffError::TooLarge { value })
}
