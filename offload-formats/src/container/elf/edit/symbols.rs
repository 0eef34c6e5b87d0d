//! The symbol table of a file that is edited, and who refers to its symbols.

use object::read::elf::{FileHeader, Sym};
use object::{Endianness, elf};

use super::super::{Elf, ElfError, ElfWriteError, string};
use super::form::ElfForm;
use crate::format::bytes::ReadAt;
use crate::format::string_table::StringTable;

/// All symbols, in the order in which they will be.
#[derive(Debug)]
pub(super) struct Symbols<'d> {
    /// Of their section.
    pub(super) index: u32,
    pub(super) symbols: Vec<EditedElfSymbol<'d>>,
    /// By the old index, the new one of those that stay.
    places: Vec<Option<u32>>,
    /// Whether a symbol has another index than before, or is gone.
    pub(super) changed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EditedElfSymbol<'d> {
    /// As the old file has it.
    bytes: &'d [u8],
    pub(super) name: &'d [u8],
    /// That it is defined in, by the old index.
    pub(super) section: Option<u32>,
    pub(super) local: bool,
    old_index: u32,
}

impl<'d> Symbols<'d> {
    /// Reads the symbol table in the section of that index. `wide` is the index of the section of
    /// those section indices that do not fit into a symbol.
    pub(super) fn read<H: FileHeader<Endian = Endianness>, R: ReadAt<'d>>(
        elf: &Elf<'d, R>,
        form: ElfForm,
        index: u32,
        wide: Option<u32>,
    ) -> Result<Self, ElfWriteError> {
        let (section, endian) = (elf.section(index)?, elf.endian);
        let strings = elf.content(&elf.section(section.link)?)?;
        let wide = match wide {
            Some(wide) => elf.content(&elf.section(wide)?)?,
            None => &[],
        };
        let wide = wide.chunks_exact(4).map(Some);
        let mut wide = wide.chain(std::iter::repeat(None));
        let entries = object::pod::slice_from_all_bytes::<H::Sym>(elf.content(&section)?)
            .map_err(|()| ElfError::SymbolTable { index })?;
        let mut symbols = Vec::new();
        for (index, symbol) in (0..).zip(entries) {
            let offset = symbol.st_name(endian);
            let name = string(strings, offset).ok_or(ElfError::SymbolName { index, offset })?;
            let section = match (symbol.st_shndx(endian), wide.next().flatten()) {
                (elf::SHN_XINDEX, Some(bytes)) => Some(form.number(bytes)),
                (elf::SHN_XINDEX, None) => return Err(ElfWriteError::WideIndex { symbol: index }),
                (place, _) => place.index().map(u32::from),
            };
            if let Some(section) = section {
                elf.section(section)?;
            }
            symbols.push(EditedElfSymbol {
                bytes: object::pod::bytes_of(symbol),
                name,
                section,
                local: symbol.st_bind() == elf::STB_LOCAL,
                old_index: index,
            });
        }
        // The first is none, and local in any case.
        if let Some(rest) = symbols.get_mut(1..) {
            rest.sort_by_key(|symbol| !symbol.local);
        }
        let mut symbols = Self {
            index,
            places: vec![None; symbols.len()],
            symbols,
            changed: false,
        };
        symbols.number();
        Ok(symbols)
    }

    /// Drops the symbols of those sections that do not stay.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        let stays = |symbol: &EditedElfSymbol<'_>| {
            symbol.old_index == 0 || symbol.section.is_none_or(&is_kept)
        };
        let count = self.symbols.len();
        self.symbols.retain(stays);
        if self.symbols.len() < count {
            self.changed = true;
            self.places.fill(None);
            self.number();
        }
    }

    fn number(&mut self) {
        for (index, symbol) in (0..).zip(&self.symbols) {
            self.changed |= index != symbol.old_index;
            if let Some(place) = self.places.get_mut(symbol.old_index as usize) {
                *place = Some(index);
            }
        }
    }

    /// Adds a symbol that no section defines, after the others; returns its index in the new file.
    pub(super) fn add(&mut self, bytes: &'d [u8], name: &'d [u8]) -> u32 {
        let index = self.symbols.len() as u32;
        self.symbols.push(EditedElfSymbol {
            bytes,
            name,
            section: None,
            local: false,
            old_index: self.places.len() as u32,
        });
        self.places.push(Some(index));
        index
    }

    /// The new index of a symbol.
    pub(super) fn place(&self, old_index: u32) -> Option<u32> {
        *self.places.get(old_index as usize)?
    }

    /// Whether the symbol of that old index is local.
    pub(super) fn is_local(&self, old_index: u32) -> bool {
        let place = self.place(old_index).map(|place| place as usize);
        let symbol = place.and_then(|place| self.symbols.get(place));
        symbol.is_some_and(|symbol| symbol.local)
    }

    /// How many come before the first that is not local.
    pub(super) fn local_count(&self) -> u32 {
        let locals = self
            .symbols
            .iter()
            .skip(1)
            .take_while(|symbol| symbol.local);
        locals.count() as u32 + 1
    }

    /// The table. `section` gives new indices for old ones.
    pub(super) fn to_bytes(
        &self,
        form: ElfForm,
        strings: &StringTable<'_>,
        section: impl Fn(u32) -> u32,
    ) -> Result<Vec<u8>, ElfWriteError> {
        let mut bytes = Vec::new();
        for symbol in &self.symbols {
            let start = bytes.len();
            bytes.extend_from_slice(symbol.bytes);
            let mut patch = |offset: usize, field: &[u8]| {
                let field_start = start + offset;
                if let Some(place) = bytes.get_mut(field_start..field_start + field.len()) {
                    place.copy_from_slice(field);
                }
            };
            let name = strings.offset(symbol.name).unwrap_or_default();
            let name = u32::try_from(name).map_err(|_| ElfWriteError::TooLarge { value: name })?;
            // In both classes a symbol starts with its name.
            patch(0, &form.u32(name));
            if let Some(index) = symbol.section {
                let index = elf::SymbolSection::new(section(index));
                patch(form.symbol_section(), &form.u16(index.0));
            }
        }
        Ok(bytes)
    }

    /// The table of those section indices that do not fit into symbols, and zeros.
    pub(super) fn wide_indices(&self, form: ElfForm, section: impl Fn(u32) -> u32) -> Vec<u8> {
        let wide = self.symbols.iter().map(|symbol| {
            let index = symbol.section.map_or(0, &section);
            if index < elf::SHN_LORESERVE.into() {
                0
            } else {
                index
            }
        });
        wide.flat_map(|index| form.u32(index)).collect()
    }
}

