//! The parts of PE images that objects do not have: an optional header, and a debug directory with file
//! offsets.

use std::mem::offset_of;
use std::ops::Range;

use object::{LittleEndian as LE, U32, pe};

use super::error::CoffError;
use super::part::{EditedCoffSection, align, small};
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::pieces::Piece;

/// The parts of a PE image that objects do not have.
#[derive(Debug)]
pub(super) struct Image<'d> {
    /// Size of the DOS program at the start of the COFF file.
    pub(super) stub: u64,
    /// The optional header with its directories, without bytes after them.
    pub(super) optional_header: &'d [u8],
    pub(super) file_alignment: u64,
    pub(super) section_alignment: u64,
    pub(super) debug: Option<DebugDirectory<'d>>,
}

/// The debug directory of an image, which contains file offsets.
#[derive(Debug)]
pub(super) struct DebugDirectory<'d> {
    /// Index of the section that contains it.
    pub(super) part: usize,
    /// Offset from the start of the section's content.
    pub(super) offset: u64,
    pub(super) bytes: &'d [u8],
}

impl<'d> Image<'d> {
    /// Reads the optional header and the debug directory. Removes the padding of `parts`.
    pub(super) fn read<R: ReadAt<'d>>(
        data: R,
        range: &Range<u64>,
        stub: u64,
        header: &pe::ImageFileHeader,
        parts: &mut [EditedCoffSection<'d>],
    ) -> Result<Self, CoffError> {
        let place = stub + 4 + size_of::<pe::ImageFileHeader>() as u64;
        let offset = range.start.saturating_add(place);
        let size = u64::from(header.size_of_optional_header.get(LE));
        let unknown = CoffError::OptionalHeader { offset, size };
        let mut cursor = Cursor::new(data, range.clone()).at(offset);
        let bytes = cursor.read(size, "optional header")?;
        let word = |place: usize| {
            let bytes = bytes.get(place..place + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        // 32-bit and 64-bit images have the same fields up to the sizes of stack and heap.
        let count_place = match bytes {
            [0x0b, 0x01, ..] => 92,
            [0x0b, 0x02, ..] => 108,
            _ => return Err(unknown),
        };
        let directories = count_place + 4;
        let count = word(count_place).ok_or(unknown)?;
        let end = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(8)?.checked_add(directories));
        let optional_header = end.and_then(|end| bytes.get(..end)).ok_or(unknown)?;
        let debug = directories + 8 * 6;
        let debug = match (count, word(debug), word(debug + 4)) {
            (7.., Some(address), Some(size)) if size > 0 => {
                Some(DebugDirectory::find(data, range, parts, address, size)?)
            }
            _ => None,
        };
        let alignment = |place| {
            let alignment = word(place).map(u64::from);
            alignment
                .filter(|alignment| alignment.is_power_of_two())
                .ok_or(unknown)
        };
        let image = Self {
            stub,
            optional_header,
            section_alignment: alignment(32)?,
            file_alignment: alignment(36)?,
            debug,
        };
        // Content after the size in memory is padding.
        for part in parts {
            if let Piece::Copy { range, .. } = &mut part.content {
                let size = u64::from(part.header.virtual_size.get(LE));
                range.end = range.end.min(range.start.saturating_add(size));
            }
        }
        Ok(image)
    }
}

impl<'d> DebugDirectory<'d> {
    fn find<R: ReadAt<'d>>(
        data: R,
        file: &Range<u64>,
        parts: &[EditedCoffSection<'d>],
        address: u32,
        size: u32,
    ) -> Result<Self, CoffError> {
        let missing = CoffError::DebugDirectory;
        let found = parts.iter().enumerate().find_map(|(index, part)| {
            let distance = address.checked_sub(part.header.virtual_address.get(LE))?;
            let raw_size = part.header.size_of_raw_data.get(LE);
            let rest = raw_size.checked_sub(distance).filter(|rest| *rest > 0)?;
            Some((index, part, distance, rest))
        });
        let (
            part,
            EditedCoffSection {
                content: Piece::Copy { range, .. },
                ..
            },
            distance,
            rest,
        ) = found.ok_or(missing)?
        else {
            return Err(missing);
        };
        if size > rest {
            return Err(missing);
        }
        let offset = u64::from(distance);
        let mut cursor = Cursor::new(data, file.clone());
        cursor = cursor.at(range.start.saturating_add(offset));
        let bytes = cursor.read(size.into(), "debug directory")?;
        Ok(Self {
            part,
            offset,
            bytes,
        })
    }
}

impl Image<'_> {
    /// Returns the new optional header. `last` is the header of the last section.
    pub(super) fn optional_header(
        &self,
        last: Option<&pe::ImageSectionHeader>,
        headers_size: u64,
        initialized: u64,
    ) -> Result<Vec<u8>, CoffError> {
        let mut bytes = self.optional_header.to_vec();
        let mut patch = |place: usize, value: u64| -> Result<(), CoffError> {
            if let Some(field) = bytes.get_mut(place..place + 4) {
                field.copy_from_slice(&small(value)?.to_le_bytes());
            }
            Ok(())
        };
        // The fields have the same offsets in 32-bit and 64-bit images.
        patch(
            offset_of!(pe::ImageOptionalHeader64, size_of_initialized_data),
            initialized,
        )?;
        patch(
            offset_of!(pe::ImageOptionalHeader64, size_of_headers),
            headers_size,
        )?;
        patch(offset_of!(pe::ImageOptionalHeader64, check_sum), 0)?;
        if let Some(last) = last {
            let size = u64::from(last.virtual_size.get(LE));
            let end = u64::from(last.virtual_address.get(LE)) + size;
            let end = align(end, self.section_alignment)?;
            patch(offset_of!(pe::ImageOptionalHeader64, size_of_image), end)?;
        }
        Ok(bytes)
    }

    /// Returns the offset of the new debug directory and its bytes, with new file offsets.
    pub(super) fn debug_directory(
        &self,
        headers: &[pe::ImageSectionHeader],
        numbers: &[i32],
    ) -> Result<(u64, Vec<u8>), CoffError> {
        let Some(debug) = &self.debug else {
            return Ok((0, Vec::new()));
        };
        let missing = CoffError::DebugDirectory;
        let number = numbers
            .get(debug.part)
            .and_then(|number| usize::try_from(*number).ok());
        let header = number.and_then(|number| headers.get(number.checked_sub(1)?));
        let start = header.ok_or(missing)?.pointer_to_raw_data.get(LE);
        let mut bytes = debug.bytes.to_vec();
        for entry in bytes.chunks_exact_mut(size_of::<pe::ImageDebugDirectory>()) {
            let Ok((entry, _)) = object::pod::from_bytes_mut::<pe::ImageDebugDirectory>(entry)
            else {
                continue;
            };
            if entry.pointer_to_raw_data.get(LE) != 0 {
                let address = entry.address_of_raw_data.get(LE);
                let place = headers.iter().find_map(|header| {
                    let distance = address.checked_sub(header.virtual_address.get(LE))?;
                    let start = header.pointer_to_raw_data.get(LE);
                    (distance < header.size_of_raw_data.get(LE))
                        .then(|| start.checked_add(distance))?
                });
                entry.pointer_to_raw_data = U32::new(LE, place.ok_or(missing)?);
            }
        }
        Ok((u64::from(start) + debug.offset, bytes))
    }
}
