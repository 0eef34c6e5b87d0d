//! The offload entries of a module's host objects: its images must define what they name.

pub(crate) mod coff;
mod elf;
mod table;

pub(crate) use crate::steps::host_objects::entries::table::{Entries, EntryPlace, Named};

use crate::error;
use crate::error::Error;
use offload_formats::format::magic::Magic;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

impl Entries {
    /// Reads the entries of `objects`; nothing if they have none.
    pub(crate) fn of(objects: &[PathBuf]) -> Result<Option<Self>, Error> {
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
}

/// Returns whether a host object has kernels or globals, which a registration must know.
pub(crate) fn has_entries(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let sections = sections(path, bytes)?;
    Ok(sections.iter().any(|section| !section.named.is_empty()))
}

/// Returns the offload entries of each section of a host object.
fn sections(path: &Path, bytes: &[u8]) -> Result<Vec<Entries>, Error> {
    let sections = match Magic::of(bytes) {
        Magic::Elf => elf::sections(bytes),
        _ => coff::sections(bytes).map_err(|error| error.to_string()),
    };
    sections.map_err(|problem| wrong(path, &problem))
}

fn wrong(path: &Path, problem: &dyn fmt::Display) -> Error {
    Error::new(format_args!("{}: {problem}", path.display()))
}
