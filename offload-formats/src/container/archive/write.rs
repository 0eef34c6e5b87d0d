//! Writes archives in GNU's form, as `ar rcsD` and LLVM 22's `ArchiveWriter.cpp` do.

use std::collections::BTreeMap;
use std::fmt;

use super::member::{MemberHeader, TERMINATOR, padding};
use crate::format::magic::Magic;
use crate::format::pieces::{self, Piece};

/// A member to write, whose content is in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlan<'a> {
    /// Name, without directories and line feeds.
    pub name: &'a str,
    /// Content; the caller numbers the inputs.
    pub content: &'a [Piece],
    /// Symbols that the member defines for others, for the index.
    pub symbols: &'a [&'a [u8]],
}

/// Derives a safe member name from a path or from a member name of another archive: the last
/// part of `name`. Control characters and backslashes become underscores.
#[must_use]
pub fn plain_name(name: &str) -> String {
    let file = name.rsplit_once('/').map_or(name, |(_, file)| file);
    match file {
        "" | "." | ".." => "_".to_owned(),
        file => file.replace(|char: char| char == '\\' || char.is_control(), "_"),
    }
}

/// Condition for writing a symbol index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Only if a member defines a symbol.
    OfSymbols,
    /// Always, even if empty: GNU ld rejects an archive of objects without an index.
    Always,
}

impl Index {
    /// Returns what LLVM writes for members that begin with these magics: an index if one of them is an ELF or COFF object, or bitcode.
    pub fn of(mut members: impl Iterator<Item = Magic>) -> Self {
        // Objects of other formats, whose symbols are not read, need no index that says they have none.
        let is_object = |magic| matches!(magic, Magic::Elf | Magic::Bitcode | Magic::Coff);
        match members.any(is_object) {
            true => Self::Always,
            false => Self::OfSymbols,
        }
    }
}

