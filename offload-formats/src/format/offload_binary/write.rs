//! Offload binaries written, as pieces: the images stay where they are.

use std::collections::BTreeMap;

use super::error::OffloadBinaryWriteError;
use super::layout::{
    BinaryHeader, EntryRecord, HeaderEnd, MAGIC, OffloadBinaryVersion, SizedStringRecord,
    StringRecord,
};
use crate::format::bytes::Alignment;
use crate::format::pieces::Piece;
use crate::format::string_table::StringTableBuilder;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

/// An image to be packed, which is somewhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewBinaryEntry<'a> {
    /// What the image is said to be.
    pub image_kind: ImageKind,
    /// Who manages the image.
    pub offload_kind: OffloadKind,
    /// [`BinaryEntry::METADATA`](super::BinaryEntry::METADATA) when there is no image; 0 in all
    /// that LLVM 22 writes.
    pub flags: u32,
    /// Keys with values, written in this order. A key given twice keeps its first place and its
    /// last value.
    pub strings: &'a [(&'a [u8], &'a [u8])],
    /// In bytes.
    pub image_size: u64,
}

/// The bytes of offload binaries with these entries: in version 1 one for each of them, otherwise
/// one for all. Input *k* of the pieces is the image of entry *k*. Kinds get the numbers of
/// `release`.
///
/// ```
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
/// When there is no entry, but in version 1, which has no bytes then; when a key, or in version 1
/// a value, contains a NUL; when all is too large for any file.
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

/// Adds one offload binary, and gives its size. Its first entry is entry `first` of all.
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

    // What is in memory is far from the end of a u64; the sizes of images may be anything.
    let entries_offset = version.header_size();
    let strings_start = entries_offset + EntryRecord::LEN * entries.len() as u64;
    let pair_count: usize = pairs.iter().map(Vec::len).sum();
    let table_offset = strings_start + version.string_entry_size() * pair_count as u64;
    let past_table = table_offset + table.bytes.len() as u64;
    let images_offset = past_table + Alignment::EIGHT.padding(past_table);

    let (mut records, mut string_records) = (Vec::new(), Vec::new());
    let (mut strings_offset, mut image_offset) = (strings_start, images_offset);
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
        for (key, value) in pairs {
            // Each is in the table.
            let at = |string: &[u8]| table_offset + table.offset(string).unwrap_or(0);
            let (key_offset, value_offset) = (at(key), at(value));
            match version {
                OffloadBinaryVersion::V1 => StringRecord {
                    key_offset,
                    value_offset,
                }
                .write(&mut string_records),
                OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => SizedStringRecord {
                    key_offset,
                    value_offset,
                    value_size: value.len() as u64,
                }
                .write(&mut string_records),
            }
        }
        strings_offset += version.string_entry_size() * pairs.len() as u64;
        let end = image_offset.checked_add(image_size);
        // With room for the padding at the end.
        let end = end.filter(|end| Alignment::EIGHT.align(*end).is_some());
        image_offset = end.ok_or(OffloadBinaryWriteError::TooLarge {
            entry: first + index,
            image_size,
        })?;
    }

    let padding = Alignment::EIGHT.padding(image_offset);
    let size = image_offset + padding;
    let mut head = Vec::new();
    BinaryHeader {
        magic: MAGIC,
        version: version.raw(),
        size,
        entries_offset,
        entries: match version {
            OffloadBinaryVersion::V1 => EntryRecord::LEN,
            OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => entries.len() as u64,
        },
    }
    .write(&mut head);
    if version == OffloadBinaryVersion::V3 {
        HeaderEnd { inflated_size: 0 }.write(&mut head);
    }
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

/// The pairs as they are written: each key once.
fn distinct<'a>(
    entry: usize,
    strings: &[(&'a [u8], &'a [u8])],
    version: OffloadBinaryVersion,
) -> Result<Pairs<'a>, OffloadBinaryWriteError> {
    // Where each key is in `pairs`.
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

/// An image to be packed, with the bytes at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinaryImage<'a> {
    /// What the image is said to be.
    pub image_kind: ImageKind,
    /// Who manages the image.
    pub offload_kind: OffloadKind,
    /// 0 in all that LLVM 22 writes.
    pub flags: u32,
    /// As those of [`NewBinaryEntry`].
    pub strings: &'a [(&'a str, &'a str)],
    /// The bytes of the image.
    pub image: &'a [u8],
}

impl BinaryImage<'_> {
    /// An offload binary of version 1, which all releases read, with the numbers of `release`.
    ///
    /// # Errors
    ///
    /// When a key or value contains a NUL.
    pub fn to_bytes(&self, release: LlvmRelease) -> Result<Vec<u8>, OffloadBinaryWriteError> {
        let (mut bytes, padding) = self.head(self.image.len() as u64, release)?;
        bytes.extend_from_slice(self.image);
        bytes.extend((0..padding).map(|_| 0));
        Ok(bytes)
    }

    /// What comes before an image of `image_size` bytes, and how many zeros come after it, for
    /// those who copy the image from file to file; [`Self::image`] is not looked at.
    ///
    /// # Errors
    ///
    /// When a key or value contains a NUL, or the size is too large for any file.
    pub fn head(
        &self,
        image_size: u64,
        release: LlvmRelease,
    ) -> Result<(Vec<u8>, u64), OffloadBinaryWriteError> {
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
        let (mut head, mut padding) = (Vec::new(), 0);
        for piece in layout(&[entry], OffloadBinaryVersion::V1, release)? {
            match piece {
                Piece::Bytes(bytes) => head = bytes,
                Piece::Zeros(size) => padding = size,
                Piece::Copy { .. } => {}
            }
        }
        Ok((head, padding))
    }
}

#[cfg(test)]
mod tests;
