//! The offload entries of a COFF object. Symbols have no size there, and what clang makes weak is two symbols: an
//! alias without a place, `.offloading.entry.NAME`, and the one that stands in for it, at the entry.

use crate::steps::host_objects::entries::table::{Entries, EntryPlace, Named, no_size};
use offload_formats::by_name::ByName;
use offload_formats::container::coff::{NamedSymbol, Object};
use offload_formats::format::bytes::{Cursor, ReadCache};
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use std::ops::Range;

/// An offload entry, and its symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoffEntry {
    /// Clang's name of the entry's symbol.
    pub(crate) symbol: String,
    /// The index of the symbol at the entry, and its name.
    pub(crate) at: usize,
    seen_as: String,
    /// Index of its alias.
    pub(crate) alias: Option<usize>,
    /// The number of its section, and where it is there.
    section: usize,
    value: u32,
}

/// The offload entries of an object, in the order of its symbols.
pub(crate) fn entries(object: &Object<'_>) -> Vec<CoffEntry> {
    // In file order, so sorted by index.
    let symbols: Vec<NamedSymbol<'_>> = object.symbols().collect();
    let with_index = |index: usize| {
        let place = symbols.binary_search_by(|symbol| symbol.index.cmp(&index));
        symbols.get(place.ok()?)
    };
    let mut found = Vec::new();
    for symbol in &symbols {
        if OffloadEntry::name_of(symbol.name).is_none() {
            continue;
        }
        let default = symbol.default.and_then(with_index);
        let (at, alias) = match default {
            Some(default) => (default, Some(symbol.index)),
            None => (symbol, None),
        };
        if let Some(section) = at.section {
            found.push(CoffEntry {
                symbol: String::from_utf8_lossy(symbol.name).into_owned(),
                at: at.index,
                seen_as: String::from_utf8_lossy(at.name).into_owned(),
                alias,
                section,
                value: at.value,
            });
        }
    }
    found
}

/// The numbers of the sections of offload entries that are not empty, with their names as on ELF and their contents.
pub(crate) fn entry_sections(
    object: &Object<'_>,
) -> impl Iterator<Item = (usize, &'static str, Range<u64>)> {
    let sections: Vec<_> = object.sections().collect();
    (1..).zip(sections).filter_map(|(number, section)| {
        let name = EntryLayout::section_named(section.name)?;
        (!section.content.is_empty()).then_some((number, name, section.content))
    })
}

/// The offload entries of each section that has some.
pub(crate) fn sections(data: &ReadCache, range: Range<u64>) -> Result<Vec<Entries>, String> {
    let object = Object::read(data, range).map_err(|error| error.to_string())?;
    let all = entries(&object);
    let mut found = Vec::new();
    for (number, section, content) in entry_sections(&object) {
        let size = content.end - content.start;
        let here: Vec<&CoffEntry> = all.iter().filter(|it| it.section == number).collect();
        // Entries follow each other, and each has a symbol.
        let stride = size.checked_div(here.len() as u64);
        let layout = stride.and_then(|stride| EntryLayout::find(section, stride));
        let layout = layout.filter(|layout| layout.stride() * here.len() as u64 == size);
        let layout = layout.ok_or_else(|| no_size(section))?;
        let mut named = ByName::default();
        for entry in here {
            let start = content.start.saturating_add(entry.value.into());
            let mut cursor = Cursor::new(data, start..content.end);
            let read = OffloadEntry::read(&mut cursor, layout);
            let read = read.map_err(|_| no_size(section))?;
            let name = OffloadEntry::name_of(entry.symbol.as_bytes());
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let entry = Named {
                    symbol: entry.symbol.clone(),
                    seen_as: entry.seen_as.clone(),
                    is_kernel: read.size == 0,
                    // OpenMP has no host of this format.
                    is_shared: false,
                };
                named.insert(String::from_utf8_lossy(name).into_owned(), entry);
            }
        }
        found.push(Entries {
            section: section.to_owned(),
            layout,
            place: EntryPlace::Symbols,
            named,
        });
    }
    Ok(found)
}
