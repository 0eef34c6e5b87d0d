//! Tables of images for OpenMP's runtime, in linked files.
//!
//! | record of 32 bytes | content |
//! |---|---|
//! | image | start and end of the image (LLVM 16: of its offload binary), start and end of the offload entries |
//! | descriptor | number of images (4 bytes and 4 zeros), address of the first image's record, start and end of the offload entries |
//!
//! The images are in offload binaries. A constructor passes the descriptor to `__tgt_register_lib`; in a stripped file
//! no name leads to it. So it is found by its words: each image has a record that points to its start and end, and a
//! descriptor has the address of these records, their number and the same entries. To remove an image, the records of
//! the images after it move up, and the number becomes smaller. The records at the end, which nothing reads then,
//! describe an empty image.

use std::collections::{BTreeMap, BTreeSet};

use object::elf;

use super::binaries::binary_units;
use super::elf_headers::{ElfHeaders, SectionHeader64, records};
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::large_data::LargeData;
use super::layout::{PruneLayout, UnitSection};
use super::pointers::{ADDEND, Words, packed_words, symbol_values};
use super::pruned::PruneCounts;
use super::units::is_unit_section;
use crate::container::elf::relocations::{Relocation64, RelocationKind};
use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;
use crate::format::offload_binary;

/// Size of an image's record in bytes.
const RECORD: u64 = 32;
/// Offset of the address of the first record in a descriptor.
const FIRST: u64 = 8;
/// Offsets of the start and end of the offload entries, in both records.
const ENTRIES: [u64; 2] = [16, 24];

/// Limit on the records that are read while a table is checked, for each record that was found.
const MOST_READS: usize = 64;

/// The tables of a file.
#[derive(Debug, Default)]
pub(super) struct ImageTables {
    descriptors: Vec<Descriptor>,
    words: LoadedWords,
}

/// A descriptor, and the records that it lists.
#[derive(Debug)]
struct Descriptor {
    address: u64,
    records: Vec<ImageRecord>,
}

#[derive(Clone, Copy, Debug)]
struct ImageRecord {
    address: u64,
    /// Addresses of the image.
    start: u64,
    end: u64,
}

/// Addresses by which a record may describe an image.
#[derive(Clone, Copy, Debug)]
struct LinkedImage {
    /// Offset of the offload binary in the file.
    binary: u64,
    /// Ends that a record may have: that of the image, or of its offload binary.
    ends: [u64; 2],
}

impl ImageTables {
    /// Reads the sections of offload binaries in a linked file, and finds the tables that list their images.
    pub(super) fn read<'d, R: ReadAt<'d>>(
        data: R,
        headers: &ElfHeaders,
        job: PruneJob<'_>,
        large: LargeData,
    ) -> Result<(Self, Vec<UnitSection>, PruneCounts), PruneError> {
        let (mut sections, mut counts) = (Vec::new(), PruneCounts::default());
        let mut images = BTreeMap::new();
        for (index, header) in headers.sections.iter().enumerate() {
            let has_binaries = header.has_content()
                && header.size > 0
                && Magic::at(data, header.range()) == Magic::OffloadBinary;
            if !has_binaries || large.leaves(headers.name(index)) {
                continue;
            }
            let here = |problem| PruneError::in_section(headers.name(index), problem);
            if job.choice.recompression().is_some() {
                return Err(here(PruneProblem::LinkedTable));
            }
            let units = binary_units(data, header.range(), job, &mut counts);
            let units = units.map_err(here)?;
            images.extend(images_of(data, header).map_err(here)?);
            sections.push(UnitSection::of_table(headers, index, units).map_err(here)?);
        }
        if sections.is_empty() {
            return Ok((Self::default(), sections, counts));
        }
        let tables = Self::find(data, headers, &images).map_err(PruneError::whole)?;
        Ok((tables, sections, counts))
    }

    /// Finds the records of all images, which are keys by their addresses, and their descriptors.
    fn find<'d, R: ReadAt<'d>>(
        data: R,
        headers: &ElfHeaders,
        images: &BTreeMap<u64, LinkedImage>,
    ) -> Result<Self, PruneProblem> {
        let words = LoadedWords::read(data, headers)?;
        let word = |address| words.value(data, headers, address);
        let mut records = BTreeMap::new();
        for (address, start) in words.search(data, headers, |value| images.contains_key(&value)) {
            let end = address.checked_add(8).and_then(word);
            let image = images.get(&start).expect("the search finds these");
            if let Some(end) = end.filter(|end| image.ends.contains(end)) {
                let record = ImageRecord {
                    address,
                    start,
                    end,
                };
                records.insert(address, record);
            }
        }
        let (mut descriptors, mut count_listed, mut count_read) = (Vec::new(), 0, 0);
        for (place, first) in words.search(data, headers, |value| records.contains_key(&value)) {
            let Some(address) = place.checked_sub(FIRST) else {
                continue;
            };
            let count = headers
                .offset_of(address)
                .and_then(|at| at_offset(data, at));
            let count = count.filter(|count| (1..=records.len() as u64).contains(count));
            let listed = (0..count.unwrap_or(0)).map(|index| {
                count_read += 1;
                let record = records.get(&first.wrapping_add(index * RECORD))?;
                let mut same = ENTRIES.iter();
                let is_same = same.all(|at| {
                    let entries = word(record.address.wrapping_add(*at));
                    entries.is_some() && entries == word(address.wrapping_add(*at))
                });
                is_same.then_some(*record)
            });
            match listed.collect::<Option<Vec<ImageRecord>>>() {
                Some(listed) if !listed.is_empty() => {
                    count_listed += listed.len();
                    descriptors.push(Descriptor {
                        address,
                        records: listed,
                    });
                }
                _ => {}
            }
            // Each record is listed once; more is an error below, however many there are. What only looks like a descriptor
            // may read records, too, but not all of them again and again.
            if count_listed > records.len() || count_read > MOST_READS * records.len() {
                break;
            }
        }
        let tables = Self { descriptors, words };
        tables.check(images, &records)?;
        Ok(tables)
    }

