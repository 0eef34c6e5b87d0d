//! The symbol table of a file to edit, and the relocations that refer to it.

use object::read::elf::{FileHeader, Sym};
use object::{Endianness, elf};

use super::super::{Elf, ElfError, ElfSection, ElfWriteError, string};
use super::form::{ElfForm, SHT_CREL};
use crate::format::bytes::ReadAt;
use crate::format::string_table::StringTable;

/// A relocation: a place in a section that refers to a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfRelocation {
    /// Offset of the place from the start of the section (`r_offset`).
    pub offset: u64,
    /// Index of the symbol in the symbol table.
    pub symbol: u32,
    /// Number to add to the symbol's value; `None` if the place itself contains it (`SHT_REL`).
    pub addend: Option<i64>,
}

/// All symbols, in their new order.
#[derive(Debug)]
pub(super) struct Symbols<'d> {
    /// Index of the section of the symbol table.
    pub(super) index: u32,
    pub(super) symbols: Vec<EditedElfSymbol<'d>>,
    /// New index by old index; `None` for removed symbols.
    places: Vec<Option<u32>>,
    /// True if a symbol has a new index or was removed.
    pub(super) changed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EditedElfSymbol<'d> {
    /// The symbol in the old file.
    bytes: &'d [u8],
    pub(super) name: &'d [u8],
    /// Old index of the section that defines it.
    pub(super) section: Option<u32>,
    pub(super) local: bool,
    old_index: u32,
}

impl<'d> Symbols<'d> {
    /// Reads the symbol table in section `index`. Section `wide` has the section indices that do not fit
    /// into a symbol.
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
        Ok(Self::new(index, symbols))
    }

    /// Moves local symbols before the others.
    fn new(index: u32, read: Vec<EditedElfSymbol<'d>>) -> Self {
        let places = vec![None; read.len()];
        // Symbol 0 is undefined and stays first.
        let is_first = |symbol: &EditedElfSymbol<'_>| symbol.old_index == 0 || symbol.local;
        let (mut symbols, others): (Vec<_>, Vec<_>) = read.into_iter().partition(is_first);
        symbols.extend(others);
        let mut symbols = Self {
            index,
            places,
            symbols,
            changed: false,
        };
        symbols.number();
        symbols
    }

    /// Drops the symbols of removed sections.
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

    /// Adds an undefined symbol after the others; returns its index in the new file.
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

    /// Returns the new index of a symbol.
    pub(super) fn place(&self, old_index: u32) -> Option<u32> {
        *self.places.get(old_index as usize)?
    }

    /// Returns true if the symbol with that old index is local.
    pub(super) fn is_local(&self, old_index: u32) -> bool {
        let place = self.place(old_index).map(|place| place as usize);
        let symbol = place.and_then(|place| self.symbols.get(place));
        symbol.is_some_and(|symbol| symbol.local)
    }

    /// Returns the index of the first symbol that is not local.
    pub(super) fn local_count(&self) -> u32 {
        let locals = self
            .symbols
            .iter()
            .skip(1)
            .take_while(|symbol| symbol.local);
        locals.count() as u32 + 1
    }

    /// Returns the symbol table. `section` returns the new index of a section.
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
            let name = strings
                .offset(symbol.name)
                .expect("the table has every name");
            let name = u32::try_from(name).map_err(|_| ElfWriteError::TooLarge { value: name })?;
            // In both classes, a symbol starts with the offset of its name.
            patch(0, &form.u32(name));
            if let Some(index) = symbol.section {
                let index = elf::SymbolSection::new(section(index));
                patch(form.symbol_section(), &form.u16(index.0));
            }
        }
        Ok(bytes)
    }

    /// Returns the table of section indices: those that do not fit into symbols, and zeros.
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

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Lists the indices of the symbols in a section's relocations, in the relocations' order.
    ///
    /// # Errors
    ///
    /// Fails if relocations are not inside the file, or of an unknown size or form.
    pub fn referred(&self, section: u32) -> Result<Vec<u32>, ElfWriteError> {
        let mut found = Vec::new();
        for table in self.sections().filter(|table| table.info == section) {
            let relocations = self.relocations(&table)?;
            found.extend(relocations.iter().map(|relocation| relocation.symbol));
        }
        Ok(found)
    }

    /// Returns the relocations in `table`, a section; none if the section is of another type. They are for the section with
    /// the index `table.info`.
    ///
    /// # Errors
    ///
    /// Fails if the relocations are not inside the file, or of an unknown size or form.
    pub fn relocations(&self, table: &ElfSection) -> Result<Vec<ElfRelocation>, ElfWriteError> {
        let form = ElfForm::of(self);
        let index = table.index;
        let words = match elf::SectionType(table.section_type) {
            elf::SHT_REL => 2,
            elf::SHT_RELA => 3,
            SHT_CREL => return Err(ElfWriteError::Relocations { index }),
            _ => return Ok(Vec::new()),
        };
        let entry_size = words * form.word_size();
        if table.size % entry_size != 0 {
            return Err(ElfWriteError::Relocations { index });
        }
        let entries = self.content(table)?.chunks_exact(entry_size as usize);
        let relocations = entries.map(|entry| ElfRelocation {
            offset: form.word_at(entry, 0),
            symbol: form.relocation(entry).0,
            addend: (words == 3).then(|| form.addend(entry)),
        });
        Ok(relocations.collect())
    }
}

impl ElfForm {
    /// Returns the addend of a relocation that has one.
    fn addend(self, entry: &[u8]) -> i64 {
        let addend = self.word_at(entry, 2);
        match self.wide {
            true => addend as i64,
            false => i64::from(addend as i32),
        }
    }

    /// Lists the symbols of relocations.
    pub(super) fn relocated(self, bytes: &[u8], size: u64) -> impl Iterator<Item = u32> {
        let entries = bytes.chunks_exact(size as usize);
        entries.map(move |entry| self.relocation(entry).0)
    }

    /// Returns the symbol of a relocation, and the other bits of its field.
    fn relocation(self, entry: &[u8]) -> (u32, u32) {
        let place = self.relocation_symbol();
        let field = entry.get(place..place + 4);
        let number = self.number(field.expect("the size of relocations was checked"));
        if self.wide {
            (number, 0)
        } else {
            (number >> 8, number & 0xff)
        }
    }

    /// Replaces the symbols of relocations by their new indices.
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

    /// Returns the offset of the four bytes with a relocation's symbol. In ELF64 they are the upper
    /// half of `r_info`, except for little-endian MIPS, where the symbol is first in both byte orders.
    fn relocation_symbol(self) -> usize {
        match (self.wide, self.endian, self.mips) {
            (false, ..) => 4,
            (true, Endianness::Little, false) => 12,
            (true, ..) => 8,
        }
    }
}
