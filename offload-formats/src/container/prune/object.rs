//! Relocatable ELF objects: units are smaller or gone, everything after their sections moves up.
//!
//! | section | units |
//! |---|---|
//! | `.hip_fatbin`, `.nv_fatbin`, `__nv_relfatbin` | bundles, fat binaries: pointers to them are relocations |
//! | of type `SHT_LLVM_OFFLOADING` | offload binaries, which linker wrappers collect |
//! | `.bundled_lib` | one: the archive that rustc put into an rlib |
//!
//! An object has no addresses, so sections may move: those after a section of units move by a multiple of their
//! alignments. References are relocations of 64-bit words and symbols; others are an error.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use super::binaries::binary_units;
use super::elf_headers::{ElfHeaders, SectionHeader64, Symbol64, records};
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedFile, PrunedUnit};
use super::units::{is_unit_section, units};
use crate::container::elf::SHT_LLVM_OFFLOADING;
use crate::container::elf::relocations::{Relocation64, RelocationKind};
use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;
use crate::format::pieces::{self, Piece};

/// A section of units in an object.
struct ObjectSection {
    index: usize,
    header: SectionHeader64,
    units: Vec<PrunedUnit>,
    /// New offset of each unit from the start of the section, in order.
    places: Vec<u64>,
    /// New size in bytes.
    size: u64,
    /// Number of bytes by which everything after it moves up.
    shift: u64,
}

impl ObjectSection {
    fn new(
        headers: &ElfHeaders,
        index: usize,
        units: Vec<PrunedUnit>,
    ) -> Result<Self, PruneProblem> {
        let header = headers.section(index);
        let (mut places, mut size) = (Vec::new(), 0_u64);
        for unit in &units {
            let old = unit.old.start - header.offset;
            let alignment = match old % unit.alignment {
                0 => unit.alignment,
                _ => 8.min(unit.alignment),
            };
            let place = size.next_multiple_of(alignment);
            places.push(place);
            size = place + unit.size;
        }
        let free = header.size.checked_sub(size).ok_or(PruneProblem::Grew)?;
        let shift = free / headers.alignment_after(header.range().end)
            * headers.alignment_after(header.range().end);
        Ok(Self {
            index,
            header,
            units,
            places,
            size,
            shift,
        })
    }

    /// Returns the new offset from the start of the section for the start of a unit, or the end of the section.
    fn place_of(&self, old: u64) -> Option<(u64, u64, u64)> {
        let offset = self.header.offset.checked_add(old)?;
        let mut units = self.units.iter().zip(&self.places);
        let found = units.find(|(unit, _)| unit.old.start == offset);
        match found {
            Some((unit, place)) => Some((*place, unit.old.end - unit.old.start, unit.size)),
            None => (old == self.header.size).then_some((self.size, 0, 0)),
        }
    }
}

/// Prunes a relocatable object.
pub(super) fn object<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    job: PruneJob<'_>,
) -> Result<PrunedFile, PruneError> {
    let mut counts = PruneCounts::default();
    let mut sections = Vec::new();
    for index in 1..headers.sections.len() {
        let header = headers.section(index);
        let name = headers.name(index);
        let is_named = is_unit_section(name);
        if !header.has_content() || header.size == 0 {
            continue;
        }
        let here = |problem| PruneError::in_section(name, problem);
        let units = match Magic::at(data, header.range()) {
            Magic::OffloadBinary if header.kind == SHT_LLVM_OFFLOADING => {
                binary_units(data, header.range(), job, &mut counts)
            }
            Magic::Bundle | Magic::CompressedBundle | Magic::Fatbin if is_named => {
                units(data, header.range(), job, &mut counts)
            }
            _ => continue,
        };
        sections.push(ObjectSection::new(headers, index, units.map_err(here)?).map_err(here)?);
    }
    if sections.is_empty() {
        return Err(PruneError::whole(PruneProblem::NoImages));
    }
    rewritten(data, headers, sections, counts)
}

