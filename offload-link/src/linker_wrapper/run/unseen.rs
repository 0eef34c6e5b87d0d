//! Looks into the program for offload entries of files that the host linker read and this tool did not see.
//!
//! Their device code is not in the program, which would not find a kernel at run time.

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
    let found = match size_of_entries(&program) {
        Ok(found) => found.unwrap_or_default(),
        // A program that nobody may read was linked, too.
        Err(problem) if is_absent(&problem) || problem.kind() == PermissionDenied => 0,
        Err(problem) => return Err(LinkError::unopened(&program, &problem)),
    };
    // Linker scripts may add padding.
    let found = found.saturating_sub(EntryLayout::V19.stride() - 1);
    if found <= known.size() || found <= size_of_known(arguments, inputs, known)? {
        return Ok(None);
    }
    let reason = format!(
        "{}: has kernels without their device code: the host linker loaded a file or archive member that this tool did not expect\n\
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

/// Returns the size of the entries of all units that are linked, or may be: for those without images to link, nobody
/// asked.
fn size_of_known(
    arguments: &Arguments,
    inputs: &Inputs,
    known: &HostEntries,
) -> Result<u64, LinkError> {
    let units = inputs.units().enumerate().map(|(index, (_, unit))| {
        let is_linked = known.units.get(index).copied().unwrap_or_default();
        is_linked || (unit.device_code != DeviceCode::Waiting && unit.bundle.is_none())
    });
    let units: Vec<bool> = units.collect();
    match HostEntries::read(inputs, &units, arguments) {
        Ok(entries) => Ok(entries.size()),
        // Of units that register their entries, each may have another layout.
        Err(LinkError::MixedEntries { .. }) => Ok(u64::MAX),
        Err(problem) => Err(problem),
    }
}

/// Returns the size of all sections of entries in bytes; `None` if the program is no ELF file.
fn size_of_entries(program: &Path) -> io::Result<Option<u64>> {
    if !fs::metadata(program)?.is_file() {
        return Ok(None);
    }
    let data = ReadCache::new(Reading::source(program)?);
    let size = (&data).size().unwrap_or_default();
    let Ok(elf) = Elf::parse(&data, 0..size) else {
        return Ok(None);
    };
    let Ok(names) = elf.names() else {
        return Ok(None);
    };
    // mold has several sections of one name.
    let sections = elf.sections().filter(|section| {
        let name = names.of(section).unwrap_or_default();
        EntryLayout::section_named(name).is_some()
    });
    Ok(Some(sections.map(|section| section.size).sum()))
}
