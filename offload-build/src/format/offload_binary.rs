//! The offload binary: an image, who it is for, and strings about it.
//!
//! | offset | size | field                                                              |
//! |-------:|-----:|--------------------------------------------------------------------|
//! | `0x00` |    4 | magic, `10 FF 10 AD`                                               |
//! | `0x04` |    4 | version                                                            |
//! | `0x08` |    8 | size of all, a multiple of 8                                       |
//! | `0x10` |    8 | offset of the entries                                              |
//! | `0x18` |    8 | version 1: size of the one entry; version 2: number of entries     |
//! |        |      | then each entry:                                                   |
//! |   `+0` |    2 | image kind                                                         |
//! |   `+2` |    2 | offload kind                                                       |
//! |   `+4` |    4 | flags; bit 0: there are strings but no image                       |
//! |   `+8` |    8 | offset of the string entries                                       |
//! |  `+16` |    8 | number of string entries                                           |
//! |  `+24` |    8 | offset of the image, in version 1 a multiple of 8                  |
//! |  `+32` |    8 | size of the image                                                  |
//! |        |      | then each string entry:                                            |
//! |   `+0` |    8 | offset of the key, which ends in NUL                               |
//! |   `+8` |    8 | offset of the value, which ends in NUL                             |
//! |  `+16` |    8 | version 2 only: size of the value, which may contain NUL           |
//! |        |      | then the strings, and the images                                   |
//!
//! Integers are little-endian, offsets are from the first byte of the offload binary. Version 1
//! is what LLVM 15 to 22 write, and all releases read; version 2 is LLVM 23's. HIP was number 3 up
//! to LLVM 20 and is 4 since, without a new version.
//!
//! Offload binaries are concatenated: by the packager, and by linkers that put sections together.
//!
//! Specification: <https://llvm.org/docs/CommandGuide/llvm-offload-binary.html>, which still shows
//! the old numbers. Where we differ from LLVM: `docs/differences.md#offload-binary`.

mod error;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use object::ReadRef;

use super::bytes::{Alignment, Cursor, OutOfBounds, field, record};
use crate::target::{ImageKind, LlvmRelease, OffloadKind};

pub use error::{Error, Problem, WriteError};

const MAGIC: [u8; 4] = *b"\x10\xff\x10\xad";

record! {
    struct Header, "header", 32 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u32,
        0x08 size: u64,
        0x10 entries_offset: u64,
        0x18 entries: u64,
    }
}

record! {
    struct EntryRecord, "entry", 40 bytes {
        0x00 image_kind: u16,
        0x02 offload_kind: u16,
        0x04 flags: u32,
        0x08 strings_offset: u64,
        0x10 string_count: u64,
        0x18 image_offset: u64,
        0x20 image_size: u64,
    }
}

record! {
    struct StringRecord, "string entry", 16 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
    }
}

record! {
    struct SizedStringRecord, "string entry", 24 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
        0x10 value_size: u64,
    }
}

/// One offload binary of a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffloadBinary {
    /// From the start of the file.
    pub offset: u64,
    /// Of all, padding included.
    pub size: u64,
    /// One in version 1.
    pub entries: Vec<BinaryEntry>,
}

/// An image in an offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryEntry {
    /// What the image is said to be.
    pub image_kind: ImageKind,
    /// Who manages the image.
    pub offload_kind: OffloadKind,
    /// Bit 0: there is no image, only strings. The others have no meaning yet.
    pub flags: u32,
    /// What is said about the image.
    pub strings: Strings,
    /// From the start of the file.
    pub image: Range<u64>,
}

/// The keys and values of an entry, in file order.
#[derive(Clone)]
pub struct Strings {
    /// Shared by the entries of an offload binary, as in the file: many pairs may point at one
    /// string, so that copies of them could be far larger than the file.
    table: Arc<[u8]>,
    /// Key and value, each inside `table`.
    pairs: Vec<[Range<usize>; 2]>,
}

