//! ELF files with other sections: new ones at the end, or some fewer.
//!
//! What is asked for is what LLVM's `llvm-objcopy` writes, to the byte. It writes the whole file
//! anew:
//!
//! * Segments keep their order and distance; what is in a segment is copied with it.
//! * Everything else follows in the order of the old offsets, each section at a multiple of its
//!   alignment, without the gaps of the old file; new sections are last.
//! * String tables that names of sections or symbols are in are written anew, and local symbols
//!   come before the others, so that all of the symbol table, its indices in relocations and
//!   groups included, may change.
//! * The section header table is last.
//!
//! [`EditedElf`] is the old file with what was decided about it, `layout.rs` decides where things go,
//! `write.rs` makes the pieces. Contents are not read, apart from what has to be rewritten.

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

pub use reference::{REFERENCE_SECTION, add_reference};

/// An ELF file with more sections, after the others and in this order: not loaded, and left out
/// by linkers (`SHF_EXCLUDE`). There may be sections of the same names already.
///
/// Input 0 of the pieces is `data`; those that follow are told at [`NewSection`].
///
/// # Errors
///
/// When the ELF file has no section header table, or something in it that must be understood to
/// move sections is damaged or unknown.
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

/// An ELF file without the sections whose names match, their relocations, and the symbols in them.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// As [`add_sections`], and when something that stays needs what is removed.
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
    /// Marks sections as removed, with what makes no sense without them.
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

    /// Nothing that is kept needs what is not, and lists of sections name only those that are.
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
