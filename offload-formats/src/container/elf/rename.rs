//! Renames sections and symbols of ELF files. New names are appended to the file, and nothing moves.

use std::collections::BTreeMap;
use std::ops::Range;

use object::pod::bytes_of;
use object::{Endian as _, Endianness, U32, U64, elf};

use super::{Elf, ElfSymbol, ElfWriteError, Headers, SymbolPlace, SymbolTable};
use crate::format::bytes::ReadAt;
use crate::format::pieces::{self, Piece};

/// Returns the 64-bit object in a range of `data` with all its sections called `old` renamed to `new`.
///
/// The new section of names is at the end of the file; nothing else moves. Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails if the file is not a 64-bit ELF file, or has no section with that name.
pub fn rename_section<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    old: &str,
    new: &str,
) -> Result<Vec<Piece>, ElfWriteError> {
    let elf = Elf::parse(data, range)?;
    let names_index = elf.names.ok_or(ElfWriteError::NotWide)?;
    let names = elf.names()?;
    let mut renaming = Renaming::new(&elf, names_index)?;
    let mut found = false;
    for section in elf.sections().skip(1) {
        if names.of(&section)? == old.as_bytes() {
            renaming.name(elf.headers_offset, section.index, HEADER_SIZE, new)?;
            found = true;
        }
    }
    if !found {
        return Err(ElfWriteError::NoSection {
            name: old.to_owned(),
        });
    }
    renaming.finish(&elf)
}

/// Returns the 64-bit object in a range of `data` with renamed symbols. `new` returns the new name of a defined global
/// symbol, or `None` to keep the old one.
///
/// A COMDAT group that contains a renamed symbol is identified by a new name, so the linker keeps it beside other objects' groups.
///
/// The new section of names is at the end of the file; nothing else moves. Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails if the file is not a 64-bit ELF file, or its symbol table cannot be read.
pub fn rename_symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    new: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Piece>, ElfWriteError> {
    let elf = Elf::parse(data, range)?;
    let is_table = |section: &super::ElfSection| section.section_type == elf::SHT_SYMTAB.0;
    let Some(table) = elf.sections().find(is_table) else {
        let range = elf.range();
        return Ok(vec![Piece::Copy { input: 0, range }]);
    };
    let mut renaming = Renaming::new(&elf, table.link)?;
    let symbols = elf.symbols(SymbolTable::All)?;
    let mut names = BTreeMap::new();
    for (index, symbol) in (0..).zip(&symbols) {
        let is_exported =
            symbol.binding != super::Binding::Local && symbol.place != SymbolPlace::Undefined;
        let name = std::str::from_utf8(symbol.name)
            .ok()
            .filter(|_| is_exported);
        if let Some(new) = name.and_then(&new) {
            renaming.name(table.offset, index, SYMBOL_SIZE, &new)?;
            names.insert(index, new);
        }
    }
    if !names.is_empty() {
        renaming.name_groups(&elf, &symbols, &names)?;
    }
    renaming.finish(&elf)
}

/// Changes of a file, and a growing copy of one of its sections of names.
pub(super) struct Renaming {
    /// New bytes of the file, by their offsets.
    changes: BTreeMap<u64, Vec<u8>>,
    /// Range of the file.
    range: Range<u64>,
    /// The copy of the section of names, which follows the file.
    strings: Vec<u8>,
    endian: Endianness,
    /// Index of the section of names.
    index: u32,
}

impl Renaming {
    pub(super) fn new<'d, R: ReadAt<'d>>(
        elf: &Elf<'d, R>,
        index: u32,
    ) -> Result<Self, ElfWriteError> {
        let Headers::Elf64(_) = elf.headers else {
            return Err(ElfWriteError::NotWide);
        };
        let strings = elf.content(&elf.section(index)?)?;
        Ok(Self {
            changes: BTreeMap::new(),
            range: elf.range(),
            strings: strings.to_vec(),
            endian: elf.endian,
            index,
        })
    }

    /// Renames one of the records of `size` bytes that start at `table`. Its first field is the offset of the name.
    fn name(
        &mut self,
        table: u64,
        record: u32,
        size: u64,
        name: &str,
    ) -> Result<(), ElfWriteError> {
        let value = self.add(name)?;
        self.patch(table, record, size, 0, &value)
    }