impl OffloadBinary {
    /// Reads the offload binary at `offset` of `data`; nothing at `end` or later belongs to it.
    ///
    /// Any input may be given: this does not panic, and allocates at most a small multiple of
    /// what it reads. Images are not read.
    ///
    /// # Errors
    ///
    /// When the magic is absent, the version is not 1 or 2, or anything lies outside of the
    /// offload binary.
    pub fn parse<'d, R: ReadRef<'d>>(data: R, offset: u64, end: u64) -> Result<Self, Error> {
        parse(data, offset, end).map_err(|(entry, problem)| Error {
            index: 0,
            entry,
            problem,
        })
    }

    /// The bytes of the file that it takes up.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

impl BinaryEntry {
    /// The target triple, as written; empty when there is none.
    #[must_use]
    pub fn triple(&self) -> &str {
        self.text("triple")
    }

    /// The processor or target ID, as written; empty when there is none.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.text("arch")
    }

    fn text(&self, key: &str) -> &str {
        // `parse` has refused what is not UTF-8 under these keys.
        let value = self.strings.value(key).map(std::str::from_utf8);
        value.and_then(Result::ok).unwrap_or_default()
    }
}

impl Strings {
    /// The value of a key: the last, when the key is given twice.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        let found = self
            .pairs
            .iter()
            .rev()
            .find(|[found, _]| self.get(found) == key.as_bytes());
        found.map(|[_, value]| self.get(value))
    }

    /// All keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.pairs
            .iter()
            .map(|[key, value]| (self.get(key), self.get(value)))
    }

    /// How many pairs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn get(&self, range: &Range<usize>) -> &[u8] {
        self.table.get(range.clone()).unwrap_or_default()
    }
}

impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Strings {}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map()
            .entries(self.iter().map(|(key, value)| (text(key), text(value))))
            .finish()
    }
}

/// Reads the offload binaries that a range of `data` consists of.
///
/// Each starts at a multiple of 8 from the start of the range. Zeros between two of them and after
/// the last are accepted, because a linker puts them there when a section asks for more alignment;
/// LLVM up to 23 refuses them.
///
/// # Errors
///
/// When one is invalid, or is followed by something else.
pub fn walk<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> Result<Vec<OffloadBinary>, Error> {
    let end = Cursor::new(data, range.clone()).end();
    let (mut binaries, mut position) = (Vec::new(), range.start);
    while position < end {
        let binary = parse(data, position, end).map_err(|(entry, problem)| Error {
            index: binaries.len(),
            entry,
            problem,
        })?;
        position = binary.range().end;
        binaries.push(binary);
        let padding = Alignment::EIGHT.padding(position.saturating_sub(range.start));
        position = after_zeros(data, position.saturating_add(padding), end);
    }
    Ok(binaries)
}

/// The first place that does not start eight bytes of zeros, or fewer at the end.
fn after_zeros<'d, R: ReadRef<'d>>(data: R, mut position: u64, end: u64) -> u64 {
    const STEP: u64 = 0x1000;
    // As a rule another header comes at once, and no more than it is read.
    let mut size = Header::LEN;
    while position < end {
        let size_here = size.min(end - position);
        let mut cursor = Cursor::new(data, position..end);
        let Ok(bytes) = cursor.read(size_here, "padding") else {
            return position;
        };
        if let Some(other) = bytes.iter().position(|byte| *byte != 0) {
            return position + (other as u64 & !7);
        }
        position = cursor.position();
        size = STEP;
    }
    position
}

type At<T> = Result<T, (Option<usize>, Problem)>;

