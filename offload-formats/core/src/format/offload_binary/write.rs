//! Writes offload binaries as pieces, which refer to the images.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::OffloadBinaryWriteError;
use super::layout::{
    BinaryHeader, EntryRecord, HeaderEnd, MAGIC, OffloadBinaryVersion, SizedStringRecord,
    StringRecord,
};
use crate::format::bytes::Alignment;
use crate::format::pieces::{self, Piece};
use crate::format::string_table::StringTableBuilder;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

/// An image to be packed, without its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewBinaryEntry<'a> {
    /// Kind of the image.
    pub image_kind: ImageKind,
    /// Runtime that manages the image.
    pub offload_kind: OffloadKind,
    /// [`BinaryEntry::METADATA`](super::BinaryEntry::METADATA) if there is no image. LLVM 22 always
    /// writes 0.
    pub flags: u32,
    /// Keys with values, in the order of writing. A repeated key keeps its first position and its
    /// last value.
    pub strings: &'a [(&'a [u8], &'a [u8])],
    /// Size of the image in bytes.
    pub image_size: u64,
}

/// Lays out offload binaries with these entries: in version 1 one for each entry, otherwise one for
/// all. Input *k* of the pieces is the image of entry *k*. Kinds have the numbers of `release`.
///
/// ```
/// # use offload_formats_core as offload_formats;
/// use offload_formats::format::offload_binary::{NewBinaryEntry, OffloadBinary, OffloadBinaryVersion, layout};
/// use offload_formats::format::pieces;
/// use offload_formats::names::{ImageKind, LlvmRelease};
///
/// let entry = NewBinaryEntry {
///     image_kind: ImageKind::OBJECT,
///     strings: &[(b"arch", b"gfx90a")],
///     image_size: 5,
///     ..NewBinaryEntry::default()
/// };
/// let pieces = layout(&[entry, entry], OffloadBinaryVersion::V2, LlvmRelease::V23)?;
/// let bytes = pieces::to_bytes(&pieces, &[b"first", b"other"]).unwrap_or_default();
/// let binary = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64)?;
/// assert_eq!(binary.entries[1].arch(), "gfx90a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails if there is no entry; version 1 then returns no pieces instead. Fails if a key contains a NUL, or in
/// version 1 a value does. Fails if the result is too large for a file.
pub fn layout(
    entries: &[NewBinaryEntry<'_>],
    version: OffloadBinaryVersion,
    release: LlvmRelease,
) -> Result<Vec<Piece>, OffloadBinaryWriteError> {
    let mut pieces = Vec::new();
    match version {
        OffloadBinaryVersion::V1 => {
            let mut end = 0_u64;
            for (index, entry) in entries.iter().enumerate() {
                let size = one(index, &[*entry], version, release, &mut pieces)?;
                end = end
                    .checked_add(size)
                    .ok_or(OffloadBinaryWriteError::TooLarge {
                        entry: index,
                        image_size: entry.image_size,
                    })?;
            }
        }
        _ if entries.is_empty() => return Err(OffloadBinaryWriteError::NoEntries),
        OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => {
            one(0, entries, version, release, &mut pieces)?;
        }
    }
    Ok(pieces)
}

type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Returns the header of an offload binary of `size` bytes. The entries come after it.
fn header(version: OffloadBinaryVersion, size: u64, entry_count: usize) -> Vec<u8> {
    let mut head = Vec::new();
    BinaryHeader {
        magic: MAGIC,
        version: version.raw(),
        size,
        entries_offset: version.header_size(),
        entries: match version {
            OffloadBinaryVersion::V1 => EntryRecord::LEN,
            OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => entry_count as u64,
        },
    }
    .write(&mut head);
    if version == OffloadBinaryVersion::V3 {
        HeaderEnd { inflated_size: 0 }.write(&mut head);
    }
    head
}

/// Appends the records of an entry's strings; `at` returns the offset of a string.
fn write_pairs(
    pairs: &Pairs<'_>,
    version: OffloadBinaryVersion,
    at: impl Fn(&[u8]) -> u64,
    records: &mut Vec<u8>,
) {
    for (key, value) in pairs {
        let (key_offset, value_offset) = (at(key), at(value));
        match version {
            OffloadBinaryVersion::V1 => StringRecord {
                key_offset,
                value_offset,
            }
            .write(records),
            OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => SizedStringRecord {
                key_offset,
                value_offset,
                value_size: value.len() as u64,
            }
            .write(records),
        }
    }
}

/// Appends one offload binary, and returns its size. Its first entry is entry `first` of all.
fn one(
    first: usize,
    entries: &[NewBinaryEntry<'_>],
    version: OffloadBinaryVersion,
    release: LlvmRelease,
    pieces: &mut Vec<Piece>,
) -> Result<u64, OffloadBinaryWriteError> {
    let pairs = entries.iter().enumerate();
    let pairs = pairs.map(|(index, entry)| distinct(first + index, entry.strings, version));
    let pairs = pairs.collect::<Result<Vec<Pairs<'_>>, _>>()?;
    let mut strings = StringTableBuilder::default();
    for (key, value) in pairs.iter().flatten() {
        strings.add(key);
        strings.add(value);
    }
    let table = strings.layout(b"\0");

    // Strings are in memory, so their sizes cannot overflow; the sizes of images can.
    let entries_offset = version.header_size();
    let strings_start = entries_offset + EntryRecord::LEN * entries.len() as u64;
    let pair_count: usize = pairs.iter().map(Vec::len).sum();
    let table_offset = strings_start + version.string_entry_size() * pair_count as u64;
    let past_table = table_offset + table.bytes.len() as u64;
    let images_offset = past_table + Alignment::EIGHT.padding(past_table);

    let (mut records, mut string_records) = (Vec::new(), Vec::new());
    let (mut strings_offset, mut image_offset) = (strings_start, images_offset);
    let at = |string: &[u8]| {
        let offset = table.offset(string);
        table_offset + offset.expect("the table contains every string")
    };
    for (index, (entry, pairs)) in entries.iter().zip(&pairs).enumerate() {
        let image_size = entry.image_size;
        EntryRecord {
            image_kind: entry.image_kind.raw(),
            offload_kind: entry.offload_kind.raw(release),
            flags: entry.flags,
            strings_offset,
            string_count: pairs.len() as u64,
            image_offset,
            image_size,
        }
        .write(&mut records);
        write_pairs(pairs, version, at, &mut string_records);
        strings_offset += version.string_entry_size() * pairs.len() as u64;
        let end = image_offset.checked_add(image_size);
        // Leaves room for the padding at the end.
        let end = end.filter(|end| Alignment::EIGHT.align(*end).is_some());
        image_offset = end.ok_or(OffloadBinaryWriteError::TooLarge {
            entry: first + index,
            image_size,
        })?;
    }

    let padding = Alignment::EIGHT.padding(image_offset);
    let size = image_offset + padding;
    let mut head = header(version, size, entries.len());
    head.extend([&records[..], &string_records, &table.bytes].concat());
    head.extend((past_table..images_offset).map(|_| 0));
    pieces.push(Piece::Bytes(head));
    let images = entries.iter().enumerate();
    pieces.extend(images.map(|(index, entry)| Piece::Copy {
        input: first + index,
        range: 0..entry.image_size,
    }));
    if padding > 0 {
        pieces.push(Piece::Zeros(padding));
    }
    Ok(size)
}

/// Returns the pairs to be written: each key once.
fn distinct<'a>(
    entry: usize,
    strings: &[(&'a [u8], &'a [u8])],
    version: OffloadBinaryVersion,
) -> Result<Pairs<'a>, OffloadBinaryWriteError> {
    // Index of each key in `pairs`.
    let mut places = BTreeMap::new();
    let mut pairs: Pairs<'a> = Vec::new();
    for (key, value) in strings {
        let terminated: &[&[u8]] = match version {
            OffloadBinaryVersion::V1 => &[key, value],
            OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => &[key],
        };
        if let Some(text) = terminated.iter().find(|text| text.contains(&0)) {
            let text = text.to_vec();
            return Err(OffloadBinaryWriteError::Nul { entry, text });
        }
        let place = *places.entry(*key).or_insert(pairs.len());
        match pairs.get_mut(place) {
            Some((_, known)) => *known = value,
            None => pairs.push((key, value)),
        }
    }
    Ok(pairs)
}

