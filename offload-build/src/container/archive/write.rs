//! Archives, written: the form of GNU, as `ar rcsD` and `llvm-ar rcsD` write it.

use super::{Header, TERMINATOR, padding};
use crate::format::magic::Magic;

/// A member to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMember<'a> {
    /// Its name, without folders.
    pub name: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
    /// What it defines for others, for the index.
    pub symbols: &'a [&'a str],
}

/// An archive of `members`, in this order, with an index of their symbols.
///
/// Dates and owners are zero, so that the same members give the same bytes.
#[must_use]
pub fn write(members: &[NewMember<'_>]) -> Vec<u8> {
    write_with(members, u64::from(u32::MAX))
}

/// With 64 bits for each offset in the index when a member lies at `threshold` or later.
pub(super) fn write_with(members: &[NewMember<'_>], threshold: u64) -> Vec<u8> {
    let (names, long_names) = names(members);
    let symbols: usize = members.iter().map(|member| member.symbols.len()).sum();
    // GNU ld refuses an archive of objects without an index, were it empty.
    let is_object =
        |member: &NewMember<'_>| matches!(Magic::of(member.bytes), Magic::Elf | Magic::Bitcode);
    let indexed = symbols > 0 || members.iter().any(is_object);
    let strings: usize = members
        .iter()
        .flat_map(|member| member.symbols)
        .map(|name| name.len() + 1)
        .sum();
    let index_size = |width: u64| {
        let size = width + width * symbols as u64 + strings as u64;
        size + padding(size)
    };
    // Where the first member is, when the index takes `width` bytes for a number.
    let first = |width: u64| {
        let index = if !indexed {
            0
        } else {
            Header::LEN + index_size(width)
        };
        let long = if long_names.is_empty() {
            0
        } else {
            Header::LEN + long_names.len() as u64
        };
        8 + index + long
    };
    let offsets = |width: u64| {
        members.iter().scan(first(width), |next, member| {
            let offset = *next;
            let size = member.bytes.len() as u64;
            *next += Header::LEN + size + padding(size);
            Some(offset)
        })
    };
    let width = if offsets(4).last().unwrap_or(0) >= threshold {
        8
    } else {
        4
    };

    let mut out = b"!<arch>\n".to_vec();
    if indexed {
        let number = |out: &mut Vec<u8>, value: u64| match width {
            8 => out.extend_from_slice(&value.to_be_bytes()),
            _ => out.extend_from_slice(&(value as u32).to_be_bytes()),
        };
        header(
            &mut out,
            if width == 8 { "/SYM64/" } else { "/" },
            Some("0"),
            index_size(width),
        );
        let end = out.len() as u64 + index_size(width);
        number(&mut out, symbols as u64);
        for (member, offset) in members.iter().zip(offsets(width)) {
            member.symbols.iter().for_each(|_| number(&mut out, offset));
        }
        for name in members.iter().flat_map(|member| member.symbols) {
            out.extend_from_slice(name.as_bytes());
            out.push(0);
        }
        out.extend((out.len() as u64..end).map(|_| 0));
    }
    if !long_names.is_empty() {
        header(&mut out, "//", None, long_names.len() as u64);
        out.extend_from_slice(&long_names);
    }
    for (member, name) in members.iter().zip(names) {
        let size = member.bytes.len() as u64;
        header(&mut out, &name, Some("644"), size);
        out.extend_from_slice(member.bytes);
        out.extend((0..padding(size)).map(|_| b'\n'));
    }
    out
}

/// The name fields, and the long names.
fn names(members: &[NewMember<'_>]) -> (Vec<String>, Vec<u8>) {
    let mut long_names = Vec::new();
    let names = members.iter().map(|member| {
        if member.name.len() < 16 {
            return format!("{}/", member.name);
        }
        let offset = long_names.len();
        long_names.extend_from_slice(member.name.as_bytes());
        long_names.extend_from_slice(b"/\n");
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
    Header {
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

/// Filled up with spaces.
fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    field
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(place, byte)| *place = byte);
    field
}
