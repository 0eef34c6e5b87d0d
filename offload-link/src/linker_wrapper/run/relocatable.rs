//! The last step of a relocatable link: its output is finished, and says so.
//!
//! The object's own constructor registers its images and its entries. So no later link may see the
//! images as waiting, nor the entries as its own: sections of offload binaries become ordinary
//! ones, and the entry section gets a name that no table is made of.

use std::fs;
use std::path::Path;

use object::elf;
use object::read::elf::FileHeader;
use offload_build::tools::Command;
use offload_formats::container::elf::{
    Elf, OFFLOADING_SECTION, SHT_LLVM_OFFLOADING, rename_section,
};
use offload_formats::format::offload_entry::EntryTable;

use crate::linker_wrapper::error::Error;
use crate::linker_wrapper::inputs::host_objects::EntrySection;
use crate::linker_wrapper::report::fates::write_beside;
use crate::linker_wrapper::tool::Rules;

/// What an entry section is called once its table is closed. The table is named by the section
/// and its size, so two such sections in one program do not meet.
const FINISHED: &str = ".offloading.entries";

/// The command that does to the file at `path` what follows the link: LLVM's under its name, with the
/// hash that it prints before the file is there; otherwise as near as a command comes to it.
pub(crate) fn shown(path: &Path, tables: &[EntrySection], rules: Rules) -> Command {
    const OF_NOTHING: &str = "4b2008fd98c1dd4";
    let release = match rules {
        Rules::Ours => {
            let command = Command::new("llvm-objcopy").arg(path);
            let command = command.args(["--remove-section", OFFLOADING_SECTION]);
            return tables.iter().fold(command, |command, table| {
                let renamed = format!("{}={FINISHED}", table.name);
                command.args(["--rename-section", &renamed])
            });
        }
        Rules::Llvm(release) => release,
    };
    let command = Command::new("llvm-objcopy").arg(path);
    let command = command.args(["--remove-section", OFFLOADING_SECTION]);
    let sections = EntryTable::of(release).sections();
    sections.fold(command, |command, section| {
        let renamed = |prefix: &str| format!("{prefix}{section}={prefix}{section}_{OF_NOTHING}");
        command
            .args(["--rename-section", &renamed("")])
            .args(["--redefine-sym", &renamed("__start_")])
            .args(["--redefine-sym", &renamed("__stop_")])
    })
}

/// Changes the file at `path`. When its entries are not those of `tables`, corrects `tables`
/// instead, and says `false`: the link must be made again.
pub(crate) fn finish(path: &Path, tables: &mut [EntrySection]) -> Result<bool, Error> {
    let invalid = |source: Box<dyn std::error::Error + Send + Sync>| Error::Input {
        from: path.display().to_string(),
        source,
    };
    let mut bytes = fs::read(path).map_err(|source| invalid(source.into()))?;
    let mut found = Vec::new();
    {
        let elf =
            Elf::parse(&*bytes, 0..bytes.len() as u64).map_err(|source| invalid(source.into()))?;
        for table in tables.iter() {
            let section = elf
                .find(table.name)
                .map_err(|source| invalid(source.into()))?;
            found.push(section.map_or(0, |section| section.size));
        }
    }
    let mut right = true;
    for (table, size) in tables.iter_mut().zip(found) {
        right &= table.size == size;
        table.size = size;
    }
    if !right {
        return Ok(false);
    }
    for table in &*tables {
        bytes = rename_section(&bytes, table.name, FINISHED)
            .map_err(|source| invalid(source.into()))?;
    }
    close_sections(&mut bytes).ok_or_else(|| invalid("section headers are not there".into()))?;
    write_beside(path, &bytes)?;
    Ok(true)
}

/// Makes ordinary sections of those in which offload binaries wait: the last link leaves them out.
fn close_sections(bytes: &mut [u8]) -> Option<()> {
    let header = elf::FileHeader64::<object::Endianness>::parse(&*bytes).ok()?;
    let headers = header.e_shoff(header.endian().ok()?);
    let elf = Elf::parse(&*bytes, 0..bytes.len() as u64).ok()?;
    let waiting: Vec<u64> = elf
        .sections()
        .filter(|section| section.section_type == SHT_LLVM_OFFLOADING && !section.allocated())
        .map(|section| headers + u64::from(section.index) * SECTION_HEADER + SH_TYPE)
        .collect();
    for at in waiting {
        let start = usize::try_from(at).ok()?;
        let place = bytes.get_mut(start..start.checked_add(4)?)?;
        place.copy_from_slice(&elf::SHT_PROGBITS.0.to_le_bytes());
    }
    Some(())
}

/// Bytes of a section header, and where its type is.
const SECTION_HEADER: u64 = 64;
const SH_TYPE: u64 = 4;
