//! Zip files, which Python's wheels are: their members, the content of these, and zip files with some of it replaced.
//!
//! | offset | size | field |
//! |-------:|-----:|-------|
//! | `0x00` |   30 | header of the first member: `PK\3\4`, version, flags, method, time, CRC-32, sizes, lengths |
//! |        |      | its name, extra fields, and content, stored or deflated |
//! |        |      | the other members |
//! |        |   46 | entry of the directory: `PK\1\2`, the same fields, attributes, offset of the member's header |
//! |        |      | its name, extra fields, and comment |
//! |        |      | the other entries |
//! |        |   56 | with zip64, the end of the directory in 64 bits: `PK\6\6` |
//! |        |   20 | with zip64, its offset: `PK\6\7` |
//! |        |   22 | end of the directory: `PK\5\6`, number of entries, size, offset; a comment follows |
//!
//! Sizes and offsets that do not fit into 32 bits are `0xffffffff`, and an extra field of the entry, number 1, has them.
//!
//! [`ZipFile::parse`] reads the directory and the member's headers. The directory is what counts, as for other readers.
//! Members that overlap are an error: a small file cannot hold much more than its size without compression.
//!
//! Specification: <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>.

#[cfg(feature = "zlib")]
mod content;
mod error;
mod rewrite;

use std::ops::Range;

use super::bytes::{Cursor, OutOfBounds, ReadAt, record};

#[cfg(feature = "zlib")]
pub use content::{PackedContent, ZipContent, deflate};
pub use error::{ZipError, ZipProblem};
pub use rewrite::NewZipContent;

record! {
    pub(crate) struct ZipMemberHeader, "member header", 30 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u16,
        0x06 flags: u16,
        0x08 method: u16,
        0x0a time: u32,
        0x0e crc: u32,
        0x12 stored_size: u32,
        0x16 size: u32,
        0x1a name_size: u16,
        0x1c extra_size: u16,
    }
}

record! {
    pub(crate) struct DirectoryEntry, "directory entry", 46 bytes {
        0x00 magic: [u8; 4],
        0x04 made_by: u16,
        0x06 version: u16,
        0x08 flags: u16,
        0x0a method: u16,
        0x0c time: u32,
        0x10 crc: u32,
        0x14 stored_size: u32,
        0x18 size: u32,
        0x1c name_size: u16,
        0x1e extra_size: u16,
        0x20 comment_size: u16,
        0x22 disk: u16,
        0x24 internal_attributes: u16,
        0x26 attributes: u32,
        0x2a offset: u32,
    }
}

record! {
    pub(crate) struct DirectoryEnd, "end of the directory", 22 bytes {
        0x00 magic: [u8; 4],
        0x04 disk: u16,
        0x06 first_disk: u16,
        0x08 disk_entries: u16,
        0x0a entries: u16,
        0x0c size: u32,
        0x10 offset: u32,
        0x14 comment_size: u16,
    }
}

record! {
    pub(crate) struct DirectoryEnd64, "end of the directory", 56 bytes {
        0x00 magic: [u8; 4],
        0x04 record_size: u64,
        0x0c made_by: u16,
        0x0e version: u16,
        0x10 disk: u32,
        0x14 first_disk: u32,
        0x18 disk_entries: u64,
        0x20 entries: u64,
        0x28 size: u64,
        0x30 offset: u64,
    }
}

record! {
    pub(crate) struct DirectoryLocator, "zip64 locator", 20 bytes {
        0x00 magic: [u8; 4],
        0x04 disk: u32,
        0x08 offset: u64,
        0x10 disks: u32,
    }
}

const MEMBER: [u8; 4] = *b"PK\x03\x04";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const END64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR: [u8; 4] = *b"PK\x06\x07";

/// Bit of an encrypted member in its flags.
const ENCRYPTED: u16 = 1;
/// Bit of a member whose sizes follow its content, because they were not known before.
const STREAMED: u16 = 8;
/// Number of the extra field with sizes and offset in 64 bits.
const ZIP64: u16 = 1;

/// A zip file in a range of some data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZipFile {
    /// Members in the order of the directory.
    pub members: Vec<ZipMember>,
    /// Range of the file.
    range: Range<u64>,
    /// Range of the directory.
    directory: Range<u64>,
    /// Offset of the zip64 end of the directory.
    end64: Option<u64>,
    /// Offset of the end of the directory.
    end: u64,
}