/// Prunes an object around a native library of an rlib, whose archive is the section with that index.
pub(super) fn around<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    index: usize,
    mut library: PrunedFile,
) -> Result<PrunedFile, PruneError> {
    let left = std::mem::take(&mut library.left);
    let counts = library.counts.clone();
    let unit = library.into_unit(headers.section(index).range());
    let section = ObjectSection::new(headers, index, vec![unit])
        .map_err(|problem| PruneError::in_section(headers.name(index), problem))?;
    let file = rewritten(data, headers, vec![section], counts)?;
    Ok(PrunedFile { left, ..file })
}

/// Returns the object with the new sections of units.
fn rewritten<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    mut sections: Vec<ObjectSection>,
    counts: PruneCounts,
) -> Result<PrunedFile, PruneError> {
    if counts.is_unchanged() {
        let units = sections.into_iter().flat_map(|section| section.units);
        return Ok(PrunedFile::unchanged(headers.size, units, counts));
    }
    sections.sort_by_key(|section| section.header.offset);
    let rewriter = ObjectRewriter {
        data,
        headers,
        sections: &sections,
    };
    rewriter.file(counts).map_err(PruneError::whole)
}

struct ObjectRewriter<'a, R> {
    data: R,
    headers: &'a ElfHeaders,
    /// Sections of units in file order.
    sections: &'a [ObjectSection],
}

/// Ranges of the old file and what replaces them, by their starts.
type Edits = BTreeMap<u64, (u64, Vec<Piece>)>;

