//! Members of archives: the record of their headers, and the numbers in it.

use std::ops::Range;

use crate::format::bytes::{Alignment, record};

record! {
    struct MemberHeader, "member header", 60 bytes {
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
pub struct ArchiveMember<'d> {
    /// Its name; in a thin archive a path that starts in the folder of the archive.
    pub name: &'d [u8],
    /// From the start of the file that the archive is in; the index refers to it.
    pub header_offset: u64,
    /// Of the content, in bytes.
    pub size: u64,
    /// From the start of the file that the archive is in; in a thin archive the file of that name
    /// has it.
    pub content: Option<Range<u64>>,
}

/// A number filled up with spaces.
pub(super) fn decimal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field.trim_ascii_end()).ok()?;
    // `parse` would take a sign.
    text.starts_with(|char: char| char.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// The padding after a member that ends at `offset`.
pub(super) fn padding(offset: u64) -> u64 {
    Alignment::new(2).map_or(0, |two| two.padding(offset))
}
