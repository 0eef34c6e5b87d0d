//! Checks an archive of bundles for mistakes that other tools accept.
//!
//! | mistake                                           | effect in tools                             |
//! |---------------------------------------------------|---------------------------------------------|
//! | an invalid entry ID, or one of an unknown kind    | the entry is never used                     |
//! | a duplicate entry ID in a bundle                  | both are linked                             |
//! | entries that exclude each other                   | both are linked for one of their targets    |
//! | a symbol index that names the wrong member        | host linkers load the wrong member, or none |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use offload_formats::container::archive::{Archive, ArchiveMember};
use offload_formats::container::definitions;
use offload_formats::escape::terminal;
use offload_formats::format::magic::Magic;
use offload_formats::names::EntryId;

use crate::bundler::{self, Contents};
use crate::cargo_offload::error::CargoOffloadError;
use crate::llvm_tool::Sources;

pub(super) fn check(path: &Path, limit: u64) -> Result<(), CargoOffloadError> {
    let mut sources = Sources::default();
    let contents =
        bundler::read_archive(path, limit, &mut sources).map_err(CargoOffloadError::new)?;
    entries(&contents)?;
    bundler::check_archive(&contents).map_err(CargoOffloadError::new)?;
    let source = sources.open(path).map_err(CargoOffloadError::new)?;
    let file = sources.file(source);
    let data = file.apart();
    let wrong = |problem: &dyn fmt::Display| CargoOffloadError::of(path, problem);
    let archive = Archive::parse(&data, file.whole()).map_err(|problem| wrong(&problem))?;
    let symbols = archive.symbols().map_err(|problem| wrong(&problem))?;
    let members = archive.members.iter();
    let members: BTreeMap<u64, &ArchiveMember<'_>> = members
        .map(|member| (member.header_offset, member))
        .collect();
    let mut places: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for symbol in symbols {
        places
            .entry(symbol.header_offset)
            .or_default()
            .push(symbol.name);
    }
    for (offset, names) in places {
        let Some(member) = members.get(&offset) else {
            return Err(wrong(&format_args!(
                "symbol index: `{}` has offset {offset:#x}, where no member starts",
                terminal(names.first().copied().unwrap_or_default())
            )));
        };
        // Members of a thin archive are other files, which may have changed since.
        let Some(content) = member.content.clone() else {
            continue;
        };
        let defined = match Magic::at(&data, content.clone()) {
            Magic::Elf | Magic::Coff => definitions(&data, content).ok(),
            Magic::Bundle | Magic::CompressedBundle | Magic::TextBundle => Some(Vec::new()),
            _ => None,
        };
        let Some(defined) = defined else { continue };
        let defined: BTreeSet<&[u8]> = defined.into_iter().collect();
        // GCC's objects for its linker plugin have symbols that only the symbol index shows.
        if defined.contains(&b"__gnu_lto_slim"[..]) {
            continue;
        }
        if let Some(name) = names.iter().find(|name| !defined.contains(*name)) {
            return Err(wrong(&format_args!(
                "symbol index: `{}` is not in member `{}` at offset {offset:#x}",
                terminal(*name),
                terminal(member.name)
            )));
        }
    }
    Ok(())
}

/// Checks the entries of each bundle.
fn entries(contents: &Contents) -> Result<(), CargoOffloadError> {
    for bundle in &contents.bundles {
        let mut seen = BTreeSet::new();
        for entry in &bundle.entries {
            let wrong = |problem: &dyn fmt::Display| {
                let member = bundle.member.as_deref().unwrap_or_default();
                CargoOffloadError::new(format_args!(
                    "{}: member `{}`: entry `{}`: {problem}",
                    terminal(contents.name.as_path()),
                    terminal(member),
                    terminal(&entry.id)
                ))
            };
            if let Err(problem) = EntryId::parse(&entry.id) {
                return Err(wrong(&problem));
            }
            if !seen.insert(entry.id.as_str()) {
                return Err(wrong(&"duplicate in the bundle"));
            }
        }
    }
    Ok(())
}
