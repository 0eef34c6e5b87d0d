//! Mach-O files, read with the crate `object`.

use std::ops::Range;

use object::read::macho::{FatArch, MachHeader, MachOFatFile, Section, Segment};
use object::read::{FileKind, Result};
use object::{BigEndian, Endianness, ReadRef, macho};

use super::{MachOError, MachOSection, Slice};
use crate::container::view::View;
use crate::format::bytes::ReadAt;

/// Segment of sections that linkers leave out: Mach-O has no rule, so it is that of LLVM's own
/// bitcode, which ld64 and lld drop.
const SEGMENT: &[u8] = b"__LLVM";

/// Lists the sections of the Mach-O file that a range of `data` consists of.
pub(in crate::container) fn sections<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
) -> std::result::Result<Vec<MachOSection>, MachOError> {
    list(data, range).map_err(damaged)
}

fn list<'d, R: ReadAt<'d>>(data: R, range: &Range<u64>) -> Result<Vec<MachOSection>> {
    let window = View::new(data, range.clone());
    let mut sections = match FileKind::parse(window)? {
        FileKind::MachO32 => of::<macho::MachHeader32<Endianness>, _>(window)?,
        _ => of::<macho::MachHeader64<Endianness>, _>(window)?,
    };
    for section in &mut sections {
        section.offset = range.start.saturating_add(section.offset);
    }
    Ok(sections)
}

fn of<'d, H: MachHeader<Endian = Endianness>, R: ReadRef<'d>>(
    data: R,
) -> Result<Vec<MachOSection>> {
    let header = H::parse(data, 0)?;
    let endian = header.endian()?;
    if header.filetype(endian) == macho::MH_DSYM {
        // Debugging symbols, with the headers of sections that are elsewhere.
        return Ok(Vec::new());
    }
    let mut commands = header.load_commands(endian, data, 0)?;
    let (mut sections, mut number) = (Vec::new(), 0_u32);
    while let Some(command) = commands.next()? {
        let Some((segment, rest)) = H::Segment::from_command(command)? else {
            continue;
        };
        let headers = segment.sections(endian, rest)?;
        for section in segment.section_offsets(endian, headers) {
            let (section, offset) = section?;
            number = number.saturating_add(1);
            if let Some((offset, size)) = section.file_range(endian, offset) {
                sections.push(MachOSection {
                    name: [section.segment_name(), b",", section.name()].concat(),
                    number,
                    excluded: section.segment_name() == SEGMENT,
                    is_data: is_data(section.segment_name(), section.flags(endian)),
                    offset,
                    size,
                });
            }
        }
    }
    Ok(sections)
}

fn is_data(segment: &[u8], flags: macho::SectionFlags) -> bool {
    let others = [
        macho::S_ATTR_PURE_INSTRUCTIONS,
        macho::S_ATTR_SOME_INSTRUCTIONS,
        macho::S_ATTR_DEBUG,
    ];
    segment != SEGMENT && !others.into_iter().any(|other| flags.contains(other))
}

/// Lists the files in a universal one; `None` if the range is not a universal file: Java's class
/// files start with the same bytes.
///
/// Ranges are from the start of the data, and may be outside of the file.
pub(in crate::container) fn slices<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
) -> std::result::Result<Option<Vec<Slice>>, MachOError> {
    split(data, range).map_err(damaged)
}

fn split<'d, R: ReadAt<'d>>(data: R, range: &Range<u64>) -> Result<Option<Vec<Slice>>> {
    /// Lower bound for class files: the oldest version is 45. No universal file has as many processors.
    const CLASS_FILE: u32 = 43;
    let window = View::new(data, range.clone());
    let header = window.read_at::<macho::FatHeader>(0);
    if !header.is_ok_and(|header| header.nfat_arch.get(BigEndian) < CLASS_FILE) {
        return Ok(None);
    }
    let slices = match FileKind::parse(window)? {
        FileKind::MachOFat32 => slices_of::<macho::FatArch32, _>(window)?,
        _ => slices_of::<macho::FatArch64, _>(window)?,
    };
    let move_here = |(name, slice): Slice| {
        let [start, end] = [slice.start, slice.end].map(|at| range.start.saturating_add(at));
        (name, start..end)
    };
    Ok(Some(slices.into_iter().map(move_here).collect()))
}

fn slices_of<'d, A: FatArch + 'd, R: ReadRef<'d>>(data: R) -> Result<Vec<Slice>> {
    let file = MachOFatFile::<A>::parse(data)?;
    let slices = file.arches().iter().map(|slice| {
        let (offset, size) = slice.file_range();
        let name = match slice.cputype() {
            macho::CPU_TYPE_X86_64 => "x86_64".to_owned(),
            macho::CPU_TYPE_ARM64 => "arm64".to_owned(),
            macho::CPU_TYPE_X86 => "i386".to_owned(),
            macho::CPU_TYPE_ARM => "arm".to_owned(),
            other => format!("processor {:#x}", other.0),
        };
        (name.into_bytes(), offset..offset.saturating_add(size))
    });
    Ok(slices.collect())
}

fn damaged(error: object::read::Error) -> MachOError {
    MachOError(format!("the Mach-O headers are damaged: {error}"))
}
