//! COFF objects with other names for sections and symbols, and what there is to decide about them.

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

/// A symbol of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSymbol<'d> {
    /// In the symbol table, auxiliary records counted, as relocations name it.
    pub index: usize,
    /// From the string table, when it is long.
    pub name: &'d [u8],
    /// The number of the section in which it is defined, the first being 1.
    pub section: Option<usize>,
    /// Of one that is defined: bytes from the start of its section.
    pub value: u32,
    /// Whether other objects see it.
    pub is_external: bool,
    /// Of a weak external: the index of the symbol that stands in for it when nobody else defines it.
    pub default: Option<usize>,
}

impl<'d> Object<'d> {
    /// Reads the headers, the symbols and the names.
    ///
    /// # Errors
    ///
    /// When it is no COFF object, or damaged.
    pub fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Self, CoffError> {
        let file = EditedCoff::read(data, range)?;
        match file.image {
            Some(_) => Err(CoffError::Image),
            None => Ok(Self(file)),
        }
    }

    /// All sections, in the order of their numbers, of which the first is 1.
    pub fn sections(&self) -> impl Iterator<Item = CoffSection<'d>> + '_ {
        self.0.parts.iter().map(EditedCoffSection::section)
    }

    /// All symbols, in their order.
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

    /// The indices of the symbols that relocations of a section name, in their order.
    pub fn referred(&self, section: usize) -> impl Iterator<Item = usize> + '_ {
        let part = section
            .checked_sub(1)
            .and_then(|index| self.0.parts.get(index));
        let relocations = part.map_or(&[][..], |part| part.relocations).iter();
        let indices = relocations.map(|relocation| relocation.symbol_table_index.get(LE));
        indices.filter_map(|index| usize::try_from(index).ok())
    }

    /// Gives the section of that number another name, and the symbol that stands for it; of a number that is none,
    /// nothing.
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

    /// Gives the symbol of that index another name; of an index that is none, nothing.
    pub fn rename_symbol(&mut self, index: usize, name: &'d str) {
        let found = self
            .0
            .symbols
            .binary_search_by_key(&index, |symbol| symbol.old_index);
        if let Some(symbol) = found.ok().and_then(|at| self.0.symbols.get_mut(at)) {
            symbol.name = name.as_bytes();
        }
    }

    /// The object as it is now. Input 0 of the pieces is what it was read from.
    ///
    /// # Errors
    ///
    /// When it becomes too large.
    pub fn write(self) -> Result<Vec<Piece>, CoffError> {
        self.0.write()
    }
}
