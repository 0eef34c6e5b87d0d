//! Lists the sections of COFF objects and PE images from their headers. Reads no symbols, and names only on
//! request.

use std::ops::Range;

use object::read::StringTable;
use object::read::coff::{CoffHeader, SectionTable};
use object::{LittleEndian as LE, ReadRef as _, U32, pe};

use super::error::CoffError;
use super::headers::{CoffForm, headers};
use crate::container::view::View;
use crate::format::bytes::{OutOfBounds, ReadAt};

/// The sections of a COFF file.
pub(in crate::container) struct Listing<'d, R> {
    /// True for a PE image.
    pub(in crate::container) image: bool,
    table: SectionTable<'d>,
    data: R,
    /// Range of the COFF file.
    range: Range<u64>,
    /// Offset of the long names from the start of the range.
    strings: Option<u64>,
}

/// A section with content in the file; the numbers are unchecked, as its header has them.
#[derive(Clone)]
pub(in crate::container) struct ListedSection<'d> {
    /// Number of the section, from 1.
    pub(in crate::container) number: usize,
    pub(in crate::container) header: &'d pe::ImageSectionHeader,
    /// Offset from the start of the data; may be outside of the file.
    pub(in crate::container) offset: u64,
    /// Size in bytes, without padding.
    pub(in crate::container) size: u64,
}

impl<'d, R: ReadAt<'d>> Listing<'d, R> {
    /// Returns `None` for a DOS program, and for a file too short for its headers: COFF has no magic, so the
    /// file has another format.
    pub(in crate::container) fn parse(
        data: R,
        range: Range<u64>,
    ) -> Result<Option<Self>, CoffError> {
        let listing = CoffForm::of(data, range).and_then(|(form, range)| match form {
            CoffForm::Image { stub } => {
                let listing = Self::of::<pe::ImageFileHeader>(data, range, stub + 4)?;
                Ok(Self {
                    image: true,
                    ..listing
                })
            }
            CoffForm::LargeObject => Self::of::<pe::AnonObjectHeaderBigobj>(data, range, 0),
            CoffForm::Object => Self::of::<pe::ImageFileHeader>(data, range, 0),
        });
        match listing {
            Err(CoffError::Signature { .. }) => Ok(None),
            Err(CoffError::Outside(problem)) if problem.what != "section table" => Ok(None),
            listing => listing.map(Some),
        }
    }

    fn of<H: CoffHeader>(data: R, range: Range<u64>, place: u64) -> Result<Self, CoffError> {
        let (header, table) = headers::<H, R>(data, &range, place)?;
        // The strings follow the symbols.
        let symbols = u64::from(header.pointer_to_symbol_table());
        let size = u64::from(header.number_of_symbols()) * size_of::<H::SymbolBytes>() as u64;
        Ok(Self {
            image: false,
            table,
            data,
            range,
            strings: (symbols != 0).then_some(symbols + size),
        })
    }

    pub(in crate::container) fn sections(&self) -> impl Iterator<Item = ListedSection<'d>> + '_ {
        let sections = (1..).zip(self.table.iter());
        sections.filter_map(|(number, header)| {
            let (offset, size) = match self.image {
                true => image_range(header),
                false => header.coff_file_range()?,
            };
            let offset = self.range.start.saturating_add(offset.into());
            let size = size.into();
            Some(ListedSection {
                number,
                header,
                offset,
                size,
            })
        })
    }

    /// Returns the range of a section's content.
    pub(in crate::container) fn check(
        &self,
        section: &ListedSection<'_>,
    ) -> Result<Range<u64>, OutOfBounds> {
        OutOfBounds::check("content", section.offset, section.size, self.range.end)
    }

    pub(in crate::container) fn name(
        &self,
        section: &ListedSection<'d>,
    ) -> Result<&'d [u8], CoffError> {
        let (number, header) = (section.number, section.header);
        if !header.raw_name().starts_with(b"/") {
            return Ok(header.raw_name());
        }
        let strings = self.names().ok_or(CoffError::Name { number })?;
        let name = header.name(strings);
        name.map_err(|_| CoffError::Name { number })
    }

    fn names(&self) -> Option<StringTable<'d, View<R>>> {
        let window = View::new(self.data, self.range.clone());
        let start = self.strings?;
        let size = window.read_at::<U32<LE>>(start).ok()?;
        let end = start.checked_add(size.get(LE).into())?;
        Some(StringTable::new(window, start, end))
    }
}

impl ListedSection<'_> {
    /// Returns true if linkers leave the section out.
    pub(in crate::container) fn removed(&self) -> bool {
        let characteristics = self.header.characteristics.get(LE);
        characteristics.contains(pe::IMAGE_SCN_LNK_REMOVE)
    }

    /// Returns true if the section has data of the program.
    #[cfg(feature = "tools")]
    pub(in crate::container) fn is_data(&self) -> bool {
        let characteristics = self.header.characteristics.get(LE);
        characteristics.contains(pe::IMAGE_SCN_CNT_INITIALIZED_DATA) && !self.removed()
    }
}

/// Returns offset and size of an image's section in the file, without padding after the loaded bytes.
fn image_range(header: &pe::ImageSectionHeader) -> (u32, u32) {
    let size = header.size_of_raw_data.get(LE);
    let loaded = header.virtual_size.get(LE);
    (header.pointer_to_raw_data.get(LE), size.min(loaded))
}