impl ElfForm {
    /// The symbols that relocations name.
    pub(super) fn relocated(self, bytes: &[u8], size: u64) -> impl Iterator<Item = u32> {
        let entries = bytes.chunks_exact(size as usize);
        entries.map(move |entry| self.relocation(entry).0)
    }

    /// Symbol of a relocation, and the rest of the number that it is in.
    fn relocation(self, entry: &[u8]) -> (u32, u32) {
        let place = self.relocation_symbol();
        let number = self.number(entry.get(place..place + 4).unwrap_or_default());
        if self.wide {
            (number, 0)
        } else {
            (number >> 8, number & 0xff)
        }
    }

    /// The same relocations, of symbols by their new indices.
    pub(super) fn relocate(self, bytes: &mut [u8], size: u64, place: impl Fn(u32) -> u32) {
        let start = self.relocation_symbol();
        for entry in bytes.chunks_exact_mut(size as usize) {
            let (symbol, rest) = self.relocation(entry);
            let symbol = place(symbol);
            let number = if self.wide {
                symbol
            } else {
                symbol << 8 | rest
            };
            if let Some(field) = entry.get_mut(start..start + 4) {
                field.copy_from_slice(&self.u32(number));
            }
        }
    }

    /// Where a relocation has the four bytes that its symbol is in. In 64 bits they are the upper
    /// half of `r_info`, except for little-endian MIPS, which has the symbol first in any order.
    fn relocation_symbol(self) -> usize {
        match (self.wide, self.endian, self.mips) {
            (false, ..) => 4,
            (true, Endianness::Little, false) => 12,
            (true, ..) => 8,
        }
    }
}
