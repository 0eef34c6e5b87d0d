//! The headers of a 64-bit little-endian ELF file: read, changed, written.
//!
//! Specification: <https://gabi.xinuos.com>.

use std::ops::Range;

use object::elf;

use super::error::PruneProblem;
use crate::container::elf::Elf;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt, record};

record! {
    pub(crate) struct FileHeader64, "file header", 64 bytes {
        0x00 ident: [u8; 16],
        0x10 file_type: u16,
        0x12 machine: u16,
        0x14 version: u32,
        0x18 entry: u64,
        0x20 segments_offset: u64,
        0x28 sections_offset: u64,
        0x30 flags: u32,
        0x34 header_size: u16,
        0x36 segment_size: u16,
        0x38 segment_count: u16,
        0x3a section_size: u16,
        0x3c section_count: u16,
        0x3e names: u16,
    }
}

record! {
    pub(crate) struct ProgramHeader64, "program header", 56 bytes {
        0x00 kind: u32,
        0x04 flags: u32,
        0x08 offset: u64,
        0x10 address: u64,
        0x18 physical: u64,
        0x20 file_size: u64,
        0x28 memory_size: u64,
        0x30 alignment: u64,
    }
}

record! {
    pub(crate) struct SectionHeader64, "section header", 64 bytes {
        0x00 name: u32,
        0x04 kind: u32,
        0x08 flags: u64,
        0x10 address: u64,
        0x18 offset: u64,
        0x20 size: u64,
        0x28 link: u32,
        0x2c info: u32,
        0x30 alignment: u64,
        0x38 entry_size: u64,
    }
}

record! {
    pub(crate) struct Symbol64, "symbol", 24 bytes {
        0x00 name: u32,
        0x04 info: [u8; 1],
        0x05 other: [u8; 1],
        0x06 section: u16,
        0x08 value: u64,
        0x10 size: u64,
    }
}

record! {
    pub(crate) struct DynamicEntry, "dynamic entry", 16 bytes {
        0x00 tag: u64,
        0x08 value: u64,
    }
}

/// Page size that every supported system has.
const LEAST_PAGE: u64 = 0x1000;

/// The headers of a file.
#[derive(Clone, Debug)]
pub(super) struct ElfHeaders {
    pub file: FileHeader64,
    pub segments: Vec<ProgramHeader64>,
    pub sections: Vec<SectionHeader64>,
    /// Name of each section.
    pub names: Vec<Vec<u8>>,
    /// Size of the file in bytes.
    pub size: u64,
}

impl ElfHeaders {
    pub(super) fn read<'d, R: ReadAt<'d>>(data: R) -> Result<Self, PruneProblem> {
        let size = data.size().unwrap_or(0);
        // Headers of other classes are smaller.
        let ident = data.read_at(0, 6).unwrap_or_default();
        if ident != b"\x7fELF\x02\x01" {
            return Err(PruneProblem::ElfKind);
        }
        let mut cursor = Cursor::new(data, 0..size);
        let file = FileHeader64::read(&mut cursor).map_err(PruneProblem::Outside)?;
        let is_known_machine = [elf::EM_X86_64.0, elf::EM_AARCH64.0].contains(&file.machine);
        let is_object = file.file_type == elf::ET_REL.0 && file.segment_count == 0;
        let is_linked = [elf::ET_EXEC.0, elf::ET_DYN.0].contains(&file.file_type)
            && u64::from(file.segment_size) == ProgramHeader64::LEN;
        let is_known = is_known_machine
            && (is_linked || is_object)
            && u64::from(file.section_size) == SectionHeader64::LEN;
        if !is_known || file.segment_count == u16::MAX || file.sections_offset == 0 {
            return Err(PruneProblem::ElfKind);
        }
        // The count is in the first section header.
        if file.section_count == 0 {
            return Err(PruneProblem::ManySections);
        }
        // Checks the tables, and the names.
        let checked = Elf::parse(data, 0..size).map_err(PruneProblem::Elf)?;
        let names = checked.names().map_err(PruneProblem::Elf)?;
        let names = checked.sections().map(|section| match section.index {
            0 => Ok(Vec::new()),
            _ => names.of(&section).map(<[u8]>::to_vec),
        });
        let names = names
            .collect::<Result<Vec<_>, _>>()
            .map_err(PruneProblem::Elf)?;
        let mut segments = Vec::new();
        let mut cursor = cursor.at(file.segments_offset);
        for _ in 0..file.segment_count {
            segments.push(ProgramHeader64::read(&mut cursor).map_err(PruneProblem::Outside)?);
        }
        let mut sections = Vec::new();
        let mut cursor = cursor.at(file.sections_offset);
        for _ in 0..file.section_count {
            sections.push(SectionHeader64::read(&mut cursor).map_err(PruneProblem::Outside)?);
        }
        let headers = Self {
            file,
            segments,
            sections,
            names,
            size,
        };
        headers.check()?;
        Ok(headers)
    }

    /// Checks that every segment and section with content is inside the file, that a loaded segment's content is inside
    /// its memory, and that no sum overflows.
    fn check(&self) -> Result<(), PruneProblem> {
        for segment in &self.segments {
            OutOfBounds::check("segment", segment.offset, segment.file_size, self.size)
                .map_err(PruneProblem::Outside)?;
            let memory = segment.memory_size.max(segment.file_size);
            OutOfBounds::check("segment in memory", segment.address, memory, u64::MAX >> 1)
                .map_err(PruneProblem::Outside)?;
            let size = match segment.is_load() {
                true => segment.memory_size,
                false => memory,
            };
            let (start, end) = (segment.address, segment.address + size);
            OutOfBounds::check("content of a segment", start, segment.file_size, end)
                .map_err(PruneProblem::Outside)?;
        }
        for section in &self.sections {
            if section.has_content() {
                OutOfBounds::check("section", section.offset, section.size, self.size)
                    .map_err(PruneProblem::Outside)?;
            }
            OutOfBounds::check(
                "section in memory",
                section.address,
                section.size,
                u64::MAX >> 1,
            )
            .map_err(PruneProblem::Outside)?;
        }
        Ok(())
    }