fn parse<'d, R: ReadRef<'d>>(data: R, offset: u64, end: u64) -> At<OffloadBinary> {
    let whole = |problem| (None, problem);
    let outside = |problem| (None, Problem::Outside(problem));
    let mut cursor = Cursor::new(data, offset..end);
    let mut start = cursor;
    let header = Header::read(&mut cursor).map_err(outside);
    let header = header.map_err(|problem| match field(&mut start, "magic") {
        // Shorter than a header, and something else.
        Ok(found) if found != MAGIC => whole(Problem::Magic { offset, found }),
        _ => problem,
    })?;
    if header.magic != MAGIC {
        let found = header.magic;
        return Err(whole(Problem::Magic { offset, found }));
    }
    let count = match header.version {
        // The slot of the count is the size of the entry, of which any is accepted.
        1 => 1,
        2 => header.entries,
        version => return Err(whole(Problem::Version { version })),
    };
    let least = Header::LEN + EntryRecord::LEN.saturating_mul(count.min(1));
    if header.size < least {
        return Err(whole(Problem::Size {
            size: header.size,
            least,
        }));
    }
    let range = OutOfBounds::check("body", offset, header.size, cursor.end()).map_err(outside)?;
    if header.entries_offset < Header::LEN {
        return Err(whole(Problem::EntriesOffset {
            offset: header.entries_offset,
        }));
    }

    // From here on nothing may lie outside of `range`.
    let entries = entries(data, &range, &header, count)?;
    let strings = strings_of(data, &range, &entries)?;
    let entries = entries
        .into_iter()
        .zip(strings)
        .map(|(entry, strings)| BinaryEntry {
            image_kind: ImageKind::from_raw(entry.record.image_kind),
            offload_kind: match header.version {
                1 => OffloadKind::from_raw_of_any_release(entry.record.offload_kind),
                _ => OffloadKind::from_raw(entry.record.offload_kind),
            },
            flags: entry.record.flags,
            strings,
            image: entry.image,
        });
    Ok(OffloadBinary {
        offset,
        size: header.size,
        entries: entries.collect(),
    })
}

/// An entry whose strings are still offsets.
struct RawEntry {
    /// Absent in version 1, whose one entry needs no number in messages.
    index: Option<usize>,
    record: EntryRecord,
    image: Range<u64>,
    pairs: Vec<Pair>,
    /// Where its string entries end.
    after: u64,
}

/// A string entry, its offsets from the start of the file.
struct Pair {
    key: u64,
    value: u64,
    /// Absent when the value ends at its NUL.
    value_size: Option<u64>,
}

fn entries<'d, R: ReadRef<'d>>(
    data: R,
    range: &Range<u64>,
    header: &Header,
    count: u64,
) -> At<Vec<RawEntry>> {
    let sized = header.version > 1;
    let at = |relative: u64| range.start.saturating_add(relative);
    let mut cursor = Cursor::new(data, range.clone()).at(at(header.entries_offset));
    let width = if sized {
        SizedStringRecord::LEN
    } else {
        StringRecord::LEN
    };
    let headers = EntryRecord::LEN
        .saturating_mul(count)
        .saturating_add(Header::LEN);
    let mut pairs_left = header.size.saturating_sub(headers) / width;
    let mut entries = Vec::new();
    // The counts are only what the file claims, so they size no allocation.
    for index in 0..count {
        let index = usize::try_from(index).ok().filter(|_| sized);
        let outside = |problem| (index, Problem::Outside(problem));
        let record = EntryRecord::read(&mut cursor).map_err(outside)?;
        let (offset, size) = (at(record.image_offset), record.image_size);
        let image = OutOfBounds::check("image", offset, size, range.end).map_err(outside)?;

        let (offset, size) = (
            at(record.strings_offset),
            record.string_count.saturating_mul(width),
        );
        OutOfBounds::check("string entries", offset, size, range.end).map_err(outside)?;
        // Entries that share string entries would make a small file large in memory.
        let shared = (index, Problem::SharedStrings { size: header.size });
        pairs_left = pairs_left.checked_sub(record.string_count).ok_or(shared)?;
        let mut cursor = cursor.at(offset);
        let mut pairs = Vec::new();
        for _ in 0..record.string_count {
            let (key, value, value_size) = if sized {
                let record = SizedStringRecord::read(&mut cursor).map_err(outside)?;
                (
                    record.key_offset,
                    record.value_offset,
                    Some(record.value_size),
                )
            } else {
                let record = StringRecord::read(&mut cursor).map_err(outside)?;
                (record.key_offset, record.value_offset, None)
            };
            pairs.push(Pair {
                key: at(key),
                value: at(value),
                value_size,
            });
        }
        entries.push(RawEntry {
            index,
            record,
            image,
            pairs,
            after: cursor.position(),
        });
    }
    Ok(entries)
}

