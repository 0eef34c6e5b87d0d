//! Reads offload binaries; checks every offset against the size of its container.

use std::ops::Range;
use std::sync::Arc;

use super::binary::{BinaryEntry, CompressedBody, OffloadBinary};
use super::error::{OffloadBinaryError, OffloadBinaryProblem};
use super::layout::{
    BinaryHeader, EntryRecord, HeaderEnd, MAGIC, OffloadBinaryVersion, SizedStringRecord,
    StringRecord,
};
use super::strings::EntryStrings;
use crate::format::bytes::{Alignment, Cursor, OutOfBounds, ReadAt, field};
use crate::format::codec::Method;
use crate::names::{ImageKind, OffloadKind};

/// Reads the offload binaries that a range of `data` consists of.
///
/// Each starts at a multiple of 8 from the start of the range. Accepts zeros after each, because
/// linkers add them for alignment. LLVM up to 23 rejects them.
///
/// # Errors
///
/// Fails if an offload binary is invalid, or other data follows it.
pub fn walk<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<OffloadBinary>, OffloadBinaryError> {
    let end = Cursor::new(data, range.clone()).end();
    let (mut binaries, mut position) = (Vec::new(), range.start);
    while position < end {
        let binary = parse(data, position, end).map_err(|(entry, problem)| OffloadBinaryError {
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

/// Returns the offset of the first 8 bytes that are not all zeros; the last may be fewer.
fn after_zeros<'d, R: ReadAt<'d>>(data: R, start: u64, end: u64) -> u64 {
    // Usually the next header follows at once; then reads no more than it.
    match Cursor::new(data, start..end).after_zeros(BinaryHeader::LEN) {
        other if other < end => start + ((other - start) & !7),
        end => end,
    }
}

type BinaryResult<T> = Result<T, (Option<usize>, OffloadBinaryProblem)>;

/// The fields of a header.
struct HeaderFields {
    header: BinaryHeader,
    version: OffloadBinaryVersion,
    /// Inflated size; 0 if the offload binary is not compressed.
    inflated_size: u64,
}

/// Reads the header at the cursor, whose offset is `offset`.
fn read_header<'d, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
    offset: u64,
) -> BinaryResult<HeaderFields> {
    let whole = |problem| (None, problem);
    let outside = |problem| (None, OffloadBinaryProblem::Outside(problem));
    let mut start = *cursor;
    let header = BinaryHeader::read(cursor).map_err(outside);
    let header = header.map_err(|problem| match field(&mut start, "magic") {
        // Less than a header, with another magic.
        Ok(found) if found != MAGIC => whole(OffloadBinaryProblem::Magic { offset, found }),
        _ => problem,
    })?;
    if header.magic != MAGIC {
        let found = header.magic;
        return Err(whole(OffloadBinaryProblem::Magic { offset, found }));
    }
    let unknown = OffloadBinaryProblem::Version {
        version: header.version,
    };
    let version = OffloadBinaryVersion::from_raw(header.version).ok_or(whole(unknown))?;
    let inflated_size = match version {
        OffloadBinaryVersion::V1 | OffloadBinaryVersion::V2 => 0,
        OffloadBinaryVersion::V3 => {
            let end = HeaderEnd::read(cursor).map_err(outside)?;
            end.inflated_size
        }
    };
    Ok(HeaderFields {
        header,
        version,
        inflated_size,
    })
}

pub(super) fn parse<'d, R: ReadAt<'d>>(
    data: R,
    offset: u64,
    end: u64,
) -> BinaryResult<OffloadBinary> {
    let whole = |problem| (None, problem);
    let outside = |problem| (None, OffloadBinaryProblem::Outside(problem));
    let mut cursor = Cursor::new(data, offset..end);
    let HeaderFields {
        header,
        version,
        inflated_size,
    } = read_header(&mut cursor, offset)?;
    let is_compressed = inflated_size != 0;
    let count = match version {
        // The field holds the size of the entry; any value is accepted.
        OffloadBinaryVersion::V1 => 1,
        OffloadBinaryVersion::V2 | OffloadBinaryVersion::V3 => header.entries,
    };
    let (size, entries_offset) = (header.size, header.entries_offset);
    let header_size = version.header_size();
    let records = if is_compressed { 0 } else { count.min(1) };
    let least = header_size.saturating_add(EntryRecord::LEN.saturating_mul(records));
    if size < least {
        return Err(whole(OffloadBinaryProblem::Size { size, least }));
    }
    let range = OutOfBounds::check("body", offset, size, cursor.end()).map_err(outside)?;
    if entries_offset < header_size || (is_compressed && entries_offset > header_size) {
        return Err(whole(OffloadBinaryProblem::EntriesOffset {
            offset: entries_offset,
            header_size,
        }));
    }
    if is_compressed && inflated_size < header_size {
        return Err(whole(OffloadBinaryProblem::InflatedSize {
            size: inflated_size,
            header_size,
        }));
    }
    let compressed = CompressedBody {
        method: Method::Zlib,
        inflated_size,
        data: offset.saturating_add(header_size)..range.end,
    };
    let binary = OffloadBinary {
        offset,
        size,
        version,
        compressed: None,
        entries: Vec::new(),
    };
    if is_compressed {
        return Ok(OffloadBinary {
            compressed: Some(compressed.with_method_of(data)),
            ..binary
        });
    }

    // From here on nothing may exceed `range`.
    let entries = entries(data, &range, &header, version, count)?;
    let strings = strings_of(data, &range, &entries)?.into_iter();
    let entries = entries.into_iter().zip(strings);
    let entries = entries.map(|(entry, strings)| entry.with_strings(strings, version));
    Ok(OffloadBinary {
        entries: entries.collect(),
        ..binary
    })
}

/// An entry whose strings are still offsets.
struct RawEntry {
    /// Absent in version 1, which has only one entry.
    index: Option<usize>,
    record: EntryRecord,
    image: Range<u64>,
    pairs: Vec<Pair>,
    /// End of its string entries.
    after: u64,
}

impl RawEntry {
    fn with_strings(self, strings: EntryStrings, version: OffloadBinaryVersion) -> BinaryEntry {
        let kind = self.record.offload_kind;
        BinaryEntry {
            image_kind: ImageKind::from_raw(self.record.image_kind),
            offload_kind: match version {
                OffloadBinaryVersion::V1 => OffloadKind::from_raw_of_any_release(kind),
                _ => OffloadKind::from_raw(kind),
            },
            flags: self.record.flags,
            strings,
            image: self.image,
        }
    }
}

/// A string entry with offsets from the start of the file.
struct Pair {
    key: u64,
    value: u64,
    /// Absent if the value ends at its NUL.
    value_size: Option<u64>,
}

fn entries<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    header: &BinaryHeader,
    version: OffloadBinaryVersion,
    count: u64,
) -> BinaryResult<Vec<RawEntry>> {
    let sized = version > OffloadBinaryVersion::V1;
    let at = |relative: u64| range.start.saturating_add(relative);
    let mut cursor = Cursor::new(data, range.clone()).at(at(header.entries_offset));
    let width = version.string_entry_size();
    let headers = EntryRecord::LEN
        .saturating_mul(count)
        .saturating_add(version.header_size());
    let mut pairs_left = header.size.saturating_sub(headers) / width;
    let mut entries = Vec::new();
    // The counts are not trusted, so they size no allocation.
    for index in 0..count {
        let index = usize::try_from(index).ok().filter(|_| sized);
        let outside = |problem| (index, OffloadBinaryProblem::Outside(problem));
        let record = EntryRecord::read(&mut cursor).map_err(outside)?;
        let (offset, size) = (at(record.image_offset), record.image_size);
        let image = OutOfBounds::check("image", offset, size, range.end).map_err(outside)?;

        let (offset, size) = (
            at(record.strings_offset),
            record.string_count.saturating_mul(width),
        );
        OutOfBounds::check("string entries", offset, size, range.end).map_err(outside)?;
        // Shared string entries would make a small file large in memory.
        let shared = (
            index,
            OffloadBinaryProblem::SharedStrings { size: header.size },
        );
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

fn strings_of<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    entries: &[RawEntry],
) -> BinaryResult<Vec<EntryStrings>> {
    // Usually the strings are between their entries and the images; then no image is read.
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

/// Reads the strings of all entries, if `range` contains them.
fn strings_in<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    entries: &[RawEntry],
) -> BinaryResult<Vec<EntryStrings>> {
    let size = range.end.saturating_sub(range.start);
    let bytes = Cursor::new(data, range.clone()).read(size, "strings");
    let bytes = bytes.map_err(|problem| (None, OffloadBinaryProblem::Outside(problem)))?;
    strings_among(bytes, &range, entries)
}

/// Finds the strings of all entries in `bytes`, the content of `range`. It is a function of its own
/// so that compilers generate it once for all types of `data`.
fn strings_among(
    bytes: &[u8],
    range: &Range<u64>,
    entries: &[RawEntry],
) -> BinaryResult<Vec<EntryStrings>> {
    let place = |offset: u64| usize::try_from(offset.checked_sub(range.start)?).ok();

    let pairs = entries.iter().flat_map(|entry| &entry.pairs);
    let starts = pairs.flat_map(|pair| {
        let value = Some(pair.value).filter(|_| pair.value_size.is_none());
        [Some(pair.key), value]
    });
    let ends = ends(bytes, starts.flatten().filter_map(place).collect());
    let terminated = |what, offset| {
        let end = place(offset).and_then(|start| Some(start..end_from(&ends, start)?));
        end.ok_or(OffloadBinaryProblem::Unterminated {
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
        let found = inside.map_err(OffloadBinaryProblem::Outside)?;
        let found = place(found.start).zip(place(found.end));
        found
            .map(|(start, end)| start..end)
            .ok_or(OffloadBinaryProblem::Outside(outside))
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
        let pairs = pairs.collect::<Result<Vec<_>, OffloadBinaryProblem>>()?;
        let strings = EntryStrings {
            table: Arc::clone(&table),
            pairs,
        };
        check_texts(&strings, &entry.pairs)?;
        Ok(strings)
    };
    entries
        .iter()
        .map(|entry| strings(entry).map_err(|problem| (entry.index, problem)))
        .collect()
}

/// Returns the starts, from the last to the first, with the place of the first NUL from each on, if there is one. Looks
/// for each NUL once, even if many keys and values share a string.
fn ends(bytes: &[u8], mut starts: Vec<usize>) -> Vec<(usize, Option<usize>)> {
    starts.sort_unstable();
    let mut ends = Vec::new();
    let (mut next_start, mut next_end) = (bytes.len(), None);
    for start in starts.into_iter().rev() {
        // A start after the end of the bytes has none.
        let here = bytes.get(start..next_start).unwrap_or_default();
        let nul = here
            .iter()
            .position(|byte| *byte == 0)
            .map(|at| start.saturating_add(at));
        next_end = nul.or(next_end);
        next_start = start.min(next_start);
        ends.push((start, next_end));
    }
    ends
}

fn end_from(ends: &[(usize, Option<usize>)], start: usize) -> Option<usize> {
    let place = ends.binary_search_by(|(known, _)| start.cmp(known));
    ends.get(place.ok()?)?.1
}

/// Checks that triple and processor are UTF-8.
fn check_texts(strings: &EntryStrings, pairs: &[Pair]) -> Result<(), OffloadBinaryProblem> {
    for ((key, value), pair) in strings.iter().zip(pairs) {
        let key = ["triple", "arch"]
            .into_iter()
            .find(|text| text.as_bytes() == key);
        if let Some(key) = key.filter(|_| std::str::from_utf8(value).is_err()) {
            return Err(OffloadBinaryProblem::NotText {
                key,
                offset: pair.value,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
