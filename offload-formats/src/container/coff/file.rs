//! The old file, with what was decided about it.

use std::ops::Range;

use object::read::coff::{CoffHeader, SymbolTable};
use object::{LittleEndian as LE, ReadRef, U16, U32, pe};

use super::headers::{Form, headers, lies, record};
use super::image::Image;
use super::symbols::Symbol;
use super::{CoffError, Section};
use crate::container::edit::NewSection;
use crate::format::bytes::{OutOfBounds, Window};
use crate::format::pieces::Piece;

/// A COFF file that is edited. Symbols keep the indices that they had.
#[derive(Debug)]
pub(super) struct File<'d> {
    /// Where the COFF file is in the data.
    pub(super) range: Range<u64>,
    pub(super) header: pe::ImageFileHeader,
    /// What PE images have before and after the file header.
    pub(super) image: Option<Image<'d>>,
    pub(super) parts: Vec<Part<'d>>,
    pub(super) symbols: Vec<Symbol<'d>>,
}

/// A section, as it will be.
#[derive(Debug)]
pub(super) struct Part<'d> {
    pub(super) name: &'d [u8],
    /// As it was, apart from what `layout` decides.
    pub(super) header: pe::ImageSectionHeader,
    /// As large as `size_of_raw_data` or smaller.
    pub(super) content: Piece,
    pub(super) relocations: &'d [pe::ImageRelocation],
    pub(super) kept: bool,
}

impl<'d> File<'d> {
    pub(super) fn read<R: ReadRef<'d>>(data: R, range: Range<u64>) -> Result<Self, CoffError> {
        let (form, range) = Form::of(data, range)?;
        match form {
            Form::Image { stub } => Self::image(data, range, stub),
            Form::LargeObject => {
                let large: &pe::AnonObjectHeaderBigobj = record(data, &range, 0, "file header")?;
                let header = pe::ImageFileHeader {
                    machine: large.machine,
                    number_of_sections: U16::new(LE, 0),
                    time_date_stamp: large.time_date_stamp,
                    pointer_to_symbol_table: U32::new(LE, 0),
                    number_of_symbols: U32::new(LE, 0),
                    size_of_optional_header: U16::new(LE, 0),
                    characteristics: U16::new(LE, pe::FileFlags(0)),
                };
                Self::object::<pe::AnonObjectHeaderBigobj, R>(data, range, 0, header)
            }
            Form::Object => {
                let header: &pe::ImageFileHeader = record(data, &range, 0, "file header")?;
                Self::object::<pe::ImageFileHeader, R>(data, range, 0, *header)
            }
        }
    }

    /// From the file header on, which lies at `place`.
    pub(super) fn object<H: CoffHeader, R: ReadRef<'d>>(
        data: R,
        range: Range<u64>,
        place: u64,
        header: pe::ImageFileHeader,
    ) -> Result<Self, CoffError> {
        let (old, sections) = headers::<H, R>(data, &range, place)?;
        let window = Window::new(data, range.clone());
        let lies =
            |what, place: u64, count: u32, size: usize| lies(what, &range, place, count, size);
        let table = SymbolTable::<Window<R>, H>::parse(old, window).map_err(|_| {
            let (place, count) = (old.pointer_to_symbol_table(), old.number_of_symbols());
            lies(
                "symbol table",
                place.into(),
                count,
                size_of::<H::SymbolBytes>(),
            )
        })?;
        let mut file = Self {
            header,
            range: range.clone(),
            image: None,
            parts: Vec::new(),
            symbols: Vec::new(),
        };
        for (number, section) in (1..).zip(sections.iter()) {
            let name = section
                .name(table.strings())
                .map_err(|_| CoffError::Name { number })?;
            let place = u64::from(section.pointer_to_raw_data.get(LE));
            let size = u64::from(section.size_of_raw_data.get(LE));
            let at = range.start.saturating_add(place);
            let content = if place == 0 {
                Piece::Zeros(0)
            } else {
                let range = OutOfBounds::check("content", at, size, range.end)
                    .map_err(|problem| CoffError::Section { number, problem })?;
                Piece::Copy { input: 0, range }
            };
            let relocations = section.coff_relocations(window).map_err(|_| {
                let place = section.pointer_to_relocations.get(LE).into();
                let count = section.number_of_relocations.get(LE).into();
                let problem = lies(
                    "relocations",
                    place,
                    count,
                    size_of::<pe::ImageRelocation>(),
                );
                CoffError::Section { number, problem }
            })?;
            file.parts.push(Part {
                name,
                header: *section,
                content,
                relocations,
                kept: true,
            });
        }
        file.read_symbols(&table)?;
        Ok(file)
    }
}

impl<'d> Part<'d> {
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

    pub(super) fn section(&self) -> Section<'d> {
        let content = match &self.content {
            Piece::Copy { range, .. } => range.clone(),
            _ => 0..0,
        };
        let name = self.name;
        Section { name, content }
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