fn strings_of<'d, R: ReadRef<'d>>(
    data: R,
    range: &Range<u64>,
    entries: &[RawEntry],
) -> At<Vec<Strings>> {
    // As a rule the strings lie between their entries and the images: then no image is read.
    let from = entries
        .iter()
        .map(|entry| entry.after)
        .max()
        .unwrap_or(range.end);
    let images = entries.iter().map(|entry| entry.image.start);
    let to = images
        .filter(|start| *start >= from)
        .min()
        .unwrap_or(range.end);
    strings_in(data, from..to, entries).or_else(|_| strings_in(data, range.clone(), entries))
}

/// The strings of all entries, when all lie in `range`.
fn strings_in<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
    entries: &[RawEntry],
) -> At<Vec<Strings>> {
    let size = range.end.saturating_sub(range.start);
    let bytes = Cursor::new(data, range.clone()).read(size, "strings");
    let bytes = bytes.map_err(|problem| (None, Problem::Outside(problem)))?;
    let place = |offset: u64| usize::try_from(offset.checked_sub(range.start)?).ok();

    // Each string is looked through once, however many keys and values are a tail of it.
    let pairs = entries.iter().flat_map(|entry| &entry.pairs);
    let starts = pairs.flat_map(|pair| {
        let value = Some(pair.value).filter(|_| pair.value_size.is_none());
        [Some(pair.key), value]
    });
    let mut starts: Vec<usize> = starts.flatten().filter_map(place).collect();
    starts.sort_unstable();
    let mut ends = BTreeMap::new();
    let (mut next_start, mut next_end) = (bytes.len(), None);
    for start in starts.into_iter().rev() {
        let here = bytes.get(start..next_start).unwrap_or_default();
        let nul = here
            .iter()
            .position(|byte| *byte == 0)
            .map(|at| start.saturating_add(at));
        next_end = nul.or(next_end);
        next_start = start.min(next_start);
        ends.insert(start, next_end);
    }

    let terminated = |what, offset| {
        let end = place(offset).and_then(|start| Some(start..(*ends.get(&start)?)?));
        end.ok_or(Problem::Unterminated {
            what,
            offset,
            end: range.end,
        })
    };
    let sized = |what, offset, size| {
        let inside = OutOfBounds::check(what, offset, size, range.end);
        let outside = OutOfBounds {
            what,
            offset,
            size,
            end: range.end,
        };
        let found = inside.map_err(Problem::Outside)?;
        let found = place(found.start).zip(place(found.end));
        found
            .map(|(start, end)| start..end)
            .ok_or(Problem::Outside(outside))
    };
    let table: Arc<[u8]> = bytes.into();
    let strings = |entry: &RawEntry| {
        let pairs = entry.pairs.iter().map(|pair| {
            let value = match pair.value_size {
                Some(size) => sized("value", pair.value, size)?,
                None => terminated("value", pair.value)?,
            };
            Ok([terminated("key", pair.key)?, value])
        });
        let pairs = pairs.collect::<Result<Vec<_>, Problem>>()?;
        let strings = Strings {
            table: Arc::clone(&table),
            pairs,
        };
        for ((key, value), pair) in strings.iter().zip(&entry.pairs) {
            let key = ["triple", "arch"]
                .into_iter()
                .find(|text| text.as_bytes() == key);
            if let Some(key) = key.filter(|_| std::str::from_utf8(value).is_err()) {
                return Err(Problem::NotText {
                    key,
                    offset: pair.value,
                });
            }
        }
        Ok(strings)
    };
    entries
        .iter()
        .map(|entry| strings(entry).map_err(|problem| (entry.index, problem)))
        .collect()
}

