//! Finishes the output of a relocatable link and marks it as finished.
//!
//! The object's own constructor registers its images and entries. So later links must not link the images again, nor
//! register the entries: sections of offload binaries become ordinary ones of another name, and the entry section gets a
//! name without a table.

use std::fs;
use std::ops::Range;
use std::path::Path;

use object::read::elf::FileHeader;
use object::{Endian as _, elf};
use offload_build::tools::Command;
use offload_formats::container::elf::{
    Elf, OFFLOADING_SECTION, SHT_LLVM_OFFLOADING, rename_section,
};
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::{self, Piece, PieceSource};

use crate::files::{self, Reading};
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::inputs::host_objects::EntrySection;
use crate::linker_wrapper::tool::Rules;

/// Name of an entry section in a finished object. The table is named by the section's symbol and size, so two such
/// sections in one program stay separate.
const FINISHED: &str = ".offloading.entries";

/// Name of a section of offload binaries in a finished object: lld joins no sections of one name and two types.
const REGISTERED: &str = ".llvm.registered";

/// Returns the command that corresponds to the work on the file at `path`. Under LLVM's name it is LLVM's, with the
/// hash that LLVM prints before the file exists; otherwise it is the closest equivalent.
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
    let sections = EntryLayout::of(release).sections();
    sections.fold(command, |command, section| {
        let renamed = |prefix: &str| format!("{prefix}{section}={prefix}{section}_{OF_NOTHING}");
        command
            .args(["--rename-section", &renamed("")])
            .args(["--redefine-sym", &renamed("__start_")])
            .args(["--redefine-sym", &renamed("__stop_")])
    })
}

/// Changes the file at `path`, and returns true. If its entries differ from `tables`, corrects `tables` instead and
/// returns false: the link must be repeated.
pub(crate) fn finish(path: &Path, tables: &mut [EntrySection]) -> Result<bool, LinkError> {
    let invalid = |problem: Problem| LinkError::input(path.display(), problem);
    let open = || Reading::source(path).map_err(|source| invalid(source.into()));
    let (mut found, mut renamed) = (Vec::new(), Vec::new());
    let mut pieces = {
        let data = ReadCache::new(open()?);
        let range = 0..(&data).size().unwrap_or(0);
        let elf = Elf::parse(&data, range.clone()).map_err(|source| invalid(source.into()))?;
        for table in tables.iter() {
            let section = elf
                .find(table.name)
                .map_err(|source| invalid(source.into()))?;
            found.push(section.map_or(0, |section| section.size));
        }
        let waiting = elf.find(OFFLOADING_SECTION);
        let waiting = waiting.map_err(|source| invalid(source.into()))?;
        renamed.extend(waiting.map(|_| (OFFLOADING_SECTION, REGISTERED)));
        vec![Piece::Copy { input: 0, range }]
    };
    let mut right = true;
    for (table, size) in tables.iter_mut().zip(found) {
        right &= table.size == size;
        table.size = size;
    }
    if !right {
        return Ok(false);
    }
    let edited = |pieces: &[Piece]| -> Result<_, LinkError> {
        let data = ReadCache::new(PieceSource::new(pieces.to_vec(), vec![open()?]));
        Ok((data, 0..pieces::size(pieces)))
    };
    let tables = tables.iter().filter(|table| table.size > 0);
    renamed.extend(tables.map(|table| (table.name, FINISHED)));
    for (old, new) in renamed {
        let (data, range) = edited(&pieces)?;
        let renamed =
            rename_section(&data, range, old, new).map_err(|source| invalid(source.into()))?;
        pieces = pieces::replace_inputs(&renamed, &[&pieces]).expect("it renames these pieces");
    }
    let (data, range) = edited(&pieces)?;
    let closed = close_sections(&data, range);
    let closed = closed.ok_or_else(|| invalid("section headers are missing".into()))?;
    let pieces = pieces::replace_inputs(&closed, &[&pieces]).expect("it changes these pieces");
    files::write_pieces_beside(path, &pieces, &[path.to_owned()])
        .map_err(|source| LinkError::unwritten(path, source))?;
    Ok(true)
}

/// Removes an output that the host's linker has written, and that registers nothing; devices and pipes stay.
pub(crate) fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Makes ordinary sections of sections with offload binaries, which the last link would remove.
fn close_sections<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<Vec<Piece>> {
    let header = data.read_at(0, size_of::<FileHeader64>() as u64)?;
    let header = FileHeader64::parse(header).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.e_shoff(endian);
    let elf = Elf::parse(data, range.clone()).ok()?;
    let waiting = elf
        .sections()
        .filter(|section| section.section_type == SHT_LLVM_OFFLOADING && !section.allocated());
    let changes = waiting.map(|section| {
        let at = headers + u64::from(section.index) * SECTION_HEADER + SH_TYPE;
        (at, endian.write_u32(elf::SHT_PROGBITS.0).to_vec())
    });
    Some(pieces::changed(range, changes.collect()))
}

type FileHeader64 = elf::FileHeader64<object::Endianness>;

/// Size of a section header in bytes, and the offset of its type.
const SECTION_HEADER: u64 = 64;
const SH_TYPE: u64 = 4;
