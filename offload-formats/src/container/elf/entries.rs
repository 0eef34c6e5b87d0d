//! The sections of offload entries in a host object.

use super::{Elf, ElfError, ElfSection, ElfSymbol, SymbolPlace};
use crate::format::bytes::ReadAt;
use crate::format::offload_entry::{EntryLayout, OffloadEntry};

/// A section of offload entries, with the symbols of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfEntrySection<'d> {
    /// Name, as in [`EntryLayout::sections`].
    pub name: &'static str,
    /// Its header.
    pub section: ElfSection,
    /// Its entries.
    pub content: &'d [u8],
    /// Symbols of its entries, in the order of the symbol table.
    pub symbols: Vec<ElfSymbol<'d>>,
}

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Returns the sections of offload entries that are not empty. `symbols` are all symbols of the file.
    ///
    /// # Errors
    ///
    /// Fails if a section's name or content is not inside the file.
    pub fn entry_sections(
        &self,
        symbols: &[ElfSymbol<'d>],
    ) -> Result<Vec<ElfEntrySection<'d>>, ElfError> {
        let names = self.names()?;
        let mut found = Vec::new();
        for section in self.sections().skip(1).filter(|section| section.size > 0) {
            let Some(name) = EntryLayout::section_named(names.of(&section)?) else {
                continue;
            };
            let is_entry = |symbol: &&ElfSymbol<'_>| {
                symbol.place == SymbolPlace::Section(section.index)
                    && OffloadEntry::name_of(symbol.name).is_some()
            };
            found.push(ElfEntrySection {
                name,
                section,
                content: self.content(&section)?,
                symbols: symbols.iter().filter(is_entry).copied().collect(),
            });
        }
        Ok(found)
    }
}
