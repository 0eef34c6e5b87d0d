//! The offload entries of a module's host objects: what its images must have.

pub(super) mod coff;

use crate::error::{self, Error};
use object::{BinaryFormat, Object, ObjectSection, ObjectSymbol, SectionFlags};
use offload_formats::format::bytes::Cursor;
use offload_formats::format::offload_entry::{EntryTable, OffloadEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The symbol of an offload entry is one of these and the name of the kernel or global: to LLVM 16, and after.
const ENTRY_SYMBOLS: [&str; 2] = [".omp_offloading.entry.", ".offloading.entry."];

/// The offload entries of host objects, all in sections of one name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entries {
    section: String,
    /// How they look.
    pub(super) layout: EntryTable,
    pub(super) place: Place,
    /// By the names that the runtime knows.
    pub(super) named: BTreeMap<String, Named>,
}

/// Where the registration finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In one section of the joined object.
    Section {
        /// Bytes, in all objects together.
        size: u64,
        flags: u64,
        alignment: u64,
    },
    /// Each by its symbol.
    Symbols,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its own symbol, as clang calls it.
    pub(super) symbol: String,
    /// The symbol by which others find it, while nothing is renamed.
    pub(super) seen_as: String,
    /// A kernel; else a global.
    pub(super) is_kernel: bool,
}

impl Entries {
    /// Those of `objects`; nothing when there are none.
    pub(super) fn of(objects: &[PathBuf]) -> Result<Option<Self>, Error> {
        let mut found: Option<Self> = None;
        for path in objects {
            let bytes = fs::read(path).map_err(error::io(path))?;
            for section in sections(path, &bytes)? {
                match &mut found {
                    None => found = Some(section),
                    Some(known) => known.join(section).map_err(|text| wrong(path, &text))?,
                }
            }
        }
        Ok(found)
    }

    /// Adds those of another object.
    fn join(&mut self, other: Self) -> Result<(), String> {
        let fits = match (&mut self.place, &other.place) {
            (
                Place::Section {
                    size, alignment, ..
                },
                Place::Section {
                    size: more,
                    alignment: same,
                    ..
                },
            ) if alignment == same => {
                *size += more;
                true
            }
            (Place::Symbols, Place::Symbols) => true,
            _ => false,
        };
        if !fits || self.section != other.section || self.layout != other.layout {
            return Err(format!(
                "`{}` is of another language or LLVM release than `{}`",
                other.section, self.section
            ));
        }
        self.named.extend(other.named);
        Ok(())
    }

    /// What the images define.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.named.keys().cloned().collect()
    }

    /// The section they are in, as compilers call it.
    pub(super) fn section(&self) -> &str {
        &self.section
    }
}

/// Returns whether a host object has kernels or globals, which a registration must know.
pub(crate) fn has_entries(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let sections = sections(path, bytes)?;
    Ok(sections.iter().any(|section| !section.named.is_empty()))
}

/// Returns the offload entries of each section of a host object.
fn sections(path: &Path, bytes: &[u8]) -> Result<Vec<Entries>, Error> {
    let file = object::File::parse(bytes).map_err(|error| wrong(path, &error))?;
    let sections = match file.format() {
        BinaryFormat::Elf => of_elf(&file),
        BinaryFormat::Coff => coff::sections(bytes).map_err(|error| error.to_string()),
        _ => Err("is neither an ELF nor a COFF object".to_owned()),
    };
    sections.map_err(|problem| wrong(path, &problem))
}

fn wrong(path: &Path, problem: &dyn fmt::Display) -> Error {
    Error::new(format_args!("{}: {problem}", path.display()))
}

/// What a symbol is called after that is the one of an offload entry.
pub(super) fn name_of(symbol: &str) -> Option<&str> {
    let mut prefixes = ENTRY_SYMBOLS.iter();
    prefixes.find_map(|prefix| symbol.strip_prefix(prefix))
}

pub(super) fn is_entry_section(name: &str) -> bool {
    let mut all = EntryTable::ALL.into_iter().flat_map(EntryTable::sections);
    all.any(|known| known == name)
}

fn no_size(section: &str) -> String {
    format!("`{section}` has entries of no known size")
}

fn of_elf(file: &object::File<'_>) -> Result<Vec<Entries>, String> {
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
            place: Place::Section {
                size: section.size(),
                flags: sh_flags.0,
                alignment: section.align(),
            },
            named,
        });
    }
    Ok(found)
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
        let Some(entry) = name_of(name) else {
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
        let named_entry = Named {
            symbol: name.to_owned(),
            seen_as: name.to_owned(),
            is_kernel: read.size == 0,
        };
        named.insert(entry.to_owned(), named_entry);
    }
    Ok(found)
}