impl<'d, R: ReadAt<'d>> ObjectRewriter<'_, R> {
    fn file(&self, counts: PruneCounts) -> Result<PrunedFile, PruneProblem> {
        self.check_overlaps()?;
        let mut edits = Edits::new();
        self.change_relocations(&mut edits)?;
        self.change_symbols(&mut edits)?;
        self.change_headers(&mut edits);
        let copied = self.replace_sections(&mut edits);
        let pieces = pieces::replaced(0..self.headers.size, edits);
        Ok(PrunedFile {
            size: pieces::size(&pieces),
            pieces,
            counts,
            copied,
            left: Vec::new(),
        })
    }

    /// Checks that no header table or other section shares bytes with a section of units.
    fn check_overlaps(&self) -> Result<(), PruneProblem> {
        let table = self.headers.file.sections_offset;
        let table = table..table + self.headers.sections.len() as u64 * SectionHeader64::LEN;
        let spans = |what: String| Err(PruneProblem::Spans { what });
        for section in self.sections {
            let range = section.header.range();
            let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
            if overlaps(&table) || range.start < self.headers.file.header_size.into() {
                return spans("the header table".to_owned());
            }
            for (index, other) in self.headers.sections.iter().enumerate() {
                let is_other = index != section.index && other.has_content() && other.size > 0;
                if is_other && overlaps(&other.range()) {
                    return spans(format!("section {index}"));
                }
            }
        }
        Ok(())
    }

    fn section(&self, index: u64) -> Option<&ObjectSection> {
        let mut sections = self.sections.iter();
        sections.find(|section| section.index as u64 == index)
    }

    fn change_relocations(&self, edits: &mut Edits) -> Result<(), PruneProblem> {
        /// Offset of the addend in a relocation.
        const ADDEND: u64 = 16;
        for section in &self.headers.sections {
            let is_of_units = self.section(section.info.into()).is_some();
            match elf::SectionType(section.kind) {
                elf::SHT_RELA | elf::SHT_REL if is_of_units && section.size > 0 => {
                    let what = format!("the relocations of section {}", section.info);
                    return Err(PruneProblem::Spans { what });
                }
                elf::SHT_RELA => {}
                _ => continue,
            }
            let symbols = self.symbols(section.link)?;
            let all = records(self.data, section, Relocation64::LEN, Relocation64::read)?;
            for (offset, relocation) in all {
                let symbol = usize::try_from(relocation.info >> 32).ok();
                let Some((_, symbol)) = symbol.and_then(|index| symbols.get(index)) else {
                    continue;
                };
                let Some(units) = self.section(symbol.section.into()) else {
                    continue;
                };
                let old = symbol.value.wrapping_add(relocation.addend);
                // The lower half is the type.
                let kind = relocation.info as u32;
                let effect = RelocationKind::of(self.headers.file.machine, kind);
                if effect != RelocationKind::Absolute {
                    let address = relocation.address;
                    return Err(PruneProblem::Relocation { kind, address });
                }
                let (new, ..) = units.place_of(old).ok_or(PruneProblem::Inside {
                    what: "relocation",
                    address: old,
                })?;
                let (value, ..) = self.new_value(units, symbol)?;
                let addend = new.wrapping_sub(value).to_le_bytes().to_vec();
                edits.insert(offset + ADDEND, (8, vec![Piece::Bytes(addend)]));
            }
        }
        Ok(())
    }

    fn symbols(&self, index: u32) -> Result<Vec<(u64, Symbol64)>, PruneProblem> {
        let section = usize::try_from(index).ok();
        let section = section.and_then(|index| self.headers.sections.get(index));
        match section.filter(|section| section.has_content()) {
            Some(symbols) => records(self.data, symbols, Symbol64::LEN, Symbol64::read),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the new value and size of a symbol in a section of units.
    fn new_value(
        &self,
        section: &ObjectSection,
        symbol: &Symbol64,
    ) -> Result<(u64, u64), PruneProblem> {
        let inside = PruneProblem::Inside {
            what: "symbol",
            address: symbol.value,
        };
        let (value, old_size, new_size) = match section.place_of(symbol.value) {
            Some(place) => place,
            // The section's own symbol, before units that do not start there.
            None if symbol.value == 0 => (0, 0, 0),
            None => return Err(inside),
        };
        let size = match symbol.size {
            size if size == section.header.size && symbol.value == 0 => section.size,
            size if size == old_size => new_size,
            size => size,
        };
        Ok((value, size))
    }

    fn change_symbols(&self, edits: &mut Edits) -> Result<(), PruneProblem> {
        /// Offset of the value in a symbol; its size follows.
        const VALUE: u64 = 8;
        for table in &self.headers.sections {
            if table.kind != elf::SHT_SYMTAB.0 {
                continue;
            }
            for (offset, symbol) in records(self.data, table, Symbol64::LEN, Symbol64::read)? {
                let Some(section) = self.section(symbol.section.into()) else {
                    continue;
                };
                let (value, size) = self.new_value(section, &symbol)?;
                let words = [value.to_le_bytes(), size.to_le_bytes()].concat();
                edits.insert(offset + VALUE, (16, vec![Piece::Bytes(words)]));
            }
        }
        Ok(())
    }

    /// Returns the new offset of what is at an offset outside of the sections of units.
    fn offset(&self, old: u64) -> u64 {
        let before = self.sections.iter();
        let before = before.filter(|section| section.header.range().end <= old);
        old - before.map(|section| section.shift).sum::<u64>()
    }

    fn change_headers(&self, edits: &mut Edits) {
        let mut file = self.headers.file;
        file.sections_offset = self.offset(file.sections_offset);
        let mut bytes = Vec::new();
        file.write(&mut bytes);
        edits.insert(0, (bytes.len() as u64, vec![Piece::Bytes(bytes)]));
        let mut table = Vec::new();
        for (index, header) in self.headers.sections.iter().enumerate() {
            let mut header = *header;
            header.offset = self.offset(header.offset);
            if let Some(section) = self.section(index as u64) {
                header.size = section.size;
            }
            header.write(&mut table);
        }
        let start = self.headers.file.sections_offset;
        edits.insert(start, (table.len() as u64, vec![Piece::Bytes(table)]));
    }

    /// Replaces the sections of units, and returns old and new ranges of the copied images.
    fn replace_sections(&self, edits: &mut Edits) -> Vec<(Range<u64>, Range<u64>)> {
        let mut copied = Vec::new();
        for section in self.sections {
            let header = section.header;
            let new_start = self.offset(header.offset);
            let (mut pieces, mut end) = (Vec::new(), 0);
            for (unit, place) in section.units.iter().zip(&section.places) {
                pieces.push(Piece::Zeros(place - end));
                pieces.extend(unit.pieces.iter().cloned());
                end = place + unit.size;
                copied.extend(unit.copied.iter().map(|(old, offset)| {
                    let new = new_start + place + offset;
                    (old.clone(), new..new + (old.end - old.start))
                }));
            }
            pieces.push(Piece::Zeros(header.size - section.shift - end));
            edits.insert(header.offset, (header.size, pieces));
        }
        copied
    }
}
