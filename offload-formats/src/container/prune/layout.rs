//! Layout of the new file: places of units, pages that are cut, room for the program headers.

use std::ops::Range;

use object::elf;

use super::address_uses::MovedUnit;
use super::elf_headers::{ElfHeaders, ProgramHeader64};
use super::error::PruneProblem;
use super::pointers::AddressMap;
use super::pruned::PrunedUnit;

/// A section of units.
#[derive(Debug)]
pub(super) struct UnitSection {
    /// Index of the section.
    pub index: usize,
    pub units: Vec<PrunedUnit>,
    /// Offset of each unit from the start of the section, in order.
    pub places: Vec<u64>,
    /// New size of the section in bytes.
    pub size: u64,
    /// True if tables of images point into the units, which are offload binaries.
    pub is_table: bool,
}

impl UnitSection {
    /// Places units one after the other, from the start of the section.
    pub(super) fn new(
        headers: &ElfHeaders,
        index: usize,
        units: Vec<PrunedUnit>,
    ) -> Result<Self, PruneProblem> {
        let section = headers.section(index);
        let (mut places, mut end) = (Vec::new(), 0_u64);
        for unit in &units {
            let old = section.address + (unit.old.start - section.offset);
            // A unit keeps the alignment that it has, if it is one that loaders need.
            let alignment = match old % unit.alignment {
                0 => unit.alignment,
                _ => 8.min(unit.alignment),
            };
            let address = (section.address + end).next_multiple_of(alignment);
            let place = address - section.address;
            places.push(place);
            end = place + unit.size;
        }
        match end > section.size {
            true => Err(PruneProblem::Grew),
            false => Ok(Self {
                index,
                units,
                places,
                size: end,
                is_table: false,
            }),
        }
    }

    /// Places the offload binaries of a linked program.
    pub(super) fn of_table(
        headers: &ElfHeaders,
        index: usize,
        mut units: Vec<PrunedUnit>,
    ) -> Result<Self, PruneProblem> {
        let alignment = headers.section(index).alignment;
        for unit in &mut units {
            if alignment.is_power_of_two() {
                unit.alignment = unit.alignment.max(alignment.min(headers.page()));
            }
        }
        let is_table = true;
        let placed = Self::new(headers, index, units)?;
        Ok(Self { is_table, ..placed })
    }
}

/// Pages that are cut out of the file.
#[derive(Clone, Debug)]
pub(super) struct PageCut {
    /// Range of the old file, in whole pages.
    pub range: Range<u64>,
    /// End of the content before it, in the old file.
    pub content_end: u64,
    /// True if the section is the last one of its segment, which then becomes shorter and is not split.
    pub is_last: bool,
}

/// Sections that made room for program headers: they follow the units of another section.
#[derive(Clone, Debug)]
pub(super) struct MovedBlock {
    /// Range in the old file.
    pub old: Range<u64>,
    /// Addresses in the old file.
    pub old_addresses: Range<u64>,
    /// Offset of the new place, in the old file.
    pub offset: u64,
    /// Address of the new place.
    pub address: u64,
    /// Indices of the sections.
    pub sections: Vec<usize>,
    /// Index of the section of units that it follows.
    pub host: usize,
}

/// Plan of a new file.
#[derive(Debug)]
pub(super) struct PruneLayout {
    pub sections: Vec<UnitSection>,
    /// Pages to cut, in ascending order.
    pub cuts: Vec<PageCut>,
    pub moved: Option<MovedBlock>,
    /// True if the header `PT_PHDR` gives its place to another one.
    pub is_phdr_reused: bool,
}

impl PruneLayout {
    pub(super) fn new(
        headers: &ElfHeaders,
        sections: Vec<UnitSection>,
    ) -> Result<Self, PruneProblem> {
        let mut layout = Self {
            sections,
            cuts: Vec::new(),
            moved: None,
            is_phdr_reused: false,
        };
        match layout.plan(headers, headers.page()) {
            // Larger pages make fewer cuts, or none, and each cut needs a program header.
            Err(PruneProblem::NoRoom) => layout.plan(headers, headers.segment_alignment())?,
            result => result?,
        }
        Ok(layout)
    }

    /// Finds the cuts, which are whole pages of that size, and room for the program headers that they need.
    fn plan(&mut self, headers: &ElfHeaders, page: u64) -> Result<(), PruneProblem> {
        self.cut(headers, page)?;
        let needed = self.cuts.iter().filter(|cut| !cut.is_last).count();
        if needed > 0 {
            self.find_room(headers, needed)?;
            // The moved sections need pages, too.
            self.cut(headers, page)?;
        }
        Ok(())
    }

