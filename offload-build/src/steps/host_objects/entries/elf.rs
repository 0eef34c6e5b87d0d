//! The offload entries of an ELF object.

use crate::steps::host_objects::entries::table::{
    Entries, EntryPlace, Named, is_entry_section, name_of, no_size,
};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use offload_formats::format::bytes::Cursor;
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use std::collections::BTreeMap;

/// Returns the offload entries of each section that has some.
pub(crate) fn sections(file: &object::File<'_>) -> Result<Vec<Entries>, String> {
    let mut found = Vec::new();
    for section in file.sections() {
        let name = section.name().map_err(|error| error.to_string())?;
        if section.size() == 0 || !is_entry_section(name) {
            continue;
        }
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        let named = named(file, &section).map_err(|error| error.to_string())?;
        let (layout, named) = named.ok_or_else(|| no_size(name))?;
        found.push(Entries {
            section: name.to_owned(),
            layout,
            place: EntryPlace::Section {
                size: section.size(),
                flags: sh_flags.0,
                alignment: section.align(),
            },
            named,
        });
    }
    Ok(found)
}

type NamedEntries = Option<(EntryLayout, BTreeMap<String, Named>)>;

/// The entries of one section; nothing when no release has any of that size.
fn named(
    file: &object::File<'_>,
    section: &object::Section<'_, '_>,
) -> object::Result<NamedEntries> {
    let data = section.data()?;
    let mut found = None;
    for symbol in file.symbols() {
        if symbol.section_index() != Some(section.index()) {
            continue;
        }
        let name = symbol.name()?;
        let Some(entry) = name_of(name) else {
            continue;
        };
        let Some(layout) = EntryLayout::find(section.name()?, symbol.size()) else {
            return Ok(None);
        };
        let (_, named) = found.get_or_insert_with(|| (layout, BTreeMap::new()));
        // `requires` makes an entry without a name, which no image defines.
        if entry.is_empty() {
            continue;
        }
        let mut cursor = Cursor::new(data, symbol.address()..data.len() as u64);
        let Ok(read) = OffloadEntry::read(&mut cursor, layout) else {
            return Ok(None);
        };
        let named_entry = Named {
            symbol: name.to_owned(),
            seen_as: name.to_owned(),
            is_kernel: read.size == 0,
        };
        named.insert(entry.to_owned(), named_entry);
    }
    Ok(found)
}
