//! The offload entries of a module's host objects: what its images must have.

use crate::error::{self, Error};
use crate::format::bytes::Cursor;
use crate::format::offload_entry::{EntryTable, OffloadEntry};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// The symbol of an offload entry is one of these and the name of the kernel or global: to LLVM 16, and after.
const ENTRY_SYMBOLS: [&str; 2] = [".omp_offloading.entry.", ".offloading.entry."];

/// The offload entries of host objects, all in one section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) section: String,
    /// How they look.
    pub(super) layout: EntryTable,
    /// Bytes, in all objects together.
    pub(super) size: u64,
    pub(super) flags: u64,
    pub(super) alignment: u64,
    /// By the names that the runtime knows.
    pub(super) named: BTreeMap<String, Named>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its own symbol.
    pub(super) symbol: String,
    /// A kernel; else a global.
    pub(super) is_kernel: bool,
}

impl Entries {
    /// Those of `objects`; nothing when there are none.
    pub(super) fn of(objects: &[PathBuf]) -> Result<Option<Self>, Error> {
        let mut found: Option<Self> = None;
        for path in objects {
            let bytes = fs::read(path).map_err(error::io(path))?;
            let wrong = |problem: &dyn fmt::Display| {
                Error::new(format_args!("{}: {problem}", path.display()))
            };
            let file = object::File::parse(bytes.as_slice()).map_err(|error| wrong(&error))?;
            for section in file.sections() {
                let name = section.name().map_err(|error| wrong(&error))?;
                if section.size() == 0 || !is_entry_section(name) {
                    continue;
                }
                let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                    return Err(wrong(&"is not an ELF object"));
                };
                let named = named(&file, &section).map_err(|error| wrong(&error))?;
                let Some((layout, named)) = named else {
                    return Err(wrong(&format_args!(
                        "`{name}` has entries of no known size"
                    )));
                };
                let entries = found.get_or_insert_with(|| Self {
                    section: name.to_owned(),
                    layout,
                    size: 0,
                    flags: sh_flags.0,
                    alignment: section.align(),
                    named: BTreeMap::new(),
                });
                if entries.section != name || entries.alignment != section.align() {
                    return Err(wrong(&format_args!(
                        "`{name}` is of another language or LLVM release than `{}`",
                        entries.section
                    )));
                }
                entries.size += section.size();
                entries.named.extend(named);
            }
        }
        Ok(found)
    }

    /// What the images define.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.named.keys().cloned().collect()
    }
}

/// Whether a symbol is that of an offload entry.
pub(super) fn is_entry_symbol(name: &str) -> bool {
    ENTRY_SYMBOLS.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn is_entry_section(name: &str) -> bool {
    let mut all = EntryTable::ALL.into_iter().flat_map(EntryTable::sections);
    all.any(|known| known == name)
}

type Found = Option<(EntryTable, BTreeMap<String, Named>)>;

/// The entries of one section; nothing when no release has any of that size.
fn named(file: &object::File<'_>, section: &object::Section<'_, '_>) -> object::Result<Found> {
    let data = section.data()?;
    let mut found = None;
    for symbol in file.symbols() {
        if symbol.section_index() != Some(section.index()) {
            continue;
        }
        let name = symbol.name()?;
        let mut prefixes = ENTRY_SYMBOLS.iter();
        let Some(entry) = prefixes.find_map(|prefix| name.strip_prefix(prefix)) else {
            continue;
        };
        let Some(layout) = EntryTable::find(section.name()?, symbol.size()) else {
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
        let symbol = name.to_owned();
        let is_kernel = read.size == 0;
        named.insert(entry.to_owned(), Named { symbol, is_kernel });
    }
    Ok(found)
}
