//! A zip file with new content of some members, as pieces.
//!
//! Everything else stays: the order of members and entries, names, times, attributes, comments, and the bytes of all
//! other members.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{
    DirectoryEnd, DirectoryEnd64, DirectoryEntry, DirectoryLocator, STREAMED, ZipError, ZipFile,
    ZipMember, ZipMemberHeader, ZipProblem, zip64_field,
};
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::pieces::{self, Piece};

/// New content of a member, compressed with the member's method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewZipContent {
    /// CRC-32 of the unpacked content.
    pub crc: u32,
    /// Size of the unpacked content in bytes.
    pub size: u64,
    /// The stored content.
    pub pieces: Vec<Piece>,
}

impl ZipFile {
    /// Returns the file with new content of the members with these indices. Input 0 of the pieces is the old file.
    ///
    /// # Errors
    ///
    /// Fails if the old file is damaged, or the new one needs zip64 and the old one does not use it.
    pub fn with_new_content<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        new: &BTreeMap<usize, NewZipContent>,
    ) -> Result<Vec<Piece>, ZipError> {
        let copy = |range: Range<u64>| Piece::Copy { input: 0, range };
        let mut pieces = Vec::new();
        // New offset of each member's header.
        let mut headers = BTreeMap::new();
        let (mut position, mut size) = (self.range.start, 0);
        for index in self.order() {
            let member = self
                .members
                .get(index)
                .expect("the order has indices of members");
            pieces.push(copy(position..member.header));
            size += member.header - position;
            headers.insert(index, size);
            position = member.header;
            if let Some(content) = new.get(&index) {
                let head = member.new_header(data, content)?;
                size += head.len() as u64 + pieces::size(&content.pieces);
                pieces.push(Piece::Bytes(head));
                pieces.extend(content.pieces.iter().cloned());
                position = self.end_of(data, member)?;
            }
        }
        pieces.push(copy(position..self.directory.start));
        let directory = size + (self.directory.start - position);
        let mut entries = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let header = headers.get(&index).expect("each member has a header");
            entries.extend(member.new_entry(data, *header, new.get(&index))?);
        }
        let entries_size = entries.len() as u64;
        pieces.push(Piece::Bytes(entries));
        pieces.push(Piece::Bytes(self.new_end(data, directory, entries_size)?));
        Ok(pieces)
    }

    /// Returns the end of a member: of its content, or of the record with its sizes.
    fn end_of<'d, R: ReadAt<'d>>(&self, data: R, member: &ZipMember) -> Result<u64, ZipError> {
        let mut cursor = Cursor::new(data, member.header..self.directory.start);
        let header = ZipMemberHeader::read(&mut cursor).map_err(ZipError::outside)?;
        if header.flags & STREAMED == 0 {
            return Ok(member.content.end);
        }
        // The record's magic is optional and its sizes have 32 or 64 bits, so the next member tells where it ends.
        let headers = self.members.iter().map(|member| member.header);
        let next = headers.filter(|header| *header >= member.content.end).min();
        Ok(next.unwrap_or(self.directory.start))
    }

    /// Returns the bytes after the directory's entries.
    fn new_end<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        directory: u64,
        size: u64,
    ) -> Result<Vec<u8>, ZipError> {
        let small = |value: u64, old: u32| match (u32::try_from(value), old) {
            (_, u32::MAX) if self.end64.is_some() => Ok(u32::MAX),
            (Ok(value), _) => Ok(value),
            (Err(_), _) => Err(ZipProblem::Large.at(self.end)),
        };
        let whole = Cursor::new(data, self.range.clone());
        let mut bytes = Vec::new();
        if let Some(start) = self.end64 {
            let mut cursor = whole.at(start);
            let end = DirectoryEnd64::read(&mut cursor).map_err(ZipError::outside)?;
            let (offset, new_start) = (directory, directory + size);
            DirectoryEnd64 {
                size,
                offset,
                ..end
            }
            .write(&mut bytes);
            // Its extension, up to the locator.
            let locator = self.end.saturating_sub(DirectoryLocator::LEN);
            let more = locator.saturating_sub(cursor.position());
            let more = cursor.read(more, "extension of the directory's end");
            bytes.extend_from_slice(more.map_err(ZipError::outside)?);
            let locator = DirectoryLocator::read(&mut whole.at(locator));
            let locator = locator.map_err(ZipError::outside)?;
            DirectoryLocator {
                offset: new_start,
                ..locator
            }
            .write(&mut bytes);
        }
        let mut cursor = whole.at(self.end);
        let end = DirectoryEnd::read(&mut cursor).map_err(ZipError::outside)?;
        let (size, offset) = (small(size, end.size)?, small(directory, end.offset)?);
        DirectoryEnd {
            size,
            offset,
            ..end
        }
        .write(&mut bytes);
        let comment = cursor.read(end.comment_size.into(), "comment");
        bytes.extend_from_slice(comment.map_err(ZipError::outside)?);
        Ok(bytes)
    }
}

