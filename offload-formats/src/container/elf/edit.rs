//! Adds sections at the end of ELF files, and removes sections.
//!
//! The output is that of LLVM's `llvm-objcopy`, to the byte, which rewrites the whole file:
//!
//! * Segments keep their order and distance. Sections in a segment are copied with it.
//! * Other sections follow in the order of the old offsets, each at a multiple of its
//!   alignment, without the gaps of the old file. New sections are last.
//! * String tables with section or symbol names are rebuilt, and local symbols are sorted before
//!   the others. So the whole symbol table may change, and its indices in relocations and groups.
//! * The section header table is last.
//!
//! [`EditedElf`] is the old file with the edits, `layout.rs` decides the offsets, and
//! `write.rs` makes the pieces. Only contents that must be rewritten are read.

use std::ops::Range;

use object::elf;

use super::ElfWriteError;
use crate::container::edit::NewSection;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;
use file::{EditedElf, EditedElfSection, SectionContent};

mod file;
mod form;
mod layout;
mod reference;
mod symbols;
mod write;

pub(crate) use reference::{REFERENCE_SECTION, add_reference};
pub use symbols::ElfRelocation;

/// Returns an ELF file with `sections` after its own, in this order. They are not loaded, and linkers leave
/// them out (`SHF_EXCLUDE`). Names may repeat.
///
/// Input 0 of the pieces is `data`; [`NewSection`] describes the others.
///
/// # Errors
///
/// Fails if the ELF file has no section header table, or if a part that must be rewritten is damaged or unknown.
pub fn add_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    sections: &[NewSection<'_>],
) -> Result<Vec<Piece>, ElfWriteError> {
    let mut file = EditedElf::read(data, range)?;
    // Drops groups that have no members, as `llvm-objcopy` does with any edit.
    file.remove(|_, _| false)?;
    for (index, section) in sections.iter().enumerate() {
        file.parts.push(EditedElfSection::new(index, section));
    }
    file.write()
}

/// Returns an ELF file without the sections whose names match, their relocations, and the symbols in them.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails as [`add_sections`] does, and if a kept section needs a removed section or symbol.
#[cfg(feature = "tools")]
pub fn remove_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    matches: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Piece>, ElfWriteError> {
    let mut file = EditedElf::read(data, range)?;
    file.remove(|_, part| matches(part.name))?;
    file.write()
}

impl EditedElf<'_> {
    /// Marks sections as removed, with their relocations and with groups that become empty.
    fn remove(
        &mut self,
        doomed: impl Fn(u32, &EditedElfSection<'_>) -> bool,
    ) -> Result<(), ElfWriteError> {
        let directly: Vec<bool> = (0..)
            .zip(&self.parts)
            .map(|(index, part)| index > 0 && doomed(index, part))
            .collect();
        let is_doomed = |index: u32| directly.get(index as usize) == Some(&true);
        let (mut removed, mut empty): (Vec<u32>, Vec<u32>) = Default::default();
        for (index, part) in (0..).zip(&self.parts) {
            if is_doomed(index) || part.is_relocations() && is_doomed(part.section.info) {
                removed.push(index);
            }
        }
        for (index, part) in (0..).zip(&self.parts) {
            if let (false, SectionContent::Group(group)) = (is_doomed(index), &part.content) {
                let mut members = group.members.iter();
                if members.all(|member| removed.binary_search(member).is_ok()) {
                    empty.push(index);
                }
            }
        }
        removed.extend(empty);
        for index in &removed {
            let Some(part) = self.parts.get_mut(*index as usize) else {
                continue;
            };
            part.kept = false;
            if let SectionContent::Group(group) = &part.content {
                let members = group.members.clone();
                for member in members {
                    if let Some(part) = self.parts.get_mut(member as usize) {
                        part.section.flags &= !elf::SHF_GROUP.0;
                    }
                }
            }
        }
        self.check_references()
    }

    /// Checks that kept parts do not need removed ones. Drops removed sections from groups, and removed symbols.
    fn check_references(&mut self) -> Result<(), ElfWriteError> {
        let kept: Vec<bool> = self.parts.iter().map(|part| part.kept).collect();
        let is_kept = |index: u32| kept.get(index as usize) == Some(&true);
        for (by, part) in (0..).zip(&mut self.parts).skip(1) {
            if !part.kept {
                continue;
            }
            if !is_kept(part.section.link) {
                let index = part.section.link;
                return Err(ElfWriteError::Needed { index, by });
            }
            if let SectionContent::Group(group) = &mut part.content {
                group.members.retain(|member| is_kept(*member));
            }
        }
        if !is_kept(self.names) {
            let (index, by) = (self.names, 0);
            return Err(ElfWriteError::Needed { index, by });
        }
        let Some(symbols) = &mut self.symbols else {
            return Ok(());
        };
        if !is_kept(symbols.index) {
            self.symbols = None;
            return Ok(());
        }
        symbols.retain(is_kept);
        if let Some((by, symbol)) = self.relocation_of_removed_symbol() {
            return Err(ElfWriteError::SymbolNeeded { symbol, by });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
