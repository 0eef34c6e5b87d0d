//! Members of archives: the record of their headers, and its numbers.

use std::ops::Range;

use crate::format::bytes::record;

record! {
    pub(crate) struct MemberHeader, "member header", 60 bytes {
        0x00 name: [u8; 16],
        0x10 date: [u8; 12],
        0x1c owner: [u8; 6],
        0x22 group: [u8; 6],
        0x28 mode: [u8; 8],
        0x30 size: [u8; 10],
        0x3a terminator: [u8; 2],
    }
}

pub(super) const TERMINATOR: [u8; 2] = *b"`\n";

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveMember<'d> {
    /// Name; in a thin archive a path relative to the archive's folder.
    pub name: &'d [u8],
    /// Offset of the header from the start of the file that contains the archive; the index refers to it.
    pub header_offset: u64,
    /// Size of the content in bytes.
    pub size: u64,
    /// Range of the content from the start of the file that contains the archive; `None` in a thin
    /// archive, where the named file is the content.
    pub content: Option<Range<u64>>,
}

/// Reads a decimal number padded with spaces.
pub(super) fn decimal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field.trim_ascii_end()).ok()?;
    // `parse` would accept a sign.
    text.starts_with(|char: char| char.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Returns the padding after a member that ends at `offset`.
pub(super) fn padding(offset: u64) -> u64 {
    offset % 2
}
