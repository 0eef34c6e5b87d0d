//! The headers of COFF files.

use std::ops::Range;

use object::read::coff::{CoffHeader, SectionTable};
use object::{LittleEndian as LE, pe};

use super::error::CoffError;
use crate::container::view::View;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};

/// The forms of COFF files.
#[derive(Clone, Copy, Debug)]
pub(super) enum CoffForm {
    Object,
    /// An object with a header for more than 65,279 sections.
    LargeObject,
    Image {
        /// Offset of the PE signature from the start of the COFF file.
        stub: u64,
    },
}

impl CoffForm {
    /// Returns the file's form, and the range clamped to the data.
    pub(super) fn of<'d, R: ReadAt<'d>>(
        data: R,
        range: Range<u64>,
    ) -> Result<(Self, Range<u64>), CoffError> {
        let mut cursor = Cursor::new(data, range.clone());
        let range = range.start..cursor.end();
        let form = match cursor.read(4, "file header")? {
            [b'M', b'Z', ..] => {
                let dos: &pe::ImageDosHeader = record(data, &range, 0, "DOS header")?;
                let stub: u64 = dos.e_lfanew.get(LE).into();
                let offset = range.start.saturating_add(stub);
                if cursor.at(offset).read(4, "PE signature")? != b"PE\0\0" {
                    return Err(CoffError::Signature { offset });
                }
                Self::Image { stub }
            }
            [0, 0, 0xff, 0xff] => {
                let large: &pe::AnonObjectHeaderBigobj = record(data, &range, 0, "file header")?;
                if large.class_id != pe::ANON_OBJECT_HEADER_BIGOBJ_CLASS_ID {
                    return Err(CoffError::Anonymous);
                }
                Self::LargeObject
            }
            _ => Self::Object,
        };
        Ok((form, range))
    }
}

/// Returns the file's processor, and true for an image.
///
/// # Errors
///
/// Fails if a header is missing.
pub(super) fn recognize<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<(pe::Machine, bool), CoffError> {
    let (form, range) = CoffForm::of(data, range)?;
    Ok(match form {
        CoffForm::Image { stub } => {
            let (header, _) = headers::<pe::ImageFileHeader, R>(data, &range, stub + 4)?;
            (header.machine(), true)
        }
        CoffForm::LargeObject => {
            let (header, _) = headers::<pe::AnonObjectHeaderBigobj, R>(data, &range, 0)?;
            (header.machine(), false)
        }
        CoffForm::Object => {
            let (header, _) = headers::<pe::ImageFileHeader, R>(data, &range, 0)?;
            (header.machine(), false)
        }
    })
}

/// Reads the file header at `place`, and the section headers.
pub(super) fn headers<'d, H: CoffHeader, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    place: u64,
) -> Result<(&'d H, SectionTable<'d>), CoffError> {
    let header: &H = record(data, range, place, "file header")?;
    let (window, mut offset) = (View::new(data, range.clone()), place);
    let parsed = H::parse(window, &mut offset);
    parsed.map_err(|_| out_of_bounds("file header", range, place, 1, size_of::<H>()))?;
    let sections = SectionTable::parse(header, window, offset).map_err(|_| {
        let (count, size) = (header.number_of_sections(), pe::IMAGE_SIZEOF_SECTION_HEADER);
        out_of_bounds("section table", range, offset, count, size)
    })?;
    Ok((header, sections))
}

/// Returns the error for `count` records of `size` bytes at `place`, from the start of the range.
pub(super) fn out_of_bounds(
    what: &'static str,
    range: &Range<u64>,
    place: u64,
    count: u32,
    size: usize,
) -> OutOfBounds {
    let offset = range.start.saturating_add(place);
    let size = u64::from(count).saturating_mul(size as u64);
    OutOfBounds::new(what, offset, size, range.end)
}

/// Reads a record at `place`, from the start of the range.
pub(super) fn record<'d, T: object::Pod, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    place: u64,
    what: &'static str,
) -> Result<&'d T, CoffError> {
    let offset = range.start.saturating_add(place);
    let size = size_of::<T>() as u64;
    let mut cursor = Cursor::new(data, range.clone()).at(offset);
    let bytes = cursor.read(size, what)?;
    let record = object::pod::from_bytes(bytes).map(|(record, _)| record);
    let end = range.end;
    record.map_err(|()| OutOfBounds::new(what, offset, size, end).into())
}