    /// Returns old and new addresses of all units.
    pub(super) fn addresses(&self, headers: &ElfHeaders) -> AddressMap {
        let mut map = AddressMap::default();
        for section in &self.sections {
            let header = headers.section(section.index);
            map.sections.push(header.addresses());
            if section.is_table {
                map.tables.push(header.addresses());
            }
            for (unit, place) in section.units.iter().zip(&section.places) {
                let old = header.address + (unit.old.start - header.offset);
                let moved = MovedUnit {
                    address: header.address + place,
                    old_size: unit.old.end - unit.old.start,
                    size: unit.size,
                    offset: unit.old.start,
                };
                map.units.insert(old, moved);
                // The host's image is empty, and another one is at its address.
                let images = unit.copied.iter().filter(|(image, _)| !image.is_empty());
                let images = images.map(|(image, at)| {
                    let old = header.address + (image.start - header.offset);
                    (old, moved.address + at)
                });
                map.images.extend(images);
            }
        }
        map
    }

    /// Returns the end of a section's content in the old file, with moved sections.
    fn content_end(&self, headers: &ElfHeaders, section: &UnitSection) -> u64 {
        match &self.moved {
            Some(moved) if moved.host == section.index => {
                moved.offset + (moved.old.end - moved.old.start)
            }
            _ => headers.section(section.index).offset + section.size,
        }
    }

    /// Finds the pages to cut after each section's content.
    fn cut(&mut self, headers: &ElfHeaders, page: u64) -> Result<(), PruneProblem> {
        let mut cuts = Vec::new();
        for section in &self.sections {
            let old = headers.section(section.index).range();
            let content_end = self.content_end(headers, section);
            let start = content_end.next_multiple_of(page);
            let mut loads = headers.segments.iter().filter(|segment| segment.is_load());
            let segment =
                loads.find(|segment| segment.offset <= old.start && old.end <= segment.range().end);
            let spans = || PruneProblem::Spans {
                what: format!("section {}, which no segment contains,", section.index),
            };
            let segment = segment.ok_or_else(spans)?;
            let is_last =
                old.end == segment.range().end && segment.file_size == segment.memory_size;
            let end = match is_last {
                true => {
                    let next = next_content(headers, &old);
                    start + next.saturating_sub(start) / page * page
                }
                false => old.end / page * page,
            };
            if end > start {
                cuts.push(PageCut {
                    range: start..end,
                    content_end,
                    is_last,
                });
            }
        }
        cuts.sort_by_key(|cut| cut.range.start);
        self.cuts = cuts;
        self.check(headers)
    }

    /// Checks that nothing but units is cut.
    fn check(&self, headers: &ElfHeaders) -> Result<(), PruneProblem> {
        for (index, section) in headers.sections.iter().enumerate() {
            let is_pruned = self.sections.iter().any(|pruned| pruned.index == index);
            if is_pruned || !section.has_content() || section.size == 0 {
                continue;
            }
            let pruned = self.sections.iter();
            let mut pruned = pruned.map(|pruned| headers.section(pruned.index).range());
            if pruned.any(|range| overlap(&range, &section.range())) {
                let what = format!("section {index}");
                return Err(PruneProblem::Spans { what });
            }
        }
        for segment in headers.segments.iter().filter(|segment| !segment.is_load()) {
            let mut cuts = self.cuts.iter();
            if segment.file_size > 0 && cuts.any(|cut| overlap(&cut.range, &segment.range())) {
                let what = format!("the segment of type {:#x}", segment.kind);
                return Err(PruneProblem::Spans { what });
            }
        }
        // Headers are split for one segment.
        for cut in &self.cuts {
            let removed = cut.content_end.saturating_sub(1)..cut.range.end;
            let loads = headers.segments.iter().filter(|segment| segment.is_load());
            let loads = loads.filter(|segment| overlap(&segment.range(), &removed));
            if loads.count() > 1 {
                let what = "a loaded segment, in another one,".to_owned();
                return Err(PruneProblem::Spans { what });
            }
        }
        Ok(())
    }

    /// Finds room for `needed` more program headers: after the table, or in place of sections that move.
    fn find_room(&mut self, headers: &ElfHeaders, needed: usize) -> Result<(), PruneProblem> {
        let start = headers.file.segments_offset;
        let count = headers.segments.len() as u64 + needed as u64;
        let end = start + count * ProgramHeader64::LEN;
        let mut block = Vec::new();
        for (index, section) in headers.sections.iter().enumerate() {
            let is_behind = section.offset >= start && section.offset < end;
            if section.has_content() && is_behind && section.size > 0 {
                block.push(index);
            }
        }
        let is_free = block.is_empty() && end <= first_other(headers, end);
        if is_free {
            return Ok(());
        }
        let is_program = headers.file.entry != 0
            || headers
                .segments
                .iter()
                .any(|at| at.kind == elf::PT_INTERP.0);
        let has_phdr = headers.segments.iter().any(|at| at.kind == elf::PT_PHDR.0);
        if needed == 1 && has_phdr && !is_program {
            self.is_phdr_reused = true;
            return Ok(());
        }
        self.moved = Some(self.move_block(headers, block)?);
        Ok(())
    }

