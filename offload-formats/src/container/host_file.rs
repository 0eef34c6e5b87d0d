//! A linked 64-bit little-endian host file: sections, relative pointers, symbols.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use object::elf;

use crate::container::elf::relocations::{Relocation64, RelocationKind, packed_addresses};
use crate::container::elf::{Elf, ElfSection, ElfSymbol, SymbolTable};
use crate::format::bytes::{Cursor, ReadAt};

/// `DT_NEEDED`.
const NEEDED: u64 = 1;

/// A linked host file.
pub(super) struct HostFile<'d, R> {
    data: R,
    elf: Elf<'d, R>,
    /// Sections with their names.
    sections: Vec<(ElfSection, &'d [u8])>,
    /// Words that the loader relocates, by their addresses: what they will point to.
    relocated: BTreeMap<u64, u64>,
}

impl<'d, R: ReadAt<'d>> HostFile<'d, R> {
    /// Reads a file; `None` if it is not a linked file of a known host.
    pub(super) fn read(data: R, range: Range<u64>) -> Option<Self> {
        let mut file = Self::without_relocations(data, range)?;
        file.added(&(0..=u64::MAX));
        for section in file.relocation_sections(elf::SHT_RELR) {
            file.packed(section);
        }
        Some(file)
    }

    /// Reads a file as [`HostFile::read`] does, and of the relocations only those whose addresses are in the first section
    /// of that name. [`HostFile::pointer_at`] returns the pointers there.
    pub(super) fn read_for(data: R, range: Range<u64>, section: &str) -> Option<Self> {
        let mut file = Self::without_relocations(data, range)?;
        let first = file.first(section);
        if let Some((address, size)) = first.map(|section| (section.address, section.size)) {
            let wanted = address..=address.saturating_add(size);
            // The words that packed relocations change are the pointers themselves.
            file.added(&wanted);
        }
        Some(file)
    }

    fn without_relocations(data: R, range: Range<u64>) -> Option<Self> {
        /// Class of 64 bits, little-endian.
        const KIND: [u8; 2] = [2, 1];
        let ident = data.read_at(range.start, 6)?;
        let elf = Elf::parse(data, range).ok()?;
        let is_linked = [elf::ET_EXEC.0, elf::ET_DYN.0].contains(&elf.file_type);
        let is_known = [elf::EM_X86_64.0, elf::EM_AARCH64.0].contains(&elf.machine);
        if !ident.ends_with(&KIND) || !is_linked || !is_known {
            return None;
        }
        let names = elf.names().ok()?;
        let sections = elf.sections().skip(1);
        let sections = sections.filter_map(|section| Some((section, names.of(&section).ok()?)));
        let sections = sections.collect();
        Some(Self {
            data,
            elf,
            sections,
            relocated: BTreeMap::new(),
        })
    }

    /// Returns the first section of a name.
    pub(super) fn first(&self, name: &str) -> Option<&ElfSection> {
        let mut sections = self.sections.iter();
        let found = sections.find(|(_, found)| *found == name.as_bytes());
        found.map(|(section, _)| section)
    }

    /// Lists all sections with their names.
    pub(super) fn sections(&self) -> impl Iterator<Item = &(ElfSection, &'d [u8])> {
        self.sections.iter()
    }

    /// Lists the sections whose names start with one of `starts`.
    pub(super) fn named<'a>(
        &'a self,
        starts: &'a [&str],
    ) -> impl Iterator<Item = &'a (ElfSection, &'d [u8])> {
        let sections = self.sections.iter();
        sections.filter(|(_, name)| {
            starts
                .iter()
                .any(|start| name.starts_with(start.as_bytes()))
        })
    }

    /// Returns the range of a section's content in the file; empty if it has none.
    pub(super) fn content(&self, section: &ElfSection) -> Range<u64> {
        self.elf.check(section).unwrap_or(0..0)
    }

    /// Returns the offset in the file of an address in a section.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let mut sections = self
            .sections
            .iter()
            .filter(|(section, _)| section.allocated());
        let (section, _) = sections.find(|(section, _)| {
            let distance = address.wrapping_sub(section.address);
            address >= section.address && distance < section.size
        })?;
        let range = self.elf.check(section).ok()?;
        let offset = range.start.checked_add(address - section.address)?;
        Some(offset).filter(|offset| *offset < range.end)
    }

    /// Returns the pointer at an address, as the loader will set it.
    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        match self.relocated.get(&address) {
            Some(target) => Some(*target),
            None => self.word(self.offset_of(address)?),
        }
    }

    /// Returns the pointer at an address, whose word is at an offset, as the loader will set it.
    pub(super) fn pointer_at(&self, address: u64, offset: u64) -> Option<u64> {
        let relocated = self.relocated.get(&address).copied();
        relocated.or_else(|| self.word(offset))
    }

    /// Returns the string at an address, without its NUL.
    pub(super) fn string(&self, address: u64) -> Option<&'d [u8]> {
        /// Longest name that is read in bytes.
        const LONGEST: u64 = 1 << 16;
        let start = self.offset_of(address)?;
        let end = start.saturating_add(LONGEST).min(self.data.size()?);
        self.data.read_until(start..end, 0)
    }

    /// Returns the integer at an offset.
    pub(super) fn word(&self, offset: u64) -> Option<u64> {
        let bytes = self.data.read_at(offset, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Returns the 32-bit integer at an offset.
    pub(super) fn half(&self, offset: u64) -> Option<u32> {
        let bytes = self.data.read_at(offset, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Lists the symbols: all of them, or in a stripped file those of the dynamic linker.
    pub(super) fn symbols(&self) -> Vec<ElfSymbol<'d>> {
        let all = self.elf.symbols(SymbolTable::All).unwrap_or_default();
        match all.is_empty() {
            true => self.elf.symbols(SymbolTable::Dynamic).unwrap_or_default(),
            false => all,
        }
    }

    /// Returns the LLVM release of the `libomptarget.so.19.1` or the like that the file needs.
    pub(super) fn libomptarget(&self) -> Option<u32> {
        let (dynamic, _) = self.named(&[".dynamic"]).next()?;
        let (strings, _) = self.named(&[".dynstr"]).next()?;
        let (dynamic, strings) = (self.content(dynamic), self.content(strings));
        let size = dynamic.end.saturating_sub(dynamic.start);
        let bytes = self.data.read_at(dynamic.start, size)?;
        let needed = bytes.chunks_exact(16).filter_map(|entry| {
            let (tag, value) = entry.split_at(8);
            let [tag, value] = [tag, value].map(|word| word.try_into().map(u64::from_le_bytes));
            (tag.ok()? == NEEDED).then_some(value.ok()?)
        });
        let mut releases = needed.filter_map(|offset| {
            let start = strings.start.checked_add(offset)?;
            let name = self.data.read_until(start..strings.end, 0)?;
            let version = name.strip_prefix(b"libomptarget.so.")?;
            let release = version.split(|byte| *byte == b'.').next()?;
            std::str::from_utf8(release).ok()?.parse().ok()
        });
        releases.next()
    }

    /// Lists the ranges of the relocations of a type that the loader applies. Sections that overlap are not read: together
    /// they are no larger than the file.
    fn relocation_sections(&self, kind: elf::SectionType) -> Vec<Range<u64>> {
        let mut left = self.data.size().unwrap_or(0);
        let sections = self.sections.iter().map(|(section, _)| section);
        let sections =
            sections.filter(|section| section.allocated() && section.section_type == kind.0);
        let ranges = sections.map(|section| self.content(section));
        let ranges = ranges.take_while(|range| {
            let rest = left.checked_sub(range.end.saturating_sub(range.start));
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        ranges.collect()
    }

    /// Reads the relocations with addends whose addresses are `wanted`.
    fn added(&mut self, wanted: &RangeInclusive<u64>) {
        // Relocations against symbols refer to the dynamic linker's.
        let symbols = self.elf.symbols(SymbolTable::Dynamic).unwrap_or_default();
        for range in self.relocation_sections(elf::SHT_RELA) {
            // At once: a cache would keep each record by itself.
            let size = range.end.saturating_sub(range.start);
            let bytes = self.data.read_at(range.start, size).unwrap_or_default();
            let mut cursor = Cursor::new(bytes, 0..size);
            while let Ok(relocation) = Relocation64::read(&mut cursor) {
                if wanted.contains(&relocation.address) {
                    self.add(&relocation, &symbols);
                }
            }
        }
    }

    fn add(&mut self, relocation: &Relocation64, symbols: &[ElfSymbol<'d>]) {
        let Relocation64 {
            address,
            info,
            addend,
        } = *relocation;
        // The lower half is the type.
        match RelocationKind::of(self.elf.machine, info as u32) {
            RelocationKind::Relative => {
                self.relocated.insert(address, addend);
            }
            RelocationKind::Absolute => {
                let index = usize::try_from(info >> 32).ok();
                let symbol = index.and_then(|index| symbols.get(index));
                let value = symbol.map_or(0, |symbol| symbol.value);
                self.relocated.insert(address, value.wrapping_add(addend));
            }
            RelocationKind::Symbol | RelocationKind::Other => {}
        }
    }

    /// Reads packed relative relocations. The pointers are in the relocated words.
    fn packed(&mut self, range: Range<u64>) {
        let size = range.end.saturating_sub(range.start);
        let bytes = self.data.read_at(range.start, size).unwrap_or_default();
        let words = bytes.chunks_exact(8).map(|word| {
            let word = word.try_into().expect("chunks have 8 bytes");
            u64::from_le_bytes(word)
        });
        packed_addresses(words).for_each(|address| self.relocate_word(address));
    }

    fn relocate_word(&mut self, address: u64) {
        let target = self.offset_of(address).and_then(|offset| self.word(offset));
        if let Some(target) = target {
            self.relocated.insert(address, target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::elf::sample::{SampleSection, elf_file};

    #[test]
    fn finds_the_start_of_a_section_that_follows_another_one() {
        let section = |address, content| SampleSection {
            kind: elf::SHT_PROGBITS.0,
            flags: elf::SHF_ALLOC.0,
            address,
            link: 0,
            content,
        };
        let sections = [section(0xff8, &b"one.one."[..]), section(0x1000, b"two")];
        let file = elf_file(elf::ET_DYN.0, elf::EM_X86_64.0, b"\0", &sections);
        let host = HostFile::read(&file[..], 0..file.len() as u64).unwrap();
        let at = |address| {
            let offset = host.offset_of(address)?;
            Some(file[offset as usize])
        };
        assert_eq!(
            [0xff7, 0xff8, 0xfff, 0x1000, 0x1002, 0x1003].map(at),
            [None, Some(b'o'), Some(b'.'), Some(b't'), Some(b'o'), None]
        );
    }
}
