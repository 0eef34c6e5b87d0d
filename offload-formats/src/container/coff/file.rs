//! The old file, with the edits.

use std::ops::Range;

use object::read::coff::{CoffHeader, SymbolTable};
use object::{LittleEndian as LE, U16, U32, pe};

use super::error::CoffError;
use super::headers::{CoffForm, headers, out_of_bounds, record};
use super::image::Image;
use super::part::EditedCoffSection;
use super::symbols::{EditedCoffSymbol, read_symbols};
use crate::container::view::View;
use crate::format::bytes::{OutOfBounds, ReadAt};
use crate::format::pieces::Piece;

/// A COFF file to edit. Symbols keep their old indices.
#[derive(Debug)]
pub(super) struct EditedCoff<'d> {
    /// Range of the COFF file in the data.
    pub(super) range: Range<u64>,
    pub(super) header: pe::ImageFileHeader,
    /// The parts of a PE image before and after the file header.
    pub(super) image: Option<Image<'d>>,
    pub(super) parts: Vec<EditedCoffSection<'d>>,
    pub(super) symbols: Vec<EditedCoffSymbol<'d>>,
}

impl<'d> EditedCoff<'d> {
    pub(super) fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Self, CoffError> {
        let (form, range) = CoffForm::of(data, range)?;
        match form {
            CoffForm::Image { stub } => {
                let place = stub + 4;
                let header: &pe::ImageFileHeader = record(data, &range, place, "file header")?;
                let mut file = Self::object::<pe::ImageFileHeader, R>(data, range, place, *header)?;
                let image = Image::read(data, &file.range, stub, header, &mut file.parts)?;
                file.image = Some(image);
                Ok(file)
            }
            CoffForm::LargeObject => {
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
            CoffForm::Object => {
                let header: &pe::ImageFileHeader = record(data, &range, 0, "file header")?;
                Self::object::<pe::ImageFileHeader, R>(data, range, 0, *header)
            }
        }
    }

    /// Reads an object: everything from the file header at `place` on.
    fn object<H: CoffHeader, R: ReadAt<'d>>(
        data: R,
        range: Range<u64>,
        place: u64,
        header: pe::ImageFileHeader,
    ) -> Result<Self, CoffError> {
        let (old, sections) = headers::<H, R>(data, &range, place)?;
        let window = View::new(data, range.clone());
        let outside = |what, place: u64, count: u32, size: usize| {
            out_of_bounds(what, &range, place, count, size)
        };
        let table = SymbolTable::<View<R>, H>::parse(old, window).map_err(|_| {
            let (place, count) = (old.pointer_to_symbol_table(), old.number_of_symbols());
            outside(
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
                let problem = outside(
                    "relocations",
                    place,
                    count,
                    size_of::<pe::ImageRelocation>(),
                );
                CoffError::Section { number, problem }
            })?;
            file.parts.push(EditedCoffSection {
                name,
                header: *section,
                content,
                relocations,
                kept: true,
            });
        }
        file.symbols = read_symbols(&table, file.parts.len())?;
        Ok(file)
    }
}
