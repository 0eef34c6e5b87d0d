//! Renames sections and symbols of ELF files. New names are appended to the file, and nothing moves.

use std::collections::BTreeMap;
use std::ops::Range;

use object::pod::bytes_of;
use object::{Endianness, U32, U64, elf};

use super::{Elf, ElfWriteError, Headers, SymbolPlace, SymbolTable};
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
    for (index, symbol) in (0..).zip(elf.symbols(SymbolTable::All)?) {
        let is_exported =
            symbol.binding != super::Binding::Local && symbol.place != SymbolPlace::Undefined;
        let name = std::str::from_utf8(symbol.name)
            .ok()
            .filter(|_| is_exported);
        if let Some(new) = name.and_then(&new) {
            renaming.name(table.offset, index, SYMBOL_SIZE, &new)?;
        }
    }
    renaming.finish(&elf)
}

/// Changes of a file, and a growing copy of one of its sections of names.
struct Renaming {
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
    fn new<'d, R: ReadAt<'d>>(elf: &Elf<'d, R>, index: u32) -> Result<Self, ElfWriteError> {
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
        let value = self.strings.len() as u64;
        let offset = u32::try_from(value).map_err(|_| ElfWriteError::TooLarge { value })?;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        let value = U32::<Endianness>::new(self.endian, offset);
        self.patch(table, record, size, 0, bytes_of(&value))
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

    fn finish<'d, R: ReadAt<'d>>(mut self, elf: &Elf<'d, R>) -> Result<Vec<Piece>, ElfWriteError> {
        let offset = self.range.end.saturating_sub(self.range.start);
        let size = self.strings.len() as u64;
        for (field, value) in [(SH_OFFSET, offset), (SH_SIZE, size)] {
            let value = U64::<Endianness>::new(self.endian, value);
            let value = bytes_of(&value);
            self.patch(elf.headers_offset, self.index, HEADER_SIZE, field, value)?;
        }
        let mut pieces = pieces::changed(self.range, self.changes);
        pieces.push(Piece::Bytes(self.strings));
        Ok(pieces)
    }
}

/// Size of a 64-bit section header, and offsets of its fields.
const HEADER_SIZE: u64 = size_of::<elf::SectionHeader64<Endianness>>() as u64;
const SH_OFFSET: u64 = 0x18;
const SH_SIZE: u64 = 0x20;
/// Size of a 64-bit symbol.
const SYMBOL_SIZE: u64 = size_of::<elf::Sym64<Endianness>>() as u64;
