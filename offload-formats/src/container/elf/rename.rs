//! Renames sections and symbols of ELF files. New names are appended to the file, and nothing moves.

use object::pod::bytes_of;
use object::{Endianness, U32, U64, elf};

use super::{Elf, ElfWriteError, Headers, SymbolPlace, SymbolTable};

/// Returns the 64-bit object in `bytes` with all its sections called `old` renamed to `new`.
///
/// The new section of names is at the end of the file; nothing else moves.
///
/// # Errors
///
/// Fails if the file is not a 64-bit ELF file, or has no section with that name.
pub fn rename_section(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, ElfWriteError> {
    let elf = Elf::parse(bytes, 0..bytes.len() as u64)?;
    let names_index = elf.names.ok_or(ElfWriteError::NotWide)?;
    let names = elf.names()?;
    let mut renaming = Renaming::new(&elf, bytes, names_index)?;
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

/// Returns the 64-bit object in `bytes` with renamed symbols. `new` returns the new name of a defined global
/// symbol, or `None` to keep the old one.
///
/// The new section of names is at the end of the file; nothing else moves.
///
/// # Errors
///
/// Fails if the file is not a 64-bit ELF file, or its symbol table cannot be read.
pub fn rename_symbols(
    bytes: &[u8],
    new: impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, ElfWriteError> {
    let elf = Elf::parse(bytes, 0..bytes.len() as u64)?;
    let is_table = |section: &super::ElfSection| section.section_type == elf::SHT_SYMTAB.0;
    let Some(table) = elf.sections().find(is_table) else {
        return Ok(bytes.to_vec());
    };
    let mut renaming = Renaming::new(&elf, bytes, table.link)?;
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

/// A copy of a file, followed by a growing copy of one of its sections of names.
struct Renaming {
    out: Vec<u8>,
    endian: Endianness,
    /// Index of the section of names.
    index: u32,
    /// New offset of the section of names.
    offset: u64,
}

impl Renaming {
    fn new(elf: &Elf<'_, &[u8]>, bytes: &[u8], index: u32) -> Result<Self, ElfWriteError> {
        let Headers::Elf64(_) = elf.headers else {
            return Err(ElfWriteError::NotWide);
        };
        let strings = elf.content(&elf.section(index)?)?;
        Ok(Self {
            out: [bytes, strings].concat(),
            endian: elf.endian,
            index,
            offset: bytes.len() as u64,
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
        let value = self.out.len() as u64 - self.offset;
        let offset = u32::try_from(value).map_err(|_| ElfWriteError::TooLarge { value })?;
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
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
            let start = usize::try_from(table.checked_add(start)?).ok()?;
            Some(start..start.checked_add(value.len())?)
        };
        let place = place().and_then(|place| self.out.get_mut(place));
        place.ok_or(ElfWriteError::NotWide)?.copy_from_slice(value);
        Ok(())
    }

    fn finish(mut self, elf: &Elf<'_, &[u8]>) -> Result<Vec<u8>, ElfWriteError> {
        let size = self.out.len() as u64 - self.offset;
        for (field, value) in [(SH_OFFSET, self.offset), (SH_SIZE, size)] {
            let value = U64::<Endianness>::new(self.endian, value);
            let value = bytes_of(&value);
            self.patch(elf.headers_offset, self.index, HEADER_SIZE, field, value)?;
        }
        Ok(self.out)
    }
}

/// Size of a 64-bit section header, and offsets of its fields.
const HEADER_SIZE: u64 = size_of::<elf::SectionHeader64<Endianness>>() as u64;
const SH_OFFSET: u64 = 0x18;
const SH_SIZE: u64 = 0x20;
/// Size of a 64-bit symbol.
const SYMBOL_SIZE: u64 = size_of::<elf::Sym64<Endianness>>() as u64;
