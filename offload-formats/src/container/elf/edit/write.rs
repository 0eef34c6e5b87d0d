//! Writes the new file from the old one and its edits.

use object::elf;

use super::super::ElfWriteError;
use super::file::{EditedElf, EditedElfSection, SectionContent};
use super::layout::NewLayout;
use crate::container::edit::Output;
use crate::format::pieces::Piece;
use crate::format::string_table::{StringTable, StringTableBuilder};

impl EditedElf<'_> {
    pub(super) fn write(mut self) -> Result<Vec<Piece>, ElfWriteError> {
        self.drop_empty_symbols()?;
        self.decide_wide_indices();
        self.size_tables();
        let tables = Tables::of(&self);
        for (index, part) in (0..).zip(&mut self.parts) {
            if let SectionContent::Strings = part.content {
                part.section.size = tables.strings(index).bytes.len() as u64;
            }
        }
        let layout = NewLayout::of(&self)?;
        let new = ElfWriter {
            file: &self,
            tables,
            layout,
            indices: self.indices(),
        };
        new.pieces()
    }

    /// Removes an empty symbol table from a program; objects need it for relocations.
    fn drop_empty_symbols(&mut self) -> Result<(), ElfWriteError> {
        // In both classes `e_type` comes after 16 bytes of identification.
        let relocatable = self.form.u16(elf::ET_REL.0);
        let Some(symbols) = &self.symbols else {
            return Ok(());
        };
        if symbols.symbols.len() != 1 || self.header.get(16..18) == Some(&relocatable[..]) {
            return Ok(());
        }
        let table = symbols.index;
        let strings = self.parts.get(table as usize).map(|part| part.section.link);
        let strings = strings.filter(|strings| *strings != self.names);
        self.remove(|index, _| index == table || Some(index) == strings)
    }

    /// Adds or removes the table of section indices: it exists if a symbol's section has a large index.
    fn decide_wide_indices(&mut self) {
        let is_table = |part: &EditedElfSection<'_>| {
            part.kept && matches!(part.content, SectionContent::WideIndices)
        };
        let indices = self.indices();
        let new_index = |index: u32| {
            let new = indices.get(index as usize);
            *new.expect("section indices are checked when they are read")
        };
        let Some(symbols) = &self.symbols else {
            return;
        };
        let mut sections = symbols.symbols.iter().filter_map(|symbol| symbol.section);
        let needed = sections.any(|section| new_index(section) >= elf::SHN_LORESERVE.into());
        if needed && !self.parts.iter().any(is_table) {
            let mut table = EditedElfSection::wide_indices();
            table.section.link = symbols.index;
            self.parts.push(table);
        }
        let tables = self.parts.iter_mut().filter(|part| is_table(part));
        tables.for_each(|part| part.kept = needed);
    }

    /// Returns the new index of each section by the old one; 0 for removed sections.
    fn indices(&self) -> Vec<u32> {
        let mut next = 0;
        let index = |part: &EditedElfSection<'_>| {
            let index = if part.kept { next } else { 0 };
            next += u32::from(part.kept);
            index
        };
        self.parts.iter().map(index).collect()
    }
}

/// Offset of the operating system's ABI in the identification.
const OS_ABI: usize = 7;

/// The tables of names.
struct Tables<'d> {
    /// Names of sections; also of symbols, if both share a table.
    sections: StringTable<'d>,
    /// Index of the section with the names of symbols, and its table; `None` if shared.
    symbols: Option<(u32, StringTable<'d>)>,
    names: u32,
}

impl<'d> Tables<'d> {
    fn of(file: &EditedElf<'d>) -> Self {
        let mut sections = StringTableBuilder::default();
        for part in file.parts.iter().filter(|part| part.kept) {
            sections.add(part.name);
        }
        let symbols = file.symbols.as_ref().and_then(|symbols| {
            let table = file.parts.get(symbols.index as usize)?;
            let mut apart = StringTableBuilder::default();
            let shared = table.section.link == file.names;
            let strings = if shared { &mut sections } else { &mut apart };
            for symbol in &symbols.symbols {
                strings.add(symbol.name);
            }
            (!shared).then(|| (table.section.link, apart.layout(b"\0")))
        });
        Self {
            sections: sections.layout(b"\0"),
            symbols,
            names: file.names,
        }
    }

    /// Returns the table in the section with that index.
    fn strings(&self, index: u32) -> &StringTable<'d> {
        match &self.symbols {
            Some((_, table)) if index != self.names => table,
            _ => &self.sections,
        }
    }
}

