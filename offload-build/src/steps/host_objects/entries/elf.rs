//! The offload entries of an ELF object.

use crate::steps::host_objects::entries::table::{Entries, EntryPlace, Named, no_size};
use offload_formats::by_name::ByName;
use offload_formats::container::elf::{
    Binding, Elf, ElfEntrySection, ElfError, ElfSection, ElfSymbol, SymbolPlace, SymbolTable,
};
use offload_formats::format::bytes::{Cursor, ReadAt};
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use std::collections::BTreeSet;
use std::ops::Range;

/// Returns the offload entries of each section that has some.
pub(crate) fn sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Entries>, String> {
    let read = || {
        let elf = Elf::parse(data, range)?;
        let symbols = elf.symbols(SymbolTable::All)?;
        Ok((elf.entry_sections(&symbols)?, shared(&elf, &symbols)))
    };
    let (found, shared) = read().map_err(|error: ElfError| error.to_string())?;
    let entries = found.into_iter().map(|found| {
        if let Some(name) = managed(&found) {
            return Err(format!("`{name}` {MANAGED}"));
        }
        let (layout, named) = named(&found, &shared).ok_or_else(|| no_size(found.name))?;
        Ok(Entries {
            section: found.name.to_owned(),
            layout,
            place: EntryPlace::Section {
                size: found.section.size,
                flags: found.section.flags,
                alignment: found.section.alignment,
            },
            named,
        })
    });
    entries.collect()
}

/// The problem of a managed variable in an entry of LLVM 19: nothing there names the pointer that its runtime sets.
const MANAGED: &str = "is `__managed__`, and host code of clang before 20 does not say how to register it\n\
    hint: set `images = \"source\"`, so that clang registers each source, or take clang 20 or later";

/// Flags of a managed variable in entries of HIP and CUDA.
const IS_MANAGED: u32 = 1;
const FLAGS_OF_KIND: u32 = 7;

/// Returns the first managed variable of a section whose entries cannot say more.
fn managed<'d>(section: &ElfEntrySection<'d>) -> Option<std::borrow::Cow<'d, str>> {
    let layout = EntryLayout::find(section.name, section.symbols.first()?.size)?;
    let is_of_gpu = section.name.starts_with("hip_") || section.name.starts_with("cuda_");
    if layout != EntryLayout::V19 || !is_of_gpu {
        return None;
    }
    section.symbols.iter().find_map(|symbol| {
        let mut cursor = Cursor::new(section.content, symbol.value..u64::MAX);
        let entry = OffloadEntry::read(&mut cursor, layout).ok()?;
        let is_managed = entry.size != 0 && entry.flags & FLAGS_OF_KIND == IS_MANAGED;
        let name = OffloadEntry::name_of(symbol.name).filter(|_| is_managed)?;
        Some(String::from_utf8_lossy(name))
    })
}

/// Returns the names of weak symbols in writable sections.
fn shared<'d, R: ReadAt<'d>>(elf: &Elf<'d, R>, symbols: &[ElfSymbol<'d>]) -> BTreeSet<String> {
    let sections: Vec<ElfSection> = elf.sections().collect();
    let is_writable = |index: u32| {
        sections
            .get(index as usize)
            .is_some_and(ElfSection::writable)
    };
    let is_shared = |symbol: &&ElfSymbol<'d>| match symbol.place {
        SymbolPlace::Section(index) => symbol.binding == Binding::Weak && is_writable(index),
        _ => false,
    };
    let shared = symbols.iter().filter(is_shared);
    shared
        .map(|symbol| String::from_utf8_lossy(symbol.name).into_owned())
        .collect()
}

/// Returns the entries of one section; `shared` are the names of variables that the program has once. `None` if no release has
/// entries of that size.
fn named(
    section: &ElfEntrySection<'_>,
    shared: &BTreeSet<String>,
) -> Option<(EntryLayout, ByName<Named>)> {
    let first = section.symbols.first()?;
    let layout = EntryLayout::find(section.name, first.size)?;
    let mut named = ByName::default();
    for symbol in &section.symbols {
        let mut cursor = Cursor::new(section.content, symbol.value..u64::MAX);
        let entry = OffloadEntry::read(&mut cursor, layout).ok();
        let entry = entry.filter(|_| symbol.size == layout.stride())?;
        let name = String::from_utf8_lossy(OffloadEntry::name_of(symbol.name)?);
        // `requires` makes an entry without a name, which no image defines.
        if name.is_empty() {
            continue;
        }
        let symbol = String::from_utf8_lossy(symbol.name).into_owned();
        let named_entry = Named {
            seen_as: symbol.clone(),
            symbol,
            is_kernel: entry.size == 0,
            is_shared: entry.size != 0 && shared.contains(&*name),
        };
        named.insert(name.into_owned(), named_entry);
    }
    Some((layout, named))
}
