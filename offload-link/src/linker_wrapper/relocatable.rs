//! The last step of a relocatable link: its output is finished, and says so.
//!
//! The object's own constructor registers its images and its entries. So no later link may see the
//! images as waiting, nor the entries as its own: sections of offload binaries become ordinary
//! ones, and the entry section gets a name that no table is made of.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use offload_build::registration::SHT_LLVM_OFFLOADING;

use super::Error;
use super::elf::EntrySection;

/// What an entry section is called once its table is closed; not longer than any of its names.
const FINISHED: &str = ".offloading.entries";

/// Changes the file at `path`. When its entries are not those of `tables`, corrects `tables`
/// instead, and says `false`: the link must be made again.
pub(super) fn finish(path: &Path, tables: &mut [EntrySection]) -> Result<bool, Error> {
    let io = |source| Error::io(format!("cannot finish `{}`", path.display()), source);
    let data = fs::read(path).map_err(io)?;
    let Some(patches) = patches(&data, tables) else {
        return Err(Error::Option(format!(
            "{}: not a relocatable ELF object",
            path.display()
        )));
    };
    let Some(patches) = patches else {
        return Ok(false);
    };
    let file = OpenOptions::new().write(true).open(path).map_err(io)?;
    for (offset, bytes) in patches {
        file.write_all_at(&bytes, offset).map_err(io)?;
    }
    Ok(true)
}

type Patch = (u64, Vec<u8>);

/// Nothing when this is no ELF object; no patches when a table's size was not the true one.
fn patches(data: &[u8], tables: &mut [EntrySection]) -> Option<Option<Vec<Patch>>> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let strings = header.section_strings_index(endian, data).ok()?;
    let strings = sections.section(strings).ok()?.sh_offset(endian);
    let mut patches = Vec::new();
    let mut right = true;
    for (index, section) in sections.enumerate() {
        let at = header.e_shoff(endian) + index.0 as u64 * SECTION_HEADER;
        let allocated = section.sh_flags(endian).contains(elf::SHF_ALLOC);
        if section.sh_type(endian).0 == SHT_LLVM_OFFLOADING && !allocated {
            let sh_type = elf::SHT_PROGBITS.0.to_le_bytes().to_vec();
            patches.push((at + SH_TYPE, sh_type));
        }
        let name = sections.section_name(endian, section).ok()?;
        let Some(table) = tables
            .iter_mut()
            .find(|table| table.name.as_bytes() == name)
        else {
            continue;
        };
        if section.sh_size(endian) != table.size {
            table.size = section.sh_size(endian);
            right = false;
        }
        let mut renamed = FINISHED.as_bytes().to_vec();
        renamed.resize(name.len(), 0);
        patches.push((strings + u64::from(section.sh_name(endian)), renamed));
    }
    Some(right.then_some(patches))
}

/// Bytes of a section header, and where its type is.
const SECTION_HEADER: u64 = 64;
const SH_TYPE: u64 = 4;