    /// Returns the section with that index, which must be one of a section.
    pub(super) fn section(&self, index: usize) -> SectionHeader64 {
        let section = self.sections.get(index);
        *section.expect("indices come from the list of sections")
    }

    /// Returns the name of the section with that index.
    pub(super) fn name(&self, index: usize) -> &[u8] {
        self.names.get(index).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of the section with that name and content.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let mut all = self.names.iter().zip(&self.sections);
        all.position(|(is, section)| is == name.as_bytes() && section.has_content())
    }

    /// Returns the addresses of the section with that name and content; none without it.
    pub(super) fn addresses_of(&self, name: &str) -> Range<u64> {
        let index = self.find(name);
        index.map_or(0..0, |index| self.section(index).addresses())
    }

    /// Returns the file offset of an address, if a segment has it in the file.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let mut loads = self.segments.iter().filter(|segment| segment.is_load());
        let segment = loads.find(|segment| {
            (segment.address..segment.address + segment.file_size).contains(&address)
        })?;
        Some(segment.offset + (address - segment.address))
    }

    /// Tells whether the file is a relocatable object.
    pub(super) fn is_object(&self) -> bool {
        self.file.file_type == elf::ET_REL.0
    }

    /// Returns the largest alignment of the header table and of sections that start at or after an offset.
    pub(super) fn alignment_after(&self, offset: u64) -> u64 {
        /// Alignment of the header table.
        const TABLE: u64 = 8;
        let sections = self.sections.iter();
        let after = sections.filter(|section| section.has_content() && section.offset >= offset);
        let alignments = after.map(|section| section.alignment);
        let largest = alignments.filter(|at| at.is_power_of_two()).max();
        largest.map_or(TABLE, |largest| largest.max(TABLE))
    }

    /// Returns the alignment of removed pages, which loaded segments keep: that of the segments. On x86-64, whose pages have 4 KiB,
    /// old linkers align segments to 2 MiB; only sections with a large alignment need it.
    pub(super) fn page(&self) -> u64 {
        /// Largest page of any system.
        const LARGEST: u64 = 0x1_0000;
        let segments = self.segment_alignment();
        if self.file.machine != elf::EM_X86_64.0 || segments <= LARGEST {
            return segments;
        }
        let sections = self.sections.iter();
        let sections = sections.filter(|section| section.is_allocated());
        let sections = largest_power(sections.map(|section| section.alignment));
        sections.clamp(LEAST_PAGE, segments)
    }

    /// Returns the largest alignment of the loaded segments.
    pub(super) fn segment_alignment(&self) -> u64 {
        let loads = self.segments.iter().filter(|segment| segment.is_load());
        largest_power(loads.map(|segment| segment.alignment)).max(LEAST_PAGE)
    }
}

fn largest_power(alignments: impl Iterator<Item = u64>) -> u64 {
    let powers = alignments.filter(|alignment| alignment.is_power_of_two());
    powers.max().unwrap_or(1)
}

impl ProgramHeader64 {
    /// Returns the header of the segment at another offset in the file. Loaders need equal remainders of offset and address, so
    /// the alignment may become smaller.
    pub(super) fn at_offset(self, offset: u64) -> Self {
        let alignment = match self.is_load() && self.alignment.is_power_of_two() {
            // An alignment is a power of two, and so is that of the difference; no difference has any alignment.
            true => match offset.wrapping_sub(self.address) {
                0 => self.alignment,
                distance => self.alignment.min(1 << distance.trailing_zeros()),
            },
            false => self.alignment,
        };
        Self {
            offset,
            alignment,
            ..self
        }
    }

    pub(super) fn is_load(&self) -> bool {
        self.kind == elf::PT_LOAD.0
    }

    /// Returns its range in the file.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.file_size
    }
}

impl SectionHeader64 {
    /// Tells whether the section has bytes in the file.
    pub(super) fn has_content(&self) -> bool {
        ![elf::SHT_NULL.0, elf::SHT_NOBITS.0].contains(&self.kind)
    }

    pub(super) fn is_allocated(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    pub(super) fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// Returns its range in the file.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }

    /// Returns its range in memory.
    pub(super) fn addresses(&self) -> Range<u64> {
        self.address..self.address + self.size
    }
}

/// Reads the records of a section, each with its offset in the file.
pub(super) fn records<'d, R: ReadAt<'d>, T>(
    data: R,
    section: &SectionHeader64,
    size: u64,
    read: impl Fn(&mut Cursor<'d, &'d [u8]>) -> Result<T, OutOfBounds>,
) -> Result<Vec<(u64, T)>, PruneProblem> {
    let whole = Cursor::new(data, section.range()).read(section.size, "section");
    let bytes = whole.map_err(PruneProblem::Outside)?;
    let mut cursor = Cursor::new(bytes, 0..section.size);
    let mut records = Vec::new();
    while cursor.end() - cursor.position() >= size {
        let offset = section.offset + cursor.position();
        records.push((offset, read(&mut cursor).map_err(PruneProblem::Outside)?));
    }
    Ok(records)
}
