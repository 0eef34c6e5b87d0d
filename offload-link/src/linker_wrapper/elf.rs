//! What is asked of ELF objects beyond their section types, once there is device code.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::{ReadCache, ReadRef, elf};
use offload_build::container::elf::{Binding, Elf, ElfError, Place, SymbolTable};
use offload_build::format::offload_entry::EntryTable;
use offload_build::registration::NEEDS_OFFLOAD_LINK;
use offload_build::target::OffloadKind;

use super::inputs::{Pread, Unit, UnitKind};
use super::symbols::Symbols;

/// The symbols that matter to other objects.
pub(super) fn symbols<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> Result<Symbols, ElfError> {
    let elf = Elf::parse(data, range)?;
    let table = match elf::FileType(elf.file_type) {
        elf::ET_DYN => SymbolTable::Dynamic,
        _ => SymbolTable::All,
    };
    let mut found = Symbols::default();
    for symbol in elf.symbols(table)? {
        match (symbol.binding, symbol.place) {
            (Binding::Local, _) | (Binding::Weak, Place::Undefined) => {}
            (Binding::Global, Place::Undefined) => found.undefined.push(symbol.name.to_vec()),
            (Binding::Global | Binding::Weak, _) => found.defined.push(symbol.name.to_vec()),
        }
    }
    Ok(found)
}

/// A section of offload entries in a host object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntrySection {
    pub name: &'static str,
    pub size: u64,
    pub flags: u64,
    pub alignment: u64,
    /// The different sizes of its entries, by their symbols.
    pub strides: Vec<u64>,
}

/// What the compiler left in a host object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostSide {
    pub entries: Vec<EntrySection>,
    /// Release of the clang that made it, by `.comment`.
    pub clang: Option<u32>,
    /// It asks for our registration.
    pub deferred: bool,
}

/// Reads the host's side of an object.
pub(super) fn host_side<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<HostSide, ElfError> {
    let elf = Elf::parse(data, range)?;
    let names = elf.names()?;
    let mut found = HostSide::default();
    let mut indices = Vec::new();
    for section in elf.sections().skip(1) {
        let name = names.of(&section)?;
        if name == b".comment" {
            found.clang = clang_release(elf.content(&section)?);
        }
        let known = EntryTable::ALL
            .into_iter()
            .filter_map(|table| table.section(OffloadKind::OPENMP))
            .find(|known| known.as_bytes() == name);
        let Some(name) = known.filter(|_| section.size > 0) else {
            continue;
        };
        indices.push(section.index);
        found.entries.push(EntrySection {
            name,
            size: section.size,
            flags: section.flags,
            alignment: section.alignment,
            strides: Vec::new(),
        });
    }
    for symbol in elf.symbols(SymbolTable::All)? {
        found.deferred |= symbol.name == NEEDS_OFFLOAD_LINK.as_bytes();
        let Place::Section(index) = symbol.place else {
            continue;
        };
        let entries = indices.iter().zip(&mut found.entries);
        let section = entries.into_iter().find(|(known, _)| **known == index);
        if let Some((_, section)) = section {
            let is_entry = symbol.name.starts_with(b".offloading.entry.");
            if is_entry && !section.strides.contains(&symbol.size) {
                section.strides.push(symbol.size);
            }
        }
    }
    Ok(found)
}

/// `clang version 19.1.7` in the strings of `.comment`.
fn clang_release(comment: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(comment);
    let (_, rest) = text.split_once("clang version ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest.get(..end)?.parse().ok()
}

/// Opens a unit's file and gives its object to `read`; nothing when it is no ELF object.
pub(super) fn with_unit<T>(
    input: &Path,
    unit: &Unit,
    read: impl FnOnce(&ReadCache<Pread>, Range<u64>) -> Result<T, ElfError>,
) -> Option<T> {
    if unit.kind != UnitKind::Elf {
        return None;
    }
    let file = File::open(unit.path(input)).ok()?;
    read(&ReadCache::new(Pread::new(file)), unit.data.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_release_of_clang() {
        for (comment, expected) in [
            (&b"\0Debian clang version 19.1.7 (3)\0"[..], Some(19)),
            (
                b"GCC: (Debian 12) 12.2.0\0clang version 22.1.8\0rustc version 1.95.0",
                Some(22),
            ),
            (b"rustc version 1.95.0 (59807616e 2026-04-14)\0", None),
            (b"clang version ", None),
        ] {
            assert_eq!(clang_release(comment), expected);
        }
    }
}
