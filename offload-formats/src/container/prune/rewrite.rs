//! The new file as pieces.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use super::elf_headers::{
    DynamicEntry, ElfHeaders, ProgramHeader64, SectionHeader64, Symbol64, records,
};
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::large_data::{LargeData, is_of_large_data, unit_parts, with_large_data};
use super::layout::{MovedBlock, PruneLayout, UnitSection};
use super::pointers::{AddressMap, pointers};
use super::pruned::{PruneCounts, PrunedFile};
use super::tables::ImageTables;
use super::units::{UNIT_SECTIONS, units};
use crate::container::large::LARGE_SECTION;
use crate::format::bytes::ReadAt;
use crate::format::pieces::{self, Piece};

/// Prunes a linked ELF file. If device code in `.lrodata` cannot be pruned, it stays as it is.
pub(super) fn linked<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    job: PruneJob<'_>,
) -> Result<PrunedFile, PruneError> {
    match linked_with(data, headers, job, LargeData::Pruned) {
        Err(error) if is_of_large_data(data, headers, &error) => {
            let without = linked_with(data, headers, job, LargeData::Left);
            match without {
                Ok(file) => with_large_data(data, headers, job, file, error),
                // It has no other images.
                Err(without) if matches!(without.problem, PruneProblem::NoImages) => Err(error),
                // Other images cannot be pruned, either, and those of `.lrodata` may stay.
                Err(without) => Err(without),
            }
        }
        result => result,
    }
}

fn linked_with<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    job: PruneJob<'_>,
    large: LargeData,
) -> Result<PrunedFile, PruneError> {
    let (mut sections, mut counts) = (Vec::new(), PruneCounts::default());
    for name in UNIT_SECTIONS.into_iter().chain([LARGE_SECTION]) {
        let Some(index) = headers.find(name) else {
            continue;
        };
        let header = headers.section(index);
        if header.size == 0 || !header.is_allocated() || large.leaves(name.as_bytes()) {
            continue;
        }
        let here = |problem| PruneError::in_section(name.as_bytes(), problem);
        let parts = unit_parts(data, name.as_bytes(), header.range());
        let mut all = Vec::new();
        for part in parts.map_err(here)? {
            all.extend(units(data, part, job, &mut counts).map_err(here)?);
        }
        if !all.is_empty() {
            sections.push(UnitSection::new(headers, index, all).map_err(here)?);
        }
    }
    let (mut tables, mut left) = (ImageTables::default(), Vec::new());
    match ImageTables::read(data, headers, job, large) {
        Ok((found, binaries, found_counts)) => {
            tables = found;
            sections.extend(binaries);
            counts.append(&found_counts);
        }
        // Other images of the file can be pruned.
        Err(error) if error.problem.is_unsupported() && !sections.is_empty() => left.push(error),
        Err(error) => return Err(error),
    }
    if sections.is_empty() {
        return Err(PruneError::whole(PruneProblem::NoImages));
    }
    if counts.is_unchanged() {
        let units = sections.into_iter().flat_map(|section| section.units);
        let file = PrunedFile::unchanged(headers.size, units, counts);
        return Ok(PrunedFile { left, ..file });
    }
    let layout = PruneLayout::new(headers, sections).map_err(PruneError::whole)?;
    let rewriter = Rewriter {
        data,
        headers,
        layout: &layout,
        tables: &tables,
    };
    let file = rewriter.file(counts).map_err(PruneError::whole)?;
    Ok(PrunedFile { left, ..file })
}

struct Rewriter<'a, R> {
    data: R,
    headers: &'a ElfHeaders,
    layout: &'a PruneLayout,
    tables: &'a ImageTables,
}

/// New content at offsets of the old file; parts do not overlap, and are as long as what they replace.
type Replacements = BTreeMap<u64, Vec<Piece>>;