    /// Checks that descriptors list each image once, and that nothing else looks like a record.
    fn check(
        &self,
        images: &BTreeMap<u64, LinkedImage>,
        records: &BTreeMap<u64, ImageRecord>,
    ) -> Result<(), PruneProblem> {
        let listed = self.descriptors.iter().flat_map(|all| &all.records);
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for image in images.values() {
            counts.entry(image.binary).or_default();
        }
        for record in listed.clone() {
            let image = images.get(&record.start).expect("records have these");
            *counts.entry(image.binary).or_default() += 1;
        }
        // The end of the entries and the start of the next image may look like one.
        let places: BTreeSet<u64> = listed.map(|record| record.address).collect();
        let is_inside = |address: u64| {
            let before = places.range(..=address).next_back();
            before.is_some_and(|before| address - before < RECORD)
        };
        let others = records.values().filter(|record| !is_inside(record.address));
        for record in others {
            let image = images.get(&record.start).expect("records have these");
            counts.insert(image.binary, 0);
        }
        match counts.into_iter().find(|(_, count)| *count != 1) {
            Some((offset, _)) => Err(PruneProblem::NoDescriptor { offset }),
            None => Ok(()),
        }
    }

    /// Returns the addresses of the words that point to images.
    pub(super) fn addresses(&self) -> BTreeSet<u64> {
        let records = self.descriptors.iter().flat_map(|all| &all.records);
        let words = records.flat_map(|record| [record.address, record.address + 8]);
        words.collect()
    }

    /// Returns the words of the new tables, by their offsets in the old file.
    pub(super) fn words<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        headers: &ElfHeaders,
        layout: &PruneLayout,
    ) -> Result<Words, PruneProblem> {
        let mut new_starts = BTreeMap::new();
        let mut unused = 0;
        for section in layout.sections.iter().filter(|section| section.is_table) {
            let header = headers.section(section.index);
            unused = header.address;
            for (unit, place) in section.units.iter().zip(&section.places) {
                let new = header.address + place;
                let address = |offset: u64| header.address + (offset - header.offset);
                if unit.size > 0 {
                    new_starts.insert(address(unit.old.start), new);
                }
                let copied = unit.copied.iter();
                new_starts.extend(copied.map(|(old, offset)| (address(old.start), new + offset)));
            }
        }
        let mut words = Words::new();
        for descriptor in &self.descriptors {
            let kept = descriptor.records.iter().filter_map(|record| {
                let new = *new_starts.get(&record.start)?;
                Some((new, new + (record.end - record.start)))
            });
            let kept: Vec<(u64, u64)> = kept.collect();
            for (index, record) in descriptor.records.iter().enumerate() {
                let (start, end) = kept.get(index).copied().unwrap_or((unused, unused));
                let mut set = |address, old, new| {
                    let change = self.words.change(data, headers, address, old, new);
                    change.map(|changed| words.extend(changed))
                };
                set(record.address, record.start, start)?;
                set(record.address + 8, record.end, end)?;
            }
            let count = headers.offset_of(descriptor.address);
            words.insert(count.expect("the count was read"), kept.len() as u64);
        }
        Ok(words)
    }
}

/// Lists the addresses at which records may say that an image in a section of offload binaries starts.
fn images_of<'d, R: ReadAt<'d>>(
    data: R,
    header: &SectionHeader64,
) -> Result<BTreeMap<u64, LinkedImage>, PruneProblem> {
    let address = |offset: u64| header.address + (offset - header.offset);
    let binaries = offload_binary::walk(data, header.range());
    let mut images = BTreeMap::new();
    for found in binaries.map_err(PruneProblem::OffloadBinary)? {
        let range = found.range();
        let binary = range.start;
        let is_loaded = header.is_allocated() && found.compressed.is_none();
        let entry = match &found.entries[..] {
            [entry] if is_loaded && !entry.image.is_empty() => entry,
            _ => return Err(PruneProblem::NoDescriptor { offset: binary }),
        };
        let ends = [entry.image.end, range.end].map(address);
        images.insert(address(entry.image.start), LinkedImage { binary, ends });
        let ends = [range.end; 2].map(address);
        images.insert(address(binary), LinkedImage { binary, ends });
    }
    Ok(images)
}