/// Returns an archive of `members`, in this order, whose contents are copied from their inputs.
///
/// Dates and owners are zero, so the same members give the same bytes.
///
/// # Errors
///
/// Fails if a member is too large for an archive.
pub fn layout(members: &[MemberPlan<'_>], index: Index) -> Result<Vec<Piece>, ArchiveWriteError> {
    /// Largest size of a member in bytes: its field has ten decimal digits.
    const LARGEST: u64 = 9_999_999_999;
    match members.iter().position(|member| size(member) > LARGEST) {
        Some(index) => Err(ArchiveWriteError { index }),
        None => Ok(layout_with(members, index, THRESHOLD)),
    }
}

/// Member offset from which the index needs 64-bit offsets.
const THRESHOLD: u64 = u32::MAX as u64;

/// Lays out an archive. The index has 64-bit offsets if a member starts at `threshold` or later.
pub(super) fn layout_with(members: &[MemberPlan<'_>], index: Index, threshold: u64) -> Vec<Piece> {
    let (names, long_names) = names(members);
    let symbols = members.iter().flat_map(|member| member.symbols);
    let indexed = index == Index::Always || symbols.clone().next().is_some();
    let strings: u64 = symbols.map(|name| name.len() as u64 + 1).sum();
    let symbols: usize = members.iter().map(|member| member.symbols.len()).sum();
    let index_size = |width: u64| {
        // LLVM pads an empty index to four bytes more.
        let strings = if symbols == 0 { 3 } else { strings };
        let size = width + width * symbols as u64 + strings;
        size + padding(size)
    };
    // Offset of the first member, if the index takes `width` bytes for a number.
    let first = |width: u64| {
        let index = if indexed {
            MemberHeader::LEN + index_size(width)
        } else {
            0
        };
        let long = if long_names.is_empty() {
            0
        } else {
            MemberHeader::LEN + long_names.len() as u64
        };
        8 + index + long
    };
    let offsets = |width: u64| {
        members.iter().scan(first(width), |next, member| {
            let (offset, size) = (*next, size(member));
            *next = next.saturating_add(MemberHeader::LEN + size + padding(size));
            Some(offset)
        })
    };
    let wide = offsets(4).last().unwrap_or(0) >= threshold;
    let width = if wide { 8 } else { 4 };

    let mut start = b"!<arch>\n".to_vec();
    if indexed {
        let number = |out: &mut Vec<u8>, value: u64| match width {
            8 => out.extend_from_slice(&value.to_be_bytes()),
            _ => out.extend_from_slice(&(value as u32).to_be_bytes()),
        };
        let name = if wide { "/SYM64/" } else { "/" };
        header(&mut start, name, Some("0"), index_size(width));
        let end = start.len() as u64 + index_size(width);
        number(&mut start, symbols as u64);
        for (member, offset) in members.iter().zip(offsets(width)) {
            let symbols = member.symbols.iter();
            symbols.for_each(|_| number(&mut start, offset));
        }
        for name in members.iter().flat_map(|member| member.symbols) {
            start.extend_from_slice(name);
            start.push(0);
        }
        start.extend((start.len() as u64..end).map(|_| 0));
    }
    if !long_names.is_empty() {
        header(&mut start, "//", None, long_names.len() as u64);
        start.extend_from_slice(&long_names);
    }
    let mut pieces = Vec::new();
    for (member, name) in members.iter().zip(names) {
        header(&mut start, &name, Some("644"), size(member));
        pieces.push(Piece::Bytes(std::mem::take(&mut start)));
        pieces.extend_from_slice(member.content);
        start.extend((0..padding(size(member))).map(|_| b'\n'));
    }
    pieces.push(Piece::Bytes(start));
    pieces
}

fn size(member: &MemberPlan<'_>) -> u64 {
    pieces::size(member.content)
}

/// Returns the name fields and the content of `//`, which has each long name once.
fn names(members: &[MemberPlan<'_>]) -> (Vec<String>, Vec<u8>) {
    let (mut long_names, mut places) = (Vec::new(), BTreeMap::new());
    let names = members.iter().map(|member| {
        if member.name.len() < 16 {
            return format!("{}/", member.name);
        }
        let name = member.name.as_bytes();
        let offset = places.entry(name).or_insert_with(|| {
            let offset = long_names.len();
            long_names.extend_from_slice(name);
            long_names.extend_from_slice(b"/\n");
            offset
        });
        format!("/{offset}")
    });
    let names = names.collect();
    if padding(long_names.len() as u64) > 0 {
        long_names.push(b'\n');
    }
    (names, long_names)
}

fn header(out: &mut Vec<u8>, name: &str, mode: Option<&str>, size: u64) {
    let zero = mode.map_or("", |_| "0");
    MemberHeader {
        name: field(name),
        date: field(zero),
        owner: field(zero),
        group: field(zero),
        mode: field(mode.unwrap_or_default()),
        size: field(&size.to_string()),
        terminator: TERMINATOR,
    }
    .write(out);
}

/// Pads `text` with spaces.
fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    field
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(place, byte)| *place = byte);
    field
}

/// A member to write, whose content is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMember<'a> {
    /// Name, without directories and line feeds.
    pub name: &'a str,
    /// Content.
    pub bytes: &'a [u8],
    /// Symbols that the member defines for others, for the index.
    pub symbols: &'a [&'a str],
}

/// Returns an archive of `members`, in this order. It has an index if a member is an object.
///
/// Dates and owners are zero, so the same members give the same bytes.
#[must_use]
pub fn write(members: &[NewMember<'_>]) -> Vec<u8> {
    write_with(members, THRESHOLD)
}

pub(super) fn write_with(members: &[NewMember<'_>], threshold: u64) -> Vec<u8> {
    let index = Index::of(members.iter().map(|member| Magic::of(member.bytes)));
    let symbols = members.iter().map(|member| {
        let symbols = member.symbols.iter();
        symbols.map(|name| name.as_bytes()).collect()
    });
    let symbols: Vec<Vec<&[u8]>> = symbols.collect();
    let contents = members.iter().enumerate().map(|(input, member)| {
        let range = 0..member.bytes.len() as u64;
        [Piece::Copy { input, range }]
    });
    let contents: Vec<[Piece; 1]> = contents.collect();
    let plans = members.iter().zip(&contents).zip(&symbols);
    let plans = plans.map(|((member, content), symbols)| MemberPlan {
        name: member.name,
        content,
        symbols,
    });
    let pieces = layout_with(&plans.collect::<Vec<_>>(), index, threshold);
    let inputs: Vec<&[u8]> = members.iter().map(|member| member.bytes).collect();
    pieces::to_bytes(&pieces, &inputs).expect("each content is all of its input")
}

/// A member that is too large for an archive: its size has more than ten digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveWriteError {
    /// Index of the member.
    pub index: usize,
}

impl fmt::Display for ArchiveWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {} is too large for an archive", self.index)
    }
}

impl std::error::Error for ArchiveWriteError {}
