//! Looks into the program for offload entries of files that the host linker read and this tool did not see.
//!
//! Their device code is not in the program, which would not find a kernel at run time.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::io::ErrorKind::PermissionDenied;
use std::path::Path;

use offload_formats::container::elf::Elf;
use offload_formats::escape::terminal;
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::offload_entry::EntryLayout;

use crate::files::Reading;
use crate::linker_wrapper::choose::host_entries::HostEntries;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{DeviceCode, FileKind, Inputs, UnitKind};
use crate::linker_wrapper::inputs::host_objects::{NAMES_SINCE_20, entry_names};
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::run::relocatable;
use crate::platform::is_absent;
use crate::say;

/// Warns if the program has entries that no input has, and returns the warning. `known` are the entries of the units
/// whose images are linked.
///
/// # Errors
///
/// Fails instead where an image that is not linked is an error, and if the program or an input cannot be read.
pub(super) fn check(
    arguments: &Arguments,
    inputs: &Inputs,
    known: &HostEntries,
    tool: &OsStr,
) -> Result<Option<String>, LinkError> {
    let program = arguments.output_path();
    // Sources and bitcode become objects in the link. `--llvm` registers the entries of one release only.
    let are_complete = inputs.files.iter().all(|file| file.kind != FileKind::Other)
        && inputs
            .units()
            .all(|(_, unit)| unit.kind != UnitKind::Bitcode);
    let is_program = arguments.family.is_elf() && !arguments.relocatable;
    if !is_program || !are_complete || arguments.options.llvm.is_some() {
        return Ok(None);
    }
    let found = match entries_of(&program) {
        Ok(found) => found.unwrap_or_default(),
        // A program that nobody may read was linked, too.
        Err(problem) if is_absent(&problem) || problem.kind() == PermissionDenied => {
            ProgramEntries::default()
        }
        Err(problem) => return Err(LinkError::unopened(&program, &problem)),
    };
    if found.are_of(known) {
        return Ok(None);
    }
    let all = with_all_known(arguments, inputs, known)?;
    if all.as_ref().is_none_or(|all| found.are_of(all)) {
        return Ok(None);
    }
    let names = all.map(|all| found.beside(&all)).unwrap_or_default();
    let reason = format!(
        "{}: has kernels without their device code{names}: the host linker loaded a file or archive member that this tool did not \
         expect\n\
         hint: `-Wl,--trace` lists what it loads; name such a file on the command line itself, or pass --should-extract=<processor>",
        terminal(&*program)
    );
    if let Some(title) = arguments.error_if_dropped() {
        relocatable::remove(&program);
        let reasons = vec![reason];
        return Err(LinkError::NotLinked { title, reasons });
    }
    say::warning(&tool.to_string_lossy(), &reason);
    Ok(Some(reason))
}

/// Returns the entries of all units that are linked, or may be: for those without images to link, nobody asked. Nothing if these
/// cannot be counted.
fn with_all_known(
    arguments: &Arguments,
    inputs: &Inputs,
    known: &HostEntries,
) -> Result<Option<HostEntries>, LinkError> {
    let units = inputs.units().enumerate().map(|(index, (_, unit))| {
        let is_linked = known.units.get(index).copied().unwrap_or_default();
        is_linked || (unit.device_code != DeviceCode::Waiting && unit.bundle.is_none())
    });
    let units: Vec<bool> = units.collect();
    match HostEntries::read(inputs, &units, arguments) {
        Ok(entries) => Ok(Some(entries)),
        // Of units that register their entries, each may have another layout.
        Err(LinkError::MixedEntries { .. }) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Maximum number of names in a message.
const NAMES: usize = 3;

/// Offload entries of a program.
#[derive(Debug, Default)]
struct ProgramEntries {
    /// Size of all sections of entries in bytes.
    size: u64,
    /// Names of entries, if the program has a section of them.
    names: BTreeSet<Vec<u8>>,
}

impl ProgramEntries {
    /// Tells whether these objects have all of the entries.
    fn are_of(&self, objects: &HostEntries) -> bool {
        // Linker scripts may add padding.
        let size = self.size.saturating_sub(EntryLayout::V19.stride() - 1);
        size <= objects.size() && self.names.is_subset(&objects.names)
    }

    /// Returns names that these objects lack, in parentheses.
    fn beside(&self, objects: &HostEntries) -> String {
        let names = self.names.difference(&objects.names);
        let shown = names.clone().take(NAMES);
        let shown: Vec<String> = shown
            .map(|name| format!("`{}`", terminal(&*String::from_utf8_lossy(name))))
            .collect();
        match (shown.is_empty(), names.count() > NAMES) {
            (true, _) => String::new(),
            (false, false) => format!(" ({})", shown.join(", ")),
            (false, true) => format!(" ({}, …)", shown.join(", ")),
        }
    }
}

/// Reads the entries of a program; `None` if it is no ELF file.
fn entries_of(program: &Path) -> io::Result<Option<ProgramEntries>> {
    if !fs::metadata(program)?.is_file() {
        return Ok(None);
    }
    let data = ReadCache::new(Reading::source(program)?);
    let size = (&data).size().unwrap_or_default();
    let Ok(elf) = Elf::parse(&data, 0..size) else {
        return Ok(None);
    };
    let Ok(section_names) = elf.names() else {
        return Ok(None);
    };
    let mut found = ProgramEntries::default();
    // mold has several sections of one name.
    for section in elf.sections() {
        let name = section_names.of(&section).unwrap_or_default();
        if EntryLayout::section_named(name).is_some() {
            found.size += section.size;
        } else if name == NAMES_SINCE_20.as_bytes() {
            let content = elf.content(&section).unwrap_or_default();
            found.names.extend(entry_names(content));
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_three_entries_and_says_if_there_are_more() {
        let objects = HostEntries {
            names: [b"known".to_vec()].into(),
            ..HostEntries::default()
        };
        for (names, expected) in [
            (&["known"][..], ""),
            (&["a", "b", "c", "known"], " (`a`, `b`, `c`)"),
            (&["a", "b", "c", "d"], " (`a`, `b`, `c`, …)"),
        ] {
            let program = ProgramEntries {
                size: 0,
                names: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            };
            assert_eq!(program.beside(&objects), expected);
        }
    }
}