/// An image in memory, to be packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinaryImage<'a> {
    /// Kind of the image.
    pub image_kind: ImageKind,
    /// Runtime that manages the image.
    pub offload_kind: OffloadKind,
    /// Flags; LLVM 22 always writes 0.
    pub flags: u32,
    /// Keys with values, as in [`NewBinaryEntry`].
    pub strings: &'a [(&'a str, &'a str)],
    /// The bytes of the image.
    pub image: &'a [u8],
}

impl BinaryImage<'_> {
    /// Writes an offload binary of version 1, which all releases read. Kinds have the numbers of
    /// `release`.
    ///
    /// # Errors
    ///
    /// Fails if a key or value contains a NUL.
    pub fn to_bytes(&self, release: LlvmRelease) -> Result<Vec<u8>, OffloadBinaryWriteError> {
        let (pieces, _) = self.to_pieces(self.image.len() as u64, release)?;
        let bytes = pieces::to_bytes(&pieces, &[self.image]);
        Ok(bytes.expect("the pieces copy the whole image"))
    }

    /// Returns the same offload binary in pieces, and the range of the image in it, for an image of `image_size` bytes:
    /// input 0 of the pieces. Ignores [`Self::image`].
    ///
    /// # Errors
    ///
    /// Fails if a key or value contains a NUL, or the size is too large for a file.
    pub fn to_pieces(
        &self,
        image_size: u64,
        release: LlvmRelease,
    ) -> Result<(Vec<Piece>, Range<u64>), OffloadBinaryWriteError> {
        let strings = self.strings.iter();
        let strings: Pairs<'_> = strings
            .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
            .collect();
        let entry = NewBinaryEntry {
            image_kind: self.image_kind,
            offload_kind: self.offload_kind,
            flags: self.flags,
            strings: &strings,
            image_size,
        };
        let pieces = layout(&[entry], OffloadBinaryVersion::V1, release)?;
        let before = pieces
            .iter()
            .take_while(|piece| matches!(piece, Piece::Bytes(_)));
        let start: u64 = before.map(Piece::size).sum();
        Ok((pieces, start..start + image_size))
    }
}

#[cfg(test)]
mod tests;