impl<'d, R: ReadAt<'d>> Rewriter<'_, R> {
    fn file(&self, counts: PruneCounts) -> Result<PrunedFile, PruneProblem> {
        let table_words = self.tables.words(self.data, self.headers, self.layout)?;
        let addresses = AddressMap {
            table_words: self.tables.addresses(),
            ..self.layout.addresses(self.headers)
        };
        let mut words = pointers(self.data, self.headers, &addresses)?;
        words.extend(table_words);
        let mut bytes: BTreeMap<u64, Vec<u8>> = words
            .into_iter()
            .map(|(offset, word)| (offset, word.to_le_bytes().to_vec()))
            .collect();
        let order = self.section_order();
        if let Some(moved) = &self.layout.moved {
            self.change_dynamic(moved, &mut bytes)?;
            self.change_symbols(moved, &order, &mut bytes)?;
        }
        let moved = self.layout.moved.as_ref();
        let moved = moved
            .map(|moved| self.take_moved(moved, &mut bytes))
            .transpose()?;
        let mut replacements: Replacements = bytes
            .into_iter()
            .map(|(offset, bytes)| (offset, vec![Piece::Bytes(bytes)]))
            .collect();
        let segments = self.segments();
        self.replace_headers(&segments, &order, &mut replacements);
        let copied = self.replace_units(moved.as_deref(), &mut replacements);
        let pieces = self.pieces(replacements);
        Ok(PrunedFile {
            size: pieces::size(&pieces),
            pieces,
            counts,
            copied,
            left: Vec::new(),
        })
    }

    /// Returns the offset in the new file.
    fn offset(&self, old: u64) -> u64 {
        let cuts = self.layout.cuts.iter();
        let before = cuts.map(|cut| old.min(cut.range.end).saturating_sub(cut.range.start));
        old - before.sum::<u64>()
    }

    /// Returns the old indices of sections in their new order: moved sections follow the section of units.
    fn section_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.headers.sections.len()).collect();
        if let Some(moved) = &self.layout.moved {
            order.retain(|index| !moved.sections.contains(index));
            let host = order.iter().position(|index| *index == moved.host);
            let place = host.expect("the section of units does not move") + 1;
            order.splice(place..place, moved.sections.iter().copied());
        }
        order
    }

    /// Changes the dynamic entries that have addresses of moved sections.
    fn change_dynamic(
        &self,
        moved: &MovedBlock,
        bytes: &mut BTreeMap<u64, Vec<u8>>,
    ) -> Result<(), PruneProblem> {
        /// Entries with the addresses of a hash table and of symbols.
        const TAGS: [u64; 3] = [4, 0x6fff_fef5, 6];
        let sections = self.headers.sections.iter();
        for section in sections.filter(|at| at.kind == elf::SHT_DYNAMIC.0) {
            let entries = records(self.data, section, DynamicEntry::LEN, DynamicEntry::read)?;
            for (offset, entry) in entries {
                let is_moved = moved.old_addresses.contains(&entry.value);
                if TAGS.contains(&entry.tag) && is_moved {
                    let new = moved.address + (entry.value - moved.old_addresses.start);
                    bytes.insert(offset + 8, new.to_le_bytes().to_vec());
                }
            }
        }
        Ok(())
    }

    /// Gives symbols the new numbers of their sections, and new values if these moved.
    fn change_symbols(
        &self,
        moved: &MovedBlock,
        order: &[usize],
        bytes: &mut BTreeMap<u64, Vec<u8>>,
    ) -> Result<(), PruneProblem> {
        let numbers = new_numbers(order);
        for section in &self.headers.sections {
            let kind = elf::SectionType(section.kind);
            if kind == elf::SHT_SYMTAB_SHNDX {
                return Err(PruneProblem::NoRoom);
            }
            if ![elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&kind) {
                continue;
            }
            let mut table = Vec::new();
            for (_, mut symbol) in records(self.data, section, Symbol64::LEN, Symbol64::read)? {
                let is_moved = moved.sections.contains(&usize::from(symbol.section));
                if is_moved && moved.old_addresses.contains(&symbol.value) {
                    symbol.value = moved.address + (symbol.value - moved.old_addresses.start);
                }
                // Section 0 stays 0; reserved numbers are larger than any section's.
                if let Some(number) = number_of(&numbers, symbol.section.into()) {
                    symbol.section = number;
                }
                symbol.write(&mut table);
            }
            take_into(section.range(), &mut table, bytes);
            bytes.insert(section.offset, table);
        }
        Ok(())
    }

    /// Returns the bytes of moved sections, with their changes.
    fn take_moved(
        &self,
        moved: &MovedBlock,
        bytes: &mut BTreeMap<u64, Vec<u8>>,
    ) -> Result<Vec<u8>, PruneProblem> {
        let size = moved.old.end - moved.old.start;
        let outside = crate::format::bytes::OutOfBounds::check(
            "moved sections",
            moved.old.start,
            size,
            self.headers.size,
        );
        outside.map_err(PruneProblem::Outside)?;
        let old = self.data.read_at(moved.old.start, size);
        let mut content = old.ok_or(PruneProblem::NoRoom)?.to_vec();
        take_into(moved.old.clone(), &mut content, bytes);
        Ok(content)
    }

    /// Returns the new program headers, with offsets in the old file.
    fn segments(&self) -> Vec<ProgramHeader64> {
        let mut segments = Vec::new();
        let count = |segments: &[ProgramHeader64]| segments.len() as u64 * ProgramHeader64::LEN;
        for segment in &self.headers.segments {
            let mut current = *segment;
            if current.kind == elf::PT_PHDR.0 && self.layout.is_phdr_reused {
                continue;
            }
            if !current.is_load() {
                if let Some(moved) = &self.layout.moved {
                    let is_inside = moved.old.start <= current.offset
                        && current.range().end <= moved.old.end
                        && current.file_size > 0;
                    if is_inside {
                        let distance = current.offset - moved.old.start;
                        current.offset = moved.offset + distance;
                        current.address = moved.address + distance;
                        current.physical = current.address;
                    }
                }
                segments.push(current);
                continue;
            }
            let cuts = self.layout.cuts.iter();
            let old = segment.range();
            for cut in cuts.filter(|cut| old.contains(&(cut.content_end - 1))) {
                let mut after = current;
                current.file_size = cut.content_end - current.offset;
                current.memory_size = current.file_size;
                if cut.is_last {
                    continue;
                }
                segments.push(self.without_code(current));
                let distance = cut.range.end - after.offset;
                after.offset += distance;
                after.address += distance;
                // Nothing reads it, so it may be any number.
                after.physical = after.physical.wrapping_add(distance);
                after.file_size -= distance;
                after.memory_size -= distance;
                current = after;
            }
            segments.push(match current == *segment {
                true => current,
                false => self.without_code(current),
            });
        }
        let size = count(&segments);
        let tables = segments.iter_mut().filter(|at| at.kind == elf::PT_PHDR.0);
        for table in tables {
            table.file_size = size;
            table.memory_size = size;
        }
        segments
    }

    /// Returns a part of a segment, not executable if it has no code.
    fn without_code(&self, mut part: ProgramHeader64) -> ProgramHeader64 {
        let mut code =
            self.headers.sections.iter().filter(|section| {
                section.flags & elf::SHF_EXECINSTR.0 != 0 && section.has_content()
            });
        if !code.any(|section| part.range().contains(&section.offset)) {
            part.flags &= !elf::PF_X.0;
        }
        part
    }

    /// Replaces file header, program headers and section headers.
    fn replace_headers(
        &self,
        segments: &[ProgramHeader64],
        order: &[usize],
        replacements: &mut Replacements,
    ) {
        let numbers = new_numbers(order);
        let mut file = self.headers.file;
        file.sections_offset = self.offset(file.sections_offset);
        // Counts of sections have 16 bits, and a few program headers more do not exceed them.
        file.segment_count = segments.len() as u16;
        file.names = number_of(&numbers, file.names.into()).expect("the names were read");
        let mut bytes = Vec::new();
        file.write(&mut bytes);
        replacements.insert(0, vec![Piece::Bytes(bytes)]);

        let mut table = Vec::new();
        for segment in segments {
            let offset = self.offset(segment.offset);
            segment.at_offset(offset).write(&mut table);
        }
        let start = file.segments_offset;
        let end = start + table.len() as u64;
        let old_end = start + self.headers.segments.len() as u64 * ProgramHeader64::LEN;
        let mut pieces = vec![Piece::Bytes(table)];
        let freed = self
            .layout
            .moved
            .as_ref()
            .map_or(old_end, |moved| moved.old.end);
        pieces.push(Piece::Zeros(freed.max(old_end).saturating_sub(end)));
        replacements.insert(start, pieces);

        let mut table = Vec::new();
        for index in order {
            self.section(*index, &numbers).write(&mut table);
        }
        let start = self.headers.file.sections_offset;
        replacements.insert(start, vec![Piece::Bytes(table)]);
    }

    /// Returns the new header of a section.
    fn section(&self, index: usize, numbers: &[u16]) -> SectionHeader64 {
        let mut section = self.headers.section(index);
        if let Some(pruned) = self.layout.sections.iter().find(|at| at.index == index) {
            section.size = pruned.size;
        }
        if let Some(moved) = &self.layout.moved {
            if moved.sections.contains(&index) {
                let distance = section.offset - moved.old.start;
                section.offset = moved.offset + distance;
                section.address = moved.address + distance;
            }
        }
        section.offset = self.offset(section.offset);
        let renumbered = |number: u32| number_of(numbers, number).map_or(number, u32::from);
        section.link = renumbered(section.link);
        let is_of_section = [elf::SHT_REL, elf::SHT_RELA].contains(&elf::SectionType(section.kind))
            || section.flags & elf::SHF_INFO_LINK.0 != 0;
        if is_of_section {
            section.info = renumbered(section.info);
        }
        section
    }

    /// Replaces the content of the sections of units, and returns old and new ranges of the copied images.
    fn replace_units(
        &self,
        moved: Option<&[u8]>,
        replacements: &mut Replacements,
    ) -> Vec<(Range<u64>, Range<u64>)> {
        let mut copied = Vec::new();
        for section in &self.layout.sections {
            let header = self.headers.section(section.index);
            let (mut pieces, mut end) = (Vec::new(), 0);
            for (unit, place) in section.units.iter().zip(&section.places) {
                pieces.push(Piece::Zeros(place - end));
                pieces.extend(unit.pieces.iter().cloned());
                end = place + unit.size;
                copied.extend(unit.copied.iter().map(|(old, offset)| {
                    let new = self.offset(header.offset + place + offset);
                    (old.clone(), new..new + (old.end - old.start))
                }));
            }
            if let (Some(block), Some(bytes)) = (&self.layout.moved, moved) {
                if block.host == section.index {
                    let place = block.offset - header.offset;
                    pieces.push(Piece::Zeros(place - end));
                    pieces.push(Piece::Bytes(bytes.to_vec()));
                    end = place + bytes.len() as u64;
                }
            }
            pieces.push(Piece::Zeros(header.size - end));
            replacements.insert(header.offset, pieces);
        }
        copied
    }

    /// Returns the old file with the replacements, without the pages that are cut.
    fn pieces(&self, replacements: Replacements) -> Vec<Piece> {
        let sized = |(start, new): (u64, Vec<Piece>)| (start, (pieces::size(&new), new));
        let changes = replacements.into_iter().map(sized).collect();
        let all = pieces::replaced(0..self.headers.size, changes);
        let copy = |range| Piece::Copy { input: 0, range };
        let (mut kept, mut position) = (Vec::new(), 0);
        for cut in &self.layout.cuts {
            kept.push(copy(position..cut.range.start.max(position)));
            position = position.max(cut.range.end);
        }
        kept.push(copy(position..pieces::size(&all).max(position)));
        pieces::replace_inputs(&kept, &[&all]).expect("the cuts are parts of the file")
    }
}

/// Returns the new number of each section by its old one.
fn new_numbers(order: &[usize]) -> Vec<u16> {
    let mut numbers = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        // The count of sections has 16 bits.
        let number = numbers.get_mut(*old).expect("each section is there once");
        *number = new as u16;
    }
    numbers
}

/// Returns the new number of a section; `None` for a number that is not one of a section.
fn number_of(numbers: &[u16], old: u32) -> Option<u16> {
    numbers.get(usize::try_from(old).ok()?).copied()
}

/// Moves the changes inside of a range into its content.
fn take_into(range: Range<u64>, content: &mut [u8], bytes: &mut BTreeMap<u64, Vec<u8>>) {
    let inside: Vec<u64> = bytes
        .range(range.clone())
        .map(|(offset, _)| *offset)
        .collect();
    for offset in inside {
        let change = bytes.remove(&offset).expect("the key is in the map");
        let start = usize::try_from(offset - range.start).ok();
        let place = start.and_then(|start| content.get_mut(start..start + change.len()));
        if let Some(place) = place {
            place.copy_from_slice(&change);
        }
    }
}
