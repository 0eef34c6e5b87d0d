//! Offload entries of host objects, as read.

use offload_formats::by_name::ByName;
use offload_formats::format::offload_entry::EntryLayout;
use std::collections::BTreeSet;

/// The offload entries of host objects, all in sections of one name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) section: String,
    /// Layout of the entries.
    pub(crate) layout: EntryLayout,
    pub(crate) place: EntryPlace,
    /// Entries by the names that the runtime knows.
    pub(crate) named: ByName<Named>,
}

/// Place in which the registration finds the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryPlace {
    /// One section of the joined object.
    Section {
        /// Bytes, in all objects together.
        size: u64,
        flags: u64,
        alignment: u64,
    },
    /// A symbol for each.
    Symbols,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its own symbol, as clang names it.
    pub(crate) symbol: String,
    /// The symbol by which others find it, while nothing is renamed.
    pub(crate) seen_as: String,
    /// A kernel; else a global.
    pub(crate) is_kernel: bool,
    /// A variable that other objects may define, too, and the program has once: `inline`, or a static member of a template.
    pub(crate) is_shared: bool,
}

impl Entries {
    /// Adds those of another object.
    pub(crate) fn join(&mut self, other: Self) -> Result<(), String> {
        let fits = match (&mut self.place, &other.place) {
            (
                EntryPlace::Section {
                    size, alignment, ..
                },
                EntryPlace::Section {
                    size: more,
                    alignment: same,
                    ..
                },
            ) if alignment == same => {
                *size += more;
                true
            }
            (EntryPlace::Symbols, EntryPlace::Symbols) => true,
            _ => false,
        };
        if !fits || self.section != other.section || self.layout != other.layout {
            return Err(format!(
                "`{}` is of another language or LLVM release than `{}`",
                other.section, self.section
            ));
        }
        for (name, entry) in other.named.iter() {
            self.named.insert(name.to_owned(), entry.clone());
        }
        Ok(())
    }

    /// Returns the names that the images define.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.named.names().map(str::to_owned).collect()
    }

    /// The section they are in, as compilers call it.
    pub(crate) fn section(&self) -> &str {
        &self.section
    }
}

pub(crate) fn no_size(section: &str) -> String {
    format!("`{section}` has entries of unknown size")
}
