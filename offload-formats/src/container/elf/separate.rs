//! Separates weak definitions of an object from those of other objects with the same names.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use super::rename::{Renaming, SYMBOL_SIZE};
use super::{Binding, Elf, ElfSection, ElfSymbol, ElfWriteError, SymbolPlace, SymbolTable};
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// Returns the 64-bit object in a range of `data` with symbols renamed by their indices. A new symbol at the place of each has its old
/// name.
///
/// The object itself refers to the new names. Other objects still find the old ones. A COMDAT group that
/// contains a renamed symbol is identified by a new name, so the linker keeps it beside other objects' groups.
///
/// The new sections of names and symbols are at the end of the file; nothing else moves. Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails if the file is not a 64-bit ELF file, its symbol table or groups cannot be read, or other objects do not see a
/// definition of a symbol to rename.
pub fn separate_symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    names: &BTreeMap<u32, String>,
) -> Result<Vec<Piece>, ElfWriteError> {
    let elf = Elf::parse(data, range)?;
    let Some(first) = names.keys().next() else {
        let range = elf.range();
        return Ok(vec![Piece::Copy { input: 0, range }]);
    };
    let table = elf
        .sections()
        .find(|section| section.section_type == elf::SHT_SYMTAB.0);
    let table = table.ok_or(ElfWriteError::NoSymbol { symbol: *first })?;
    let symbols = elf.symbols(SymbolTable::All)?;
    let mut renaming = Renaming::new(&elf, table.link)?;
    let mut records = elf.content(&table)?.to_vec();
    for (symbol, name) in names {
        let is_seen = symbols.get(*symbol as usize).is_some_and(is_seen);
        let start = u64::from(*symbol).saturating_mul(SYMBOL_SIZE) as usize;
        let end = start.saturating_add(SYMBOL_SIZE as usize);
        let record = records.get_mut(start..end).filter(|_| is_seen);
        let record = record.ok_or(ElfWriteError::NoSymbol { symbol: *symbol })?;
        let old = record.to_vec();
        let name = renaming.add(name)?;
        // The offset of the name is first in a symbol.
        let field = record.first_chunk_mut().expect("a symbol has 24 bytes");
        *field = name;
        records.extend(old);
    }
    renaming.name_groups(&elf, &symbols, names)?;
    let mut tables = vec![(table.index, records)];
    tables.extend(wide_indices(&elf, &table, names)?);
    renaming.finish_with(&elf, tables)
}

/// Returns true for a definition that other objects see.
fn is_seen(symbol: &ElfSymbol<'_>) -> bool {
    symbol.binding != Binding::Local && symbol.place != SymbolPlace::Undefined
}

/// Returns the new table of section indices that do not fit into symbols, with the index of its section, if `table` has one.
fn wide_indices<'d, R: ReadAt<'d>>(
    elf: &Elf<'d, R>,
    table: &ElfSection,
    names: &BTreeMap<u32, String>,
) -> Result<Option<(u32, Vec<u8>)>, ElfWriteError> {
    let wide = elf.sections().find(|section| {
        section.section_type == elf::SHT_SYMTAB_SHNDX.0 && section.link == table.index
    });
    let Some(wide) = wide else {
        return Ok(None);
    };
    let old = elf.content(&wide)?;
    let mut indices = old.to_vec();
    for symbol in names.keys() {
        let index = old.chunks_exact(4).nth(*symbol as usize);
        indices.extend(index.ok_or(ElfWriteError::WideIndex { symbol: *symbol })?);
    }
    Ok(Some((wide.index, indices)))
}