/// An image to be packed; as [`BinaryEntry`], with the bytes at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinaryImage<'a> {
    /// What the image is said to be.
    pub image_kind: ImageKind,
    /// Who manages the image.
    pub offload_kind: OffloadKind,
    /// 0 in all that LLVM 22 writes.
    pub flags: u32,
    /// Keys with values, written in this order. A key given twice keeps its first place and its
    /// last value.
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
    pub fn to_bytes(&self, release: LlvmRelease) -> Result<Vec<u8>, WriteError> {
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
    ) -> Result<(Vec<u8>, u64), WriteError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (key, value) in self.strings {
            if let Some(text) = [key, value].into_iter().find(|text| text.contains('\0')) {
                return Err(WriteError::Nul {
                    text: (*text).to_owned(),
                });
            }
            match pairs.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => *known = value,
                None => pairs.push((key, value)),
            }
        }
        let table = StringTable::new(pairs.iter().flat_map(|(key, value)| [*key, *value]));

        let strings_offset = Header::LEN + EntryRecord::LEN;
        // What is in memory is far from the end of a u64; the size of the image may be anything.
        let table_offset = strings_offset + StringRecord::LEN * pairs.len() as u64;
        let past_table = table_offset + table.bytes.len() as u64;
        let image_offset = past_table + Alignment::EIGHT.padding(past_table);
        let image_end = image_offset.checked_add(image_size);
        let Some((end, size)) = image_end.and_then(|end| Some((end, Alignment::EIGHT.align(end)?)))
        else {
            return Err(WriteError::TooLarge { image_size });
        };

        let mut bytes = Vec::new();
        let (version, entries_offset, entries) = (1, Header::LEN, EntryRecord::LEN);
        Header {
            magic: MAGIC,
            version,
            size,
            entries_offset,
            entries,
        }
        .write(&mut bytes);
        EntryRecord {
            image_kind: self.image_kind.raw(),
            offload_kind: self.offload_kind.raw(release),
            flags: self.flags,
            strings_offset,
            string_count: pairs.len() as u64,
            image_offset,
            image_size,
        }
        .write(&mut bytes);
        for (key, value) in pairs {
            let at = |text: &str| table_offset + table.offset(text);
            let record = StringRecord {
                key_offset: at(key),
                value_offset: at(value),
            };
            record.write(&mut bytes);
        }
        bytes.extend_from_slice(&table.bytes);
        bytes.extend((past_table..image_offset).map(|_| 0));
        Ok((bytes, size - end))
    }
}

/// Strings that end in NUL, tails shared.
struct StringTable<'a> {
    bytes: Vec<u8>,
    offsets: BTreeMap<&'a str, u64>,
}

impl<'a> StringTable<'a> {
    fn new(strings: impl Iterator<Item = &'a str>) -> Self {
        let mut strings: Vec<&str> = strings.collect();
        // From the last byte backwards, larger and longer first: a tail follows what it ends.
        strings.sort_unstable_by(|a, b| b.bytes().rev().cmp(a.bytes().rev()));
        let mut table = Self {
            bytes: vec![0],
            offsets: BTreeMap::from([("", 0)]),
        };
        let mut last = "";
        for string in strings {
            if table.offsets.contains_key(string) {
                continue;
            }
            let offset = if last.ends_with(string) {
                table.bytes.len() - string.len() - 1
            } else {
                let offset = table.bytes.len();
                table.bytes.extend_from_slice(string.as_bytes());
                table.bytes.push(0);
                last = string;
                offset
            };
            table.offsets.insert(string, offset as u64);
        }
        table
    }

    /// From the start of the table.
    fn offset(&self, string: &str) -> u64 {
        self.offsets.get(string).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