    /// Plans a new place for sections and for those that belong to them.
    fn move_block(
        &self,
        headers: &ElfHeaders,
        mut block: Vec<usize>,
    ) -> Result<MovedBlock, PruneProblem> {
        let range = loop {
            let ranges = block.iter().map(|index| headers.section(*index).range());
            let range = ranges
                .reduce(|one, two| one.start.min(two.start)..one.end.max(two.end))
                .ok_or(PruneProblem::NoRoom)?;
            // Notes of a segment keep their distances, so all of them move.
            let notes = headers
                .segments
                .iter()
                .filter(|segment| is_note(segment) && overlap(&segment.range(), &range));
            let whole = notes.fold(range.clone(), |all, notes| {
                all.start.min(notes.offset)..all.end.max(notes.range().end)
            });
            let all = headers.sections.iter().enumerate().filter(|(_, section)| {
                section.has_content() && section.size > 0 && overlap(&section.range(), &whole)
            });
            let all: Vec<usize> = all.map(|(index, _)| index).collect();
            if all == block && range == whole {
                break range;
            }
            block = all;
        };
        let mut alignment = 8;
        for index in &block {
            let section = headers.section(*index);
            let is_movable = headers.name(*index) == b".interp"
                || [
                    elf::SHT_NOTE,
                    elf::SHT_HASH,
                    elf::SHT_GNU_HASH,
                    elf::SHT_DYNSYM,
                ]
                .contains(&elf::SectionType(section.kind));
            let is_aligned = section.alignment.is_power_of_two() && section.alignment <= 0x1000;
            if !is_movable || !(is_aligned || section.alignment == 0) {
                return Err(PruneProblem::NoRoom);
            }
            alignment = alignment.max(section.alignment);
        }
        let first = headers.section(*block.first().expect("the block has a section"));
        let old_address = first.address - (first.offset - range.start);
        let size = range.end - range.start;
        let mut hosts: Vec<&UnitSection> = self.sections.iter().collect();
        let free = |host: &&UnitSection| headers.section(host.index).size - host.size;
        hosts.sort_by_key(|host| std::cmp::Reverse(free(host)));
        for host in hosts {
            let header = headers.section(host.index);
            // The same remainder, so that every section in it keeps its alignment.
            let free = header.address + host.size;
            let distance = old_address.wrapping_sub(free) % alignment;
            let place = host.size + distance;
            let is_cut = self
                .cuts
                .iter()
                .any(|cut| header.range().contains(&(cut.range.start)));
            if is_cut && place + size <= header.size {
                return Ok(MovedBlock {
                    old_addresses: old_address..old_address + size,
                    offset: header.offset + place,
                    address: header.address + place,
                    sections: block,
                    host: host.index,
                    old: range,
                });
            }
        }
        Err(PruneProblem::NoRoom)
    }
}

/// Tells whether a segment's content is notes or properties.
fn is_note(segment: &ProgramHeader64) -> bool {
    [elf::PT_NOTE.0, elf::PT_GNU_PROPERTY.0].contains(&segment.kind)
}

fn overlap(one: &Range<u64>, two: &Range<u64>) -> bool {
    one.start < two.end && two.start < one.end
}

/// Returns the offset of the first section, table or segment after a section of units, or the end of the file.
fn next_content(headers: &ElfHeaders, section: &Range<u64>) -> u64 {
    let sections = headers
        .sections
        .iter()
        .filter(|at| at.has_content() && at.size > 0);
    let segments = headers.segments.iter().filter(|at| at.file_size > 0);
    let starts = sections
        .map(|at| at.offset)
        .chain(segments.map(|at| at.offset))
        .chain([headers.file.sections_offset, headers.size]);
    let after = starts.filter(|start| *start >= section.end);
    after
        .min()
        .expect("the end of the file is after every section")
}

/// Returns the offset of the section headers or the first segment after the program headers, or else the end of the
/// file. `end` is the result if none of them is after the program headers.
fn first_other(headers: &ElfHeaders, end: u64) -> u64 {
    let table = headers.file.segments_offset;
    let segments = headers
        .segments
        .iter()
        .filter(|segment| segment.file_size > 0);
    let starts = segments
        .map(|segment| segment.offset)
        .chain([headers.file.sections_offset, headers.size]);
    starts
        .filter(|start| *start > table)
        .min()
        .map_or(end, |first| first)
}