/// The decisions about the new file.
struct ElfWriter<'f, 'd> {
    file: &'f EditedElf<'d>,
    tables: Tables<'d>,
    layout: NewLayout,
    indices: Vec<u32>,
}

impl ElfWriter<'_, '_> {
    fn pieces(&self) -> Result<Vec<Piece>, ElfWriteError> {
        let mut output = Output::default();
        for (segment, offset) in self.file.segments.iter().zip(&self.layout.segments) {
            let start = self.file.start.saturating_add(segment.offset);
            let range = start..start.saturating_add(segment.file_size);
            output.put(*offset, Piece::Copy { input: 0, range });
        }
        // A section removed from a segment leaves zeros.
        let parts = || (0..).zip(self.file.parts.iter().zip(&self.layout.sections));
        for (_, (part, offset)) in parts() {
            if let (false, SectionContent::Same(_), Some(_)) =
                (part.kept, &part.content, part.segment)
            {
                output.put(*offset, Piece::Zeros(part.section.size));
            }
        }
        output.put(0, Piece::Bytes(self.header()?));
        let headers = Piece::Bytes(self.program_headers()?);
        output.put(self.layout.program_headers, headers);
        for (index, (part, offset)) in parts() {
            if part.kept && part.segment.is_none() {
                output.put(*offset, self.content(index, part)?);
            }
        }
        let headers = self.section_headers()?;
        let end = (headers.len() as u64).checked_add(self.layout.section_headers);
        let value = u64::MAX;
        let end = end.ok_or(ElfWriteError::TooLarge { value })?;
        output.put(self.layout.section_headers, Piece::Bytes(headers));
        Ok(output.finish(end))
    }

    fn content(&self, index: u32, part: &EditedElfSection<'_>) -> Result<Piece, ElfWriteError> {
        let form = self.file.form;
        let symbols = self.file.symbols.as_ref();
        let copy = |range| Piece::Copy { input: 0, range };
        Ok(match (&part.content, symbols) {
            (SectionContent::None, _) => Piece::Zeros(0),
            (SectionContent::Same(range), _) => copy(range.clone()),
            (SectionContent::New(piece), _) => piece.clone(),
            (SectionContent::Strings, _) => Piece::Bytes(self.tables.strings(index).bytes.clone()),
            (SectionContent::Symbols, Some(symbols)) => {
                let strings = self.tables.strings(part.section.link);
                Piece::Bytes(symbols.to_bytes(form, strings, |section| self.section(section))?)
            }
            (SectionContent::WideIndices, Some(symbols)) => {
                Piece::Bytes(symbols.wide_indices(form, |section| self.section(section)))
            }
            (SectionContent::Symbols | SectionContent::WideIndices, None) => {
                Piece::Zeros(part.section.size)
            }
            (SectionContent::Group(group), symbols) => {
                let local = symbols.is_some_and(|symbols| symbols.is_local(part.section.info));
                // Linkers identify a group by its symbol's name. A local symbol does not identify it.
                let flags = if local {
                    group.flags & !elf::GRP_COMDAT.0
                } else {
                    group.flags
                };
                let members = group.members.iter().map(|member| self.section(*member));
                let words = std::iter::once(flags).chain(members);
                Piece::Bytes(words.flat_map(|word| form.u32(word)).collect())
            }
            (SectionContent::Relocations { bytes, .. }, Some(symbols)) if symbols.changed => {
                let mut bytes = bytes.to_vec();
                form.relocate(&mut bytes, part.section.entry_size, |symbol| {
                    let place = symbols.place(symbol);
                    place.expect("`check_references` found every symbol")
                });
                Piece::Bytes(bytes)
            }
            (SectionContent::Relocations { range, .. }, _) => copy(range.clone()),
        })
    }

    /// Returns the new index of a section.
    fn section(&self, index: u32) -> u32 {
        let new = self.indices.get(index as usize);
        *new.expect("section indices are checked when they are read")
    }

