//! The big archive of AIX: members in a chain.
//!
//! | offset | size | field                                                      |
//! |-------:|-----:|------------------------------------------------------------|
//! | `0x00` |    8 | magic, `<bigaf>\n`                                         |
//! | `0x08` |   60 | offsets of the table of members and the indices; not read  |
//! | `0x44` |   40 | offsets of the first and the last member                   |
//! | `0x6c` |   20 | offset of free space; not read                             |
//! |        |      | then each member, anywhere:                                |
//! |   `+0` |   20 | size of the content                                        |
//! |  `+20` |   40 | offsets of the next and the previous member                |
//! |  `+60` |   48 | date, owner, group, mode; not read                         |
//! | `+108` |    4 | length of the name, which follows, then a NUL if it is odd |
//! |        |    2 | a grave accent and a line feed, then the content           |
//!
//! Numbers are decimal, padded with spaces. Offsets are from the start of the archive.
//!
//! Specification: <https://www.ibm.com/docs/en/aix/7.3.0?topic=formats-ar-file-format-big>.

use std::collections::BTreeSet;
use std::ops::Range;

use super::error::ArchiveError;
use super::member::{ArchiveMember, TERMINATOR, decimal, padding};
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt, record};

record! {
    pub(crate) struct FileHeader, "big archive header", 128 bytes {
        0x00 magic: [u8; 8],
        0x08 table: [u8; 20],
        0x1c index: [u8; 20],
        0x30 index64: [u8; 20],
        0x44 first: [u8; 20],
        0x58 last: [u8; 20],
        0x6c free: [u8; 20],
    }
}

record! {
    pub(crate) struct BigMemberHeader, "member header", 112 bytes {
        0x00 size: [u8; 20],
        0x14 next: [u8; 20],
        0x28 previous: [u8; 20],
        0x3c date: [u8; 12],
        0x48 owner: [u8; 12],
        0x54 group: [u8; 12],
        0x60 mode: [u8; 12],
        0x6c name_len: [u8; 4],
    }
}

/// Lists the members of the archive that a range consists of.
pub(super) fn members<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<ArchiveMember<'d>>, ArchiveError> {
    let cursor = Cursor::new(data, range.clone());
    let header = FileHeader::read(&mut cursor.clone()).map_err(ArchiveError::Outside)?;
    let place = |field: &[u8; 20], offset: u64| {
        let number = decimal(field).ok_or(ArchiveError::Place {
            offset,
            field: *field,
        })?;
        Ok(range.start.saturating_add(number))
    };
    let (first, last) = (
        place(&header.first, range.start)?,
        place(&header.last, range.start)?,
    );
    // Without members both are 0.
    if first == range.start {
        return Ok(Vec::new());
    }
    let (mut offset, mut seen, mut members) = (first, BTreeSet::new(), Vec::new());
    loop {
        if !seen.insert(offset) {
            return Err(ArchiveError::Chain { offset });
        }
        let (member, next) = member(&mut cursor.at(offset))?;
        members.push(member);
        if offset == last {
            return Ok(members);
        }
        offset = place(&next, offset)?;
    }
}

/// Reads a member; also returns the field with the offset of the next one.
fn member<'d, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
) -> Result<(ArchiveMember<'d>, [u8; 20]), ArchiveError> {
    let offset = cursor.position();
    let header = BigMemberHeader::read(cursor).map_err(ArchiveError::Outside)?;
    let size = decimal(&header.size).ok_or(ArchiveError::Place {
        offset,
        field: header.size,
    })?;
    let name_len = decimal(&header.name_len).ok_or(ArchiveError::LongName { offset })?;
    let content = |problem| ArchiveError::Content { offset, problem };
    let name = cursor.read(name_len, "name").map_err(content)?;
    cursor.read(padding(name_len), "name").map_err(content)?;
    let found = cursor.read(2, "end of the header").map_err(content)?;
    if found != TERMINATOR {
        let found = found.try_into().expect("two bytes were read");
        return Err(ArchiveError::Terminator { offset, found });
    }
    let range = OutOfBounds::check("content", cursor.position(), size, cursor.end());
    let member = ArchiveMember {
        name,
        header_offset: offset,
        size,
        content: Some(range.map_err(content)?),
    };
    Ok((member, header.next))
}