/// A member of a zip file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZipMember {
    /// Name, a path with slashes; a folder's ends with one.
    pub name: Vec<u8>,
    /// Compression.
    pub method: ZipMethod,
    /// True if the content is encrypted.
    pub is_encrypted: bool,
    /// CRC-32 of the content.
    pub crc: u32,
    /// Size of the content in bytes, unpacked.
    pub size: u64,
    /// Range of the stored content from the start of the data.
    pub content: Range<u64>,
    /// Offset of the header from the start of the data.
    header: u64,
    /// Range of the entry in the directory.
    entry: Range<u64>,
}

/// Compression of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZipMethod {
    /// None.
    Stored,
    /// Deflate.
    Deflated,
    /// Another method, by its number in the file.
    Other(u16),
}

impl From<u16> for ZipMethod {
    fn from(raw: u16) -> Self {
        match raw {
            0 => Self::Stored,
            8 => Self::Deflated,
            raw => Self::Other(raw),
        }
    }
}

impl ZipFile {
    /// Reads the members of the zip file that a range of `data` consists of.
    ///
    /// # Errors
    ///
    /// Fails if the directory is missing or damaged, a member is not inside the range, or members overlap.
    pub fn parse<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Self, ZipError> {
        let cursor = Cursor::new(data, range.clone());
        let range = range.start..cursor.end();
        let end = find_end(data, range.clone())?;
        let mut file = Self {
            members: Vec::new(),
            range: range.clone(),
            directory: range.start..range.start,
            end64: None,
            end,
        };
        file.directory = file.find_directory(&cursor)?;
        let mut entries = cursor.within(file.directory.clone());
        while entries.position() < entries.end() {
            let member = file.member(&cursor, &mut entries)?;
            file.members.push(member);
        }
        file.check_overlaps()?;
        Ok(file)
    }

    /// Finds the directory, whose end was found.
    fn find_directory<'d, R: ReadAt<'d>>(
        &mut self,
        cursor: &Cursor<'d, R>,
    ) -> Result<Range<u64>, ZipError> {
        let here = |problem: ZipProblem| problem.at(self.end);
        let end = DirectoryEnd::read(&mut cursor.at(self.end)).map_err(ZipError::outside)?;
        let (mut size, mut offset) = (u64::from(end.size), u64::from(end.offset));
        let mut is_split = end.disk != end.first_disk;
        if end.size == u32::MAX || end.offset == u32::MAX || end.entries == u16::MAX {
            let locator = self.end.checked_sub(DirectoryLocator::LEN);
            let locator = locator.filter(|start| *start >= self.range.start);
            let locator =
                locator.and_then(|start| DirectoryLocator::read(&mut cursor.at(start)).ok());
            if let Some(locator) = locator.filter(|locator| locator.magic == LOCATOR) {
                let start = self.range.start.saturating_add(locator.offset);
                let large =
                    DirectoryEnd64::read(&mut cursor.at(start)).map_err(ZipError::outside)?;
                if large.magic != END64 {
                    return Err(ZipProblem::Magic {
                        what: "zip64 end of the directory",
                    }
                    .at(start));
                }
                (size, offset) = (large.size, large.offset);
                is_split = large.disk != large.first_disk;
                self.end64 = Some(start);
            }
        }
        if is_split {
            return Err(here(ZipProblem::Split));
        }
        let start = self.range.start.saturating_add(offset);
        let last = self.end64.unwrap_or(self.end);
        OutOfBounds::check("directory", start, size, last).map_err(ZipError::outside)
    }