impl ZipMember {
    /// Returns the header, name and extra fields for new content.
    fn new_header<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        content: &NewZipContent,
    ) -> Result<Vec<u8>, ZipError> {
        let mut cursor = Cursor::new(data, self.header..self.content.start);
        let mut header = ZipMemberHeader::read(&mut cursor).map_err(ZipError::outside)?;
        let left = self.content.start - cursor.position();
        let names = cursor.read(left, "name and extra fields");
        let mut names = names.map_err(ZipError::outside)?.to_vec();
        let extra = names.get_mut(usize::from(header.name_size)..);
        let extra = extra.expect("the name was read");
        let (size, stored_size) = (content.size, pieces::size(&content.pieces));
        header.flags &= !STREAMED;
        header.crc = content.crc;
        // In a member's header the field has both sizes.
        let words = [size, stored_size];
        match zip64_field(extra).and_then(|range| extra.get_mut(range)) {
            Some(field) if field.len() >= 16 => {
                write_words(field, &words);
                (header.size, header.stored_size) = (u32::MAX, u32::MAX);
            }
            _ => {
                let small =
                    |value| u32::try_from(value).map_err(|_| ZipProblem::Large.at(self.header));
                (header.size, header.stored_size) = (small(size)?, small(stored_size)?);
            }
        }
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        bytes.extend(names);
        Ok(bytes)
    }

    /// Returns the directory's entry for a header at another offset from the start of the file, and new content.
    fn new_entry<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        offset: u64,
        content: Option<&NewZipContent>,
    ) -> Result<Vec<u8>, ZipError> {
        let mut cursor = Cursor::new(data, self.entry.clone());
        let mut entry = DirectoryEntry::read(&mut cursor).map_err(ZipError::outside)?;
        let left = self.entry.end - cursor.position();
        let names = cursor.read(left, "name, extra fields and comment");
        let mut names = names.map_err(ZipError::outside)?.to_vec();
        let mut sizes = (self.size, self.content.end - self.content.start);
        if let Some(content) = content {
            entry.flags &= !STREAMED;
            entry.crc = content.crc;
            sizes = (content.size, pieces::size(&content.pieces));
        }
        // A value that was in the extra field stays there.
        let mut words = Vec::new();
        let mut set = |field: &mut u32, value: u64| {
            if *field == u32::MAX {
                words.push(value);
                return Ok(());
            }
            *field = u32::try_from(value).map_err(|_| ZipProblem::Large.at(self.entry.start))?;
            Ok(())
        };
        set(&mut entry.size, sizes.0)?;
        set(&mut entry.stored_size, sizes.1)?;
        set(&mut entry.offset, offset)?;
        let extra = names.get_mut(usize::from(entry.name_size)..);
        let extra = extra.expect("the name was read");
        if let Some(field) = zip64_field(extra).and_then(|range| extra.get_mut(range)) {
            write_words(field, &words);
        }
        let mut bytes = Vec::new();
        entry.write(&mut bytes);
        bytes.extend(names);
        Ok(bytes)
    }
}

/// Writes words at the start of a field, as many as it has room for.
fn write_words(field: &mut [u8], words: &[u64]) {
    let places = field.chunks_exact_mut(8);
    for (place, word) in places.zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
