//! The offload entries of a module's host objects: its images must define what they name.

pub(crate) mod coff;
mod elf;
mod table;

pub(crate) use crate::steps::host_objects::entries::table::{Entries, EntryPlace, Named};

use offload_build_core::error::Error;
use offload_build_core::readable::Readable;
use offload_formats::format::magic::Magic;
use std::fmt;
use std::path::{Path, PathBuf};

impl Entries {
    /// Reads the entries of `objects`; nothing if they have none.
    pub(crate) fn of(objects: &[PathBuf]) -> Result<Option<Self>, Error> {
        let mut found: Option<Self> = None;
        for path in objects {
            let object = Readable::open(path)?;
            for section in sections(&object)? {
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
pub(crate) fn has_entries(object: &Readable) -> Result<bool, Error> {
    let sections = sections(object)?;
    Ok(sections.iter().any(|section| !section.named.is_empty()))
}

/// Returns the offload entries of each section of a host object.
fn sections(object: &Readable) -> Result<Vec<Entries>, Error> {
    let (data, range) = (object.data(), 0..object.size());
    let sections = match Magic::at(data, range.clone()) {
        Magic::Elf => elf::sections(data, range),
        _ => coff::sections(data, range),
    };
    object.check()?;
    sections.map_err(|problem| wrong(object.path(), &problem))
}

fn wrong(path: &Path, problem: &dyn fmt::Display) -> Error {
    Error::new(format_args!("{}: {problem}", path.display()))
}