/// Words with addresses, as the loader sets them.
#[derive(Debug, Default)]
struct LoadedWords(BTreeMap<u64, LoadedWord>);

#[derive(Clone, Copy, Debug)]
struct LoadedWord {
    value: u64,
    source: WordSource,
}

/// Part of the file that has a word's value.
#[derive(Clone, Copy, Debug)]
enum WordSource {
    /// The addend of a relocation at this offset.
    Addend(u64),
    /// The word itself.
    Word,
    /// A symbol, by a relocation of this type.
    Symbol(u32),
}

impl LoadedWords {
    fn read<'d, R: ReadAt<'d>>(data: R, headers: &ElfHeaders) -> Result<Self, PruneProblem> {
        let mut words = BTreeMap::new();
        for section in headers.sections.iter().filter(|at| at.is_allocated()) {
            match elf::SectionType(section.kind) {
                elf::SHT_RELA => {
                    let symbols = symbol_values(data, headers, section)?;
                    let all = records(data, section, Relocation64::LEN, Relocation64::read)?;
                    for (offset, relocation) in all {
                        // The lower half is the type.
                        let kind = relocation.info as u32;
                        let symbol = usize::try_from(relocation.info >> 32).ok();
                        let symbol = symbol.and_then(|index| symbols.get(index).copied());
                        let (value, source) = match RelocationKind::of(headers.file.machine, kind) {
                            RelocationKind::Relative => (0, WordSource::Addend(offset + ADDEND)),
                            RelocationKind::Absolute => {
                                (symbol.unwrap_or(0), WordSource::Symbol(kind))
                            }
                            _ => continue,
                        };
                        let value = value.wrapping_add(relocation.addend);
                        words.insert(relocation.address, LoadedWord { value, source });
                    }
                }
                elf::SHT_RELR => {
                    for address in packed_words(data, section)? {
                        let value = headers.offset_of(address);
                        if let Some(value) = value.and_then(|offset| at_offset(data, offset)) {
                            let source = WordSource::Word;
                            words.insert(address, LoadedWord { value, source });
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(Self(words))
    }

    /// Returns the word at an address. In a file without a load address of its own, only relocated words are addresses.
    fn value<'d, R: ReadAt<'d>>(&self, data: R, headers: &ElfHeaders, address: u64) -> Option<u64> {
        match self.0.get(&address) {
            Some(word) => Some(word.value),
            None if headers.file.file_type != elf::ET_EXEC.0 => None,
            None => at_offset(data, headers.offset_of(address)?),
        }
    }

    /// Lists the addresses of wanted words, and the words.
    fn search<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        headers: &ElfHeaders,
        is_wanted: impl Fn(u64) -> bool,
    ) -> BTreeMap<u64, u64> {
        let words = self.0.iter().map(|(address, word)| (*address, word.value));
        let mut found: BTreeMap<u64, u64> = words.filter(|(_, value)| is_wanted(*value)).collect();
        if headers.file.file_type != elf::ET_EXEC.0 {
            return found;
        }
        for (section, name) in headers.sections.iter().zip(&headers.names) {
            let is_unit = is_unit_section(name);
            let is_data = section.has_content()
                && section.is_allocated()
                && section.flags & elf::SHF_EXECINSTR.0 == 0
                && Magic::at(data, section.range()) != Magic::OffloadBinary;
            if is_unit || !is_data {
                continue;
            }
            let bytes = data
                .read_at(section.offset, section.size)
                .unwrap_or_default();
            // Tables are aligned to 8.
            let skip = section.address.wrapping_neg() % 8;
            let aligned = usize::try_from(skip)
                .ok()
                .and_then(|skip| bytes.get(skip..));
            let words = aligned.unwrap_or_default().chunks_exact(8);
            for (index, word) in words.enumerate() {
                let value = u64::from_le_bytes(word.try_into().expect("chunks have 8 bytes"));
                let address = section.address + skip + index as u64 * 8;
                if is_wanted(value) && !self.0.contains_key(&address) {
                    found.insert(address, value);
                }
            }
        }
        found
    }

    /// Returns the words to write, by their offsets, so that the word at `address` becomes `new`.
    fn change<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        headers: &ElfHeaders,
        address: u64,
        old: u64,
        new: u64,
    ) -> Result<Words, PruneProblem> {
        let mut words = Words::new();
        let source = self
            .0
            .get(&address)
            .map_or(WordSource::Word, |word| word.source);
        match source {
            WordSource::Symbol(kind) => return Err(PruneProblem::Relocation { kind, address }),
            WordSource::Addend(offset) => {
                words.insert(offset, new);
            }
            WordSource::Word => {}
        }
        // Some linkers write the word beside its relocation, too.
        if let Some(offset) = headers.offset_of(address) {
            if at_offset(data, offset) == Some(old) {
                words.insert(offset, new);
            }
        }
        Ok(words)
    }
}

/// Returns the word at an offset in the file.
fn at_offset<'d, R: ReadAt<'d>>(data: R, offset: u64) -> Option<u64> {
    let bytes = data.read_at(offset, 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
