//! What is asked of ELF objects beyond their section types, once there is device code.

use std::path::Path;

use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef, elf};
use offload_build::format::offload_entry::EntryTable;
use offload_build::registration::NEEDS_OFFLOAD_LINK;
use offload_build::target::OffloadKind;

use super::inputs::{Pread, Unit, UnitKind};
use super::symbols::Symbols;

/// An object's symbols; none when it is not ELF or cannot be read.
pub(super) fn symbols<'data, R: ReadRef<'data>>(data: R) -> Option<Symbols> {
    let mut found = Symbols::default();
    for_each_symbol(data, |name, symbol, endian| {
        let bind = symbol.st_bind();
        if bind != elf::STB_GLOBAL && bind != elf::STB_WEAK {
            return;
        }
        if symbol.st_shndx(endian) != elf::SHN_UNDEF {
            found.defined.push(name.to_vec());
        } else if bind == elf::STB_GLOBAL {
            found.undefined.push(name.to_vec());
        }
    })?;
    Some(found)
}

/// The symbols of an object, or those that a shared object has for others.
fn for_each_symbol<'data, R: ReadRef<'data>>(
    data: R,
    mut visit: impl FnMut(&[u8], &elf::Sym64<Endianness>, Endianness),
) -> Option<()> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let wanted = match header.e_type(endian) {
        elf::ET_DYN => elf::SHT_DYNSYM,
        _ => elf::SHT_SYMTAB,
    };
    let tables = sections
        .iter()
        .filter(|section| section.sh_type(endian) == wanted);
    for section in tables {
        let table: &[elf::Sym64<Endianness>] = section.data_as_array(endian, data).ok()?;
        let strings = sections.section(section.link(endian)).ok()?;
        // As a whole: one read, where a read for each name would be thousands.
        let strings = strings.data(endian, data).ok()?;
        for symbol in table {
            let name = strings.get(symbol.st_name(endian) as usize..)?;
            visit(name.split(|byte| *byte == 0).next()?, symbol, endian);
        }
    }
    Some(())
}

/// A section of offload entries in a host object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntrySection {
    pub name: String,
    pub size: u64,
    pub flags: u64,
    pub alignment: u64,
    /// Size of each entry, by its symbol; 0 when there is none.
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

/// Reads the host's side of an object. What is not there is left empty.
pub(super) fn host_side<'data, R: ReadRef<'data>>(data: R) -> Option<HostSide> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let mut found = HostSide::default();
    let mut indices = Vec::new();
    for (index, section) in sections.enumerate() {
        let name = sections.section_name(endian, section).ok()?;
        if name == b".comment" {
            found.clang = clang_release(section.data(endian, data).ok()?);
        }
        let known = EntryTable::ALL
            .into_iter()
            .filter_map(|table| table.section(OffloadKind::OPENMP))
            .find(|known| known.as_bytes() == name);
        let Some(name) = known else {
            continue;
        };
        if section.sh_size(endian) == 0 {
            continue;
        }
        indices.push(index);
        found.entries.push(EntrySection {
            name: name.to_owned(),
            size: section.sh_size(endian),
            flags: section.sh_flags(endian).0,
            alignment: section.sh_addralign(endian),
            strides: Vec::new(),
        });
    }
    let demand = NEEDS_OFFLOAD_LINK.as_bytes();
    for_each_symbol(data, |name, symbol, endian| {
        found.deferred |= name == demand;
        let section = usize::from(symbol.st_shndx(endian).0);
        let Some(at) = indices.iter().position(|index| index.0 == section) else {
            return;
        };
        let strides = &mut found.entries[at].strides;
        let size = symbol.st_size(endian);
        if name.starts_with(b".offloading.entry.") && !strides.contains(&size) {
            strides.push(size);
        }
    })?;
    Some(found)
}

/// `clang version 19.1.7` in the strings of `.comment`.
fn clang_release(comment: &[u8]) -> Option<u32> {
    const WORDS: &[u8] = b"clang version ";
    let at = comment
        .windows(WORDS.len())
        .position(|window| window == WORDS)?;
    let rest = &comment[at + WORDS.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Opens a unit's file and gives its object to `read`.
pub(super) fn with_unit<T>(
    input: &Path,
    unit: &Unit,
    read: impl FnOnce(object::read::ReadCacheRange<'_, Pread>) -> Option<T>,
) -> Option<T> {
    if unit.kind != UnitKind::Elf {
        return None;
    }
    let file = std::fs::File::open(unit.path(input)).ok()?;
    let cache = ReadCache::new(Pread::new(file));
    read(cache.range(unit.data.start, unit.data.end - unit.data.start))
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