    fn header(&self) -> Result<Vec<u8>, ElfWriteError> {
        let (form, layout) = (self.file.form, &self.layout);
        let [header_size, program_size, section_size, _] = form.sizes();
        let word = form.word_size() as usize;
        let part = |range: std::ops::Range<usize>| {
            let bytes = self.file.header.get(range);
            bytes.expect("the file header is complete")
        };
        // Identification, with seven unused bytes; type, machine, version and entry.
        let mut bytes = part(0..9).to_vec();
        if let (true, Some(abi)) = (self.file.gnu_abi, bytes.get_mut(OS_ABI)) {
            *abi = elf::ELFOSABI_GNU.0;
        }
        bytes.extend([0; 7]);
        bytes.extend(part(16..24 + word));
        let segments = self.file.segments.len();
        let some = |value| if segments == 0 { 0 } else { value };
        bytes.extend(form.word(some(layout.program_headers))?);
        bytes.extend(form.word(layout.section_headers)?);
        let flags = 24 + 3 * word;
        bytes.extend(part(flags..flags + 4));
        let count = self.count();
        let count = if count < elf::SHN_LORESERVE.into() {
            count as u16
        } else {
            0
        };
        for value in [
            header_size,
            some(program_size.into()) as u16,
            // Section header 0 has the numbers that do not fit here.
            u16::try_from(segments).unwrap_or(elf::PN_XNUM),
            section_size,
            count,
            elf::SymbolSection::new(self.section(self.file.names)).0,
        ] {
            bytes.extend(form.u16(value));
        }
        Ok(bytes)
    }

    /// Returns the number of sections, with section 0.
    fn count(&self) -> u32 {
        self.file.parts.iter().filter(|part| part.kept).count() as u32
    }

    fn program_headers(&self) -> Result<Vec<u8>, ElfWriteError> {
        let form = self.file.form;
        let [_, size, ..] = form.sizes();
        let mut bytes = self.file.program_headers.0.to_vec();
        let headers = bytes.chunks_exact_mut(size.into());
        for (header, offset) in headers.zip(&self.layout.segments) {
            let (field, value) = (form.segment_offset(), form.word(*offset)?);
            if let Some(place) = header.get_mut(field..field + value.len()) {
                place.copy_from_slice(&value);
            }
        }
        Ok(bytes)
    }

    fn section_headers(&self) -> Result<Vec<u8>, ElfWriteError> {
        let (form, file) = (self.file.form, self.file);
        let large = elf::SHN_LORESERVE.into();
        let beyond = |value, limit| if value < limit { 0 } else { value };
        let mut bytes = Vec::new();
        for (index, part) in (0..).zip(&file.parts).filter(|(_, part)| part.kept) {
            let section = &part.section;
            let offset = self.layout.sections.get(index as usize);
            let mut words = [
                section.flags,
                section.address,
                *offset.expect("the layout has every section"),
                section.size,
                section.alignment,
                section.entry_size,
            ];
            let name = self.tables.sections.offset(part.name);
            let value = name.expect("the table has every name");
            let name = u32::try_from(value).map_err(|_| ElfWriteError::TooLarge { value })?;
            let (kind, links) = if index == 0 {
                // The numbers that do not fit into the file header.
                words = [0, 0, 0, beyond(self.count(), large).into(), 0, 0];
                let segments = file.segments.len() as u32;
                let names = beyond(self.section(file.names), large);
                (0, (names, beyond(segments, elf::PN_XNUM.into())))
            } else {
                (section.section_type, self.links(index, part)?)
            };
            let [flags, address, offset, size, alignment, entry_size] = words;
            bytes.extend(form.u32(name));
            bytes.extend(form.u32(kind));
            for value in [flags, address, offset, size] {
                bytes.extend(form.word(value)?);
            }
            bytes.extend(form.u32(links.0));
            bytes.extend(form.u32(links.1));
            for value in [alignment, entry_size] {
                bytes.extend(form.word(value)?);
            }
        }
        Ok(bytes)
    }

    /// Returns `sh_link` and `sh_info` of a section.
    fn links(&self, by: u32, part: &EditedElfSection<'_>) -> Result<(u32, u32), ElfWriteError> {
        let section = &part.section;
        let symbols = self.file.symbols.as_ref();
        let of_symbols = symbols.filter(|symbols| symbols.index == section.link);
        let link = self.section(section.link);
        let info = match (&part.content, symbols) {
            (SectionContent::Symbols, Some(symbols)) => symbols.local_count(),
            (SectionContent::Group(_), Some(symbols)) => {
                let symbol = section.info;
                let place = symbols.place(symbol);
                place.ok_or(ElfWriteError::SymbolNeeded { symbol, by })?
            }
            (SectionContent::Same(_), _) if of_symbols.is_some_and(|symbols| symbols.changed) => {
                if part.is_relocations() {
                    return Err(ElfWriteError::Relocations { index: by });
                }
                // The content may have symbol indices. `sh_link` 0 tells that they are no longer valid.
                return Ok((0, section.info));
            }
            _ if part.is_relocations() => self.section(section.info),
            _ => section.info,
        };
        Ok((link, info))
    }
}