    /// Reads an entry of the directory, and the header of its member.
    fn member<'d, R: ReadAt<'d>>(
        &self,
        whole: &Cursor<'d, R>,
        entries: &mut Cursor<'d, R>,
    ) -> Result<ZipMember, ZipError> {
        let start = entries.position();
        let entry = DirectoryEntry::read(entries).map_err(ZipError::outside)?;
        if entry.magic != ENTRY {
            return Err(ZipProblem::Magic {
                what: "directory entry",
            }
            .at(start));
        }
        let mut part = |size: u16, what| entries.read(size.into(), what).map_err(ZipError::outside);
        let name = part(entry.name_size, "name")?;
        let extra = part(entry.extra_size, "extra fields")?;
        part(entry.comment_size, "comment")?;
        let large = LargeFields::of_entry(&entry, extra);
        let header_offset = self.range.start.saturating_add(large.offset);
        let mut cursor = whole.at(header_offset);
        let header = ZipMemberHeader::read(&mut cursor).map_err(ZipError::outside)?;
        if header.magic != MEMBER {
            return Err(ZipProblem::Magic {
                what: "member header",
            }
            .at(header_offset));
        }
        let names = u64::from(header.name_size) + u64::from(header.extra_size);
        cursor
            .read(names, "name and extra fields")
            .map_err(ZipError::outside)?;
        // Content after the directory would not be found by the order of members.
        let content = OutOfBounds::check(
            "content",
            cursor.position(),
            large.stored_size,
            self.directory.start,
        );
        let member = ZipMember {
            name: name.to_vec(),
            method: entry.method.into(),
            is_encrypted: entry.flags & ENCRYPTED != 0,
            crc: entry.crc,
            size: large.size,
            content: content.map_err(ZipError::outside)?,
            header: header_offset,
            entry: start..entries.position(),
        };
        match member.method {
            ZipMethod::Stored if member.size != large.stored_size && !member.is_encrypted => {
                Err(ZipProblem::StoredSize {
                    size: member.size,
                    stored_size: large.stored_size,
                }
                .at(start))
            }
            _ => Ok(member),
        }
    }

    /// Returns the indices of members in the order of their headers.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|index| self.members.get(*index).map(|member| member.header));
        order
    }

    fn check_overlaps(&self) -> Result<(), ZipError> {
        let mut end = self.range.start;
        for index in self.order() {
            let member = self
                .members
                .get(index)
                .expect("the order has indices of members");
            if member.header < end {
                return Err(ZipProblem::Overlap.at(member.header));
            }
            end = member.content.end;
        }
        Ok(())
    }
}

/// Sizes and offset of a member, in 64 bits.
struct LargeFields {
    size: u64,
    stored_size: u64,
    offset: u64,
}

impl LargeFields {
    fn of_entry(entry: &DirectoryEntry, extra: &[u8]) -> Self {
        let mut fields = large_fields(extra);
        // The extra field has those that do not fit, in this order.
        let mut large = |small: u32| match small {
            u32::MAX => fields.next().unwrap_or(small.into()),
            small => small.into(),
        };
        Self {
            size: large(entry.size),
            stored_size: large(entry.stored_size),
            offset: large(entry.offset),
        }
    }
}

/// Returns the place of the content of the zip64 field in extra fields.
fn zip64_field(extra: &[u8]) -> Option<Range<usize>> {
    let mut start = 0_usize;
    loop {
        let head = extra.get(start..start.checked_add(4)?)?;
        let number = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let content = start + 4;
        let end = content.checked_add(number(2)?.into())?;
        if number(0)? == ZIP64 {
            return extra.get(content..end).map(|_| content..end);
        }
        start = end;
    }
}

fn large_fields(extra: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let field = zip64_field(extra).and_then(|range| extra.get(range));
    let words = field.unwrap_or_default().chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("a chunk has 8 bytes")))
}

/// Finds the end of the directory: its comment ends where the file ends.
fn find_end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<u64, ZipError> {
    let largest = DirectoryEnd::LEN + u64::from(u16::MAX);
    let size = range.end.saturating_sub(range.start);
    let start = range.end - size.min(largest);
    let missing = || ZipProblem::NoDirectory.at(range.end);
    let tail = data.read_at(start, range.end - start).ok_or_else(missing)?;
    let length = DirectoryEnd::LEN as usize;
    for place in (0..(tail.len() + 1).saturating_sub(length)).rev() {
        let Some(record) = tail.get(place..place + length) else {
            continue;
        };
        if !record.starts_with(&END) {
            continue;
        }
        let end = DirectoryEnd::read(&mut Cursor::new(record, 0..DirectoryEnd::LEN));
        if end.is_ok_and(|end| place + length + usize::from(end.comment_size) == tail.len()) {
            return Ok(start + place as u64);
        }
    }
    Err(missing())
}

#[cfg(test)]
mod tests;