    /// Adds a name, and returns its offset in the section of names.
    pub(super) fn add(&mut self, name: &str) -> Result<[u8; 4], ElfWriteError> {
        let value = self.strings.len() as u64;
        let offset = u32::try_from(value).map_err(|_| ElfWriteError::TooLarge { value })?;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        Ok(self.endian.write_u32(offset))
    }

    /// Gives new signatures to the COMDAT groups that contain renamed symbols, by their indices, unless the signature is among them. GCC
    /// identifies groups of constructors by local symbols.
    pub(super) fn name_groups<'d, R: ReadAt<'d>>(
        &mut self,
        elf: &Elf<'d, R>,
        symbols: &[ElfSymbol<'d>],
        names: &BTreeMap<u32, String>,
    ) -> Result<(), ElfWriteError> {
        let mut renamed: BTreeMap<u32, u32> = BTreeMap::new();
        for index in names.keys() {
            let symbol = symbols.get(*index as usize);
            if let Some(SymbolPlace::Section(section)) = symbol.map(|symbol| symbol.place) {
                renamed.entry(section).or_insert(*index);
            }
        }
        for group in elf.comdat_groups()? {
            let mut members = group.members.iter();
            let symbol = members.find_map(|member| renamed.get(member));
            if let Some(symbol) = symbol.filter(|_| !names.contains_key(&group.signature)) {
                let value = U32::<Endianness>::new(self.endian, *symbol);
                let (table, value) = (elf.headers_offset, bytes_of(&value));
                self.patch(table, group.section, HEADER_SIZE, SH_INFO, value)?;
            }
        }
        Ok(())
    }

    fn patch(
        &mut self,
        table: u64,
        record: u32,
        size: u64,
        field: u64,
        value: &[u8],
    ) -> Result<(), ElfWriteError> {
        let place = || {
            let start = u64::from(record).checked_mul(size)?.checked_add(field)?;
            let start = table.checked_add(start)?;
            let end = start.checked_add(value.len() as u64)?;
            (start >= self.range.start && end <= self.range.end).then_some(start)
        };
        let start = place().ok_or(ElfWriteError::NotWide)?;
        self.changes.insert(start, value.to_vec());
        Ok(())
    }

    fn finish<'d, R: ReadAt<'d>>(self, elf: &Elf<'d, R>) -> Result<Vec<Piece>, ElfWriteError> {
        self.finish_with(elf, Vec::new())
    }

    /// Returns the file, the names and then the new contents of `tables`, which are indices of sections.
    pub(super) fn finish_with<'d, R: ReadAt<'d>>(
        mut self,
        elf: &Elf<'d, R>,
        tables: Vec<(u32, Vec<u8>)>,
    ) -> Result<Vec<Piece>, ElfWriteError> {
        let mut end = self.range.end.saturating_sub(self.range.start);
        let mut added = Vec::new();
        let names = (self.index, std::mem::take(&mut self.strings));
        for (section, content) in [names].into_iter().chain(tables) {
            // Only tables need their alignment, and names are first.
            let offset = match added.is_empty() {
                true => end,
                false => end.next_multiple_of(TABLE_ALIGNMENT),
            };
            let size = content.len() as u64;
            for (field, value) in [(SH_OFFSET, offset), (SH_SIZE, size)] {
                let value = U64::<Endianness>::new(self.endian, value);
                let value = bytes_of(&value);
                self.patch(elf.headers_offset, section, HEADER_SIZE, field, value)?;
            }
            added.push(Piece::Zeros(offset.saturating_sub(end)));
            added.push(Piece::Bytes(content));
            end = offset.saturating_add(size);
        }
        let mut pieces = pieces::changed(self.range, self.changes);
        pieces.extend(added.into_iter().filter(|piece| piece.size() > 0));
        Ok(pieces)
    }
}

/// Alignment of symbol tables in a file.
const TABLE_ALIGNMENT: u64 = 8;
/// Size of a 64-bit section header, and offsets of its fields.
const HEADER_SIZE: u64 = size_of::<elf::SectionHeader64<Endianness>>() as u64;
const SH_OFFSET: u64 = 0x18;
const SH_SIZE: u64 = 0x20;
const SH_INFO: u64 = 0x2c;
/// Size of a 64-bit symbol.
pub(super) const SYMBOL_SIZE: u64 = size_of::<elf::Sym64<Endianness>>() as u64;
