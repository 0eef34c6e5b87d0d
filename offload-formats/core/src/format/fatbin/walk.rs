//! Reads consecutive fat binaries, headers only.

use std::ops::Range;

use super::entry::{FatbinEntry, FatbinGroup};
use super::error::FatbinReadError;
use super::layout::{FatbinHeader, GROUP, GroupHeader, ImageHeader, MAGIC, OptionsHeader};
use crate::format::bytes::{Alignment, Cursor, OutOfBounds, ReadAt};

/// A fat binary in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundFatbin {
    /// Range in the file, with its header.
    pub range: Range<u64>,
    /// Its images in file order; there may be none.
    pub entries: Vec<FatbinEntry>,
}

/// Iterator over the fat binaries of a range; [`walk`] creates it.
#[derive(Clone, Debug)]
pub struct FatbinWalk<'d, R> {
    cursor: Cursor<'d, R>,
}

/// Reads the fat binaries in a range of `data`, such as an object's section. Skips zero bytes between and after them.
///
/// The iterator ends after the first error: the next fat binary is unknown.
pub fn walk<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> FatbinWalk<'d, R> {
    let cursor = Cursor::new(data, range);
    FatbinWalk { cursor }
}

impl<'d, R: ReadAt<'d>> Iterator for FatbinWalk<'d, R> {
    type Item = Result<FoundFatbin, FatbinReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.cursor.end();
        // Fat binaries follow each other directly, or at the next multiple of 8.
        let start = self.cursor.after_zeros(8);
        if start >= end {
            self.cursor = self.cursor.at(end);
            return None;
        }
        self.cursor = self.cursor.at(start);
        let found = fatbin(&mut self.cursor, 0);
        if found.is_err() {
            self.cursor = self.cursor.at(end);
        }
        Some(found)
    }
}

/// Reads the fat binary at the cursor, whose first image has index `first`, and moves the cursor to its end.
pub(super) fn fatbin<'d, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
    first: usize,
) -> Result<FoundFatbin, FatbinReadError> {
    let start = cursor.position();
    let header = FatbinHeader::read(cursor).map_err(FatbinReadError::Header)?;
    if header.magic != MAGIC {
        return Err(FatbinReadError::Magic { offset: start });
    }
    let images = start.saturating_add(header.header_size.into());
    let body = OutOfBounds::check("images", images, header.size, cursor.end())
        .map_err(FatbinReadError::Header)?;
    let end = body.end;
    let mut images = cursor.within(body);
    let mut entries = Vec::new();
    while images.position() < images.end() {
        let index = first + entries.len();
        let wrong = |problem| FatbinReadError::Image { index, problem };
        read_entry(&mut images, &mut entries).map_err(wrong)?;
    }
    *cursor = cursor.at(end.max(cursor.position()));
    Ok(FoundFatbin {
        range: start..cursor.position(),
        entries,
    })
}

/// Reads an image's header, or those of a group, and moves the cursor to the end of the image.
fn read_entry<'d, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
    entries: &mut Vec<FatbinEntry>,
) -> Result<(), OutOfBounds> {
    let (start, end) = (cursor.position(), cursor.end());
    let header = ImageHeader::read(cursor)?;
    let image = start.saturating_add(header.header_size.into());
    // The header's size is at least the record's, so that the loop ends.
    let image = OutOfBounds::check(
        "image",
        image.max(cursor.position()),
        header.image_size,
        end,
    )?;
    let all = FatbinEntry::new(&header, image.clone());
    OutOfBounds::check("stored image", image.start, all.stored_size, image.end)?;
    if header.kind == GROUP {
        let table = start.saturating_add(header.options_offset.into());
        let table = cursor.within(table..image.start);
        group(table, &all, entries)?;
    } else {
        entries.push(all);
    }
    *cursor = cursor.at(image.end);
    Ok(())
}

/// Reads the headers of a group's images from the table between the group's header and its content.
fn group<'d, R: ReadAt<'d>>(
    mut cursor: Cursor<'d, R>,
    all: &FatbinEntry,
    entries: &mut Vec<FatbinEntry>,
) -> Result<(), OutOfBounds> {
    let start = cursor.position();
    let GroupHeader { count, size } = GroupHeader::read(&mut cursor)?;
    let table = OutOfBounds::check("group", start, size.into(), cursor.end())?;
    let mut cursor = cursor.within(cursor.position()..table.end);
    // Each image has a header in the table, which ends the loop if the count is wrong.
    for _ in 0..count {
        let start = cursor.position();
        let header = ImageHeader::read(&mut cursor)?;
        // In a group, the field for the header's size is the offset in the uncompressed bytes.
        let offset = u64::from(header.header_size);
        let size = all.uncompressed_size;
        let image = OutOfBounds::check("image of the group", offset, header.image_size, size)?;
        let own = FatbinEntry::new(&header, all.image.clone());
        entries.push(FatbinEntry {
            stored_size: all.stored_size,
            uncompressed_size: header.image_size,
            compression: all.compression,
            group: Some(FatbinGroup { image, size }),
            ..own
        });
        let next = header_end(&cursor, start, &header)?;
        cursor = cursor.at(next.max(cursor.position()));
    }
    Ok(())
}

/// Returns the end of a header at `start` with its name and options, each of which ends with a NUL.
fn header_end<'d, R: ReadAt<'d>>(
    cursor: &Cursor<'d, R>,
    start: u64,
    header: &ImageHeader,
) -> Result<u64, OutOfBounds> {
    let (offset, size) = match (header.options_offset, header.name_size) {
        (0, 0) => return Ok(cursor.position()),
        (0, size) => (header.name_offset, size),
        (options, _) => {
            let mut options = cursor.at(start.saturating_add(options.into()));
            let OptionsHeader { offset, size } = OptionsHeader::read(&mut options)?;
            (offset, size)
        }
    };
    // 32-bit numbers do not overflow 64 bits.
    let size = u64::from(offset) + u64::from(size) + 1;
    let size = Alignment::EIGHT.align(size).unwrap_or(size);
    Ok(start.saturating_add(size))
}
