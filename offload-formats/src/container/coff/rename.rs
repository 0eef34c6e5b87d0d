//! Renames sections and symbols of COFF objects, and lists both.

use std::ops::Range;

use object::{LittleEndian as LE, pe};

use super::error::CoffError;
use super::file::EditedCoff;
use super::part::{CoffSection, EditedCoffSection};
use super::symbols;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// A COFF object whose names can be changed.
#[derive(Debug)]
pub struct Object<'d>(EditedCoff<'d>);

/// A symbol of a COFF object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedSymbol<'d> {
    /// Index in the symbol table, with auxiliary records counted, as in relocations.
    pub index: usize,
    /// Name, from the string table if it is long.
    pub name: &'d [u8],
    /// Number of the section that defines the symbol, from 1.
    pub section: Option<usize>,
    /// Offset of a defined symbol from the start of its section, in bytes.
    pub value: u32,
    /// True if other objects see the symbol.
    pub is_external: bool,
    /// Index of a weak external's default symbol, which replaces it if no object defines it.
    pub default: Option<usize>,
}

impl<'d> Object<'d> {
    /// Reads the headers, the symbols and the names.
    ///
    /// # Errors
    ///
    /// Fails if the file is not a COFF object, or damaged.
    pub fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Self, CoffError> {
        let file = EditedCoff::read(data, range)?;
        match file.image {
            Some(_) => Err(CoffError::Image),
            None => Ok(Self(file)),
        }
    }

    /// Lists all sections in the order of their numbers, from 1.
    pub fn sections(&self) -> impl Iterator<Item = CoffSection<'d>> + '_ {
        self.0.parts.iter().map(EditedCoffSection::section)
    }

    /// Lists all symbols in file order.
    pub fn symbols(&self) -> impl Iterator<Item = NamedSymbol<'d>> + '_ {
        self.0.symbols.iter().map(|symbol| NamedSymbol {
            index: symbol.old_index,
            name: symbol.name,
            section: usize::try_from(symbol.section)
                .ok()
                .filter(|number| *number > 0),
            value: symbol.value,
            is_external: [
                pe::IMAGE_SYM_CLASS_EXTERNAL,
                pe::IMAGE_SYM_CLASS_WEAK_EXTERNAL,
            ]
            .contains(&symbol.class),
            default: symbol.default.and_then(|index| usize::try_from(index).ok()),
        })
    }

    /// Lists the indices of the symbols in a section's relocations, in the relocations' order.
    pub fn referred(&self, section: usize) -> impl Iterator<Item = usize> + '_ {
        let part = section
            .checked_sub(1)
            .and_then(|index| self.0.parts.get(index));
        let relocations = part.map_or(&[][..], |part| part.relocations).iter();
        let indices = relocations.map(|relocation| relocation.symbol_table_index.get(LE));
        indices.filter_map(|index| usize::try_from(index).ok())
    }

    /// Renames the section with that number, and the symbol that represents it. An unknown number has no effect.
    pub fn rename_section(&mut self, number: usize, name: &'d str) {
        let part = number
            .checked_sub(1)
            .and_then(|index| self.0.parts.get_mut(index));
        let Some(part) = part else { return };
        let old = std::mem::replace(&mut part.name, name.as_bytes());
        let is_its_own = |symbol: &&mut symbols::EditedCoffSymbol<'_>| {
            let is_in_it = usize::try_from(symbol.section) == Ok(number);
            is_in_it && symbol.class == pe::IMAGE_SYM_CLASS_STATIC && symbol.name == old
        };
        let symbols = self.0.symbols.iter_mut().filter(is_its_own);
        symbols.for_each(|symbol| symbol.name = name.as_bytes());
    }

    /// Renames the symbol with that index. An unknown index has no effect.
    pub fn rename_symbol(&mut self, index: usize, name: &'d str) {
        let found = self
            .0
            .symbols
            .binary_search_by_key(&index, |symbol| symbol.old_index);
        if let Some(symbol) = found.ok().and_then(|at| self.0.symbols.get_mut(at)) {
            symbol.name = name.as_bytes();
        }
    }

    /// Returns the edited object. Input 0 of the pieces is the data it was read from.
    ///
    /// # Errors
    ///
    /// Fails if the object becomes too large.
    pub fn write(self) -> Result<Vec<Piece>, CoffError> {
        self.0.write()
    }
}
