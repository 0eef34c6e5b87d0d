//! Recognizes an input or archive member by its first bytes and its section headers.

use std::ops::Range;

use object::elf;
use offload_formats::container::coff;
use offload_formats::container::elf::{
    Elf, ElfSection, OFFLOADING_SECTION, SHT_LLVM_OFFLOADING, SymbolTable,
};
use offload_formats::container::object_bundle::BUNDLE_SECTION;
use offload_formats::format::bytes::ReadAt;
use offload_formats::format::magic::Magic;

use crate::linker_wrapper::error::Problem;
use crate::linker_wrapper::inputs::file::{DeviceCode, UnitKind};
use crate::linker_wrapper::inputs::host_objects::is_registration;

/// Format of an input or archive member.
pub(crate) enum Seen {
    Object {
        kind: UnitKind,
        device_code: DeviceCode,
        bundle: bool,
    },
    SharedObject,
    Archive,
    OffloadBinary,
    Bundle,
    Other,
}

impl Seen {
    pub(crate) fn of<'data, R: ReadAt<'data>>(data: R, range: Range<u64>) -> Result<Self, Problem> {
        let (kind, device_code, bundle) = match Magic::at(data, range.clone()) {
            Magic::Elf => {
                let elf = Elf::parse(data, range)?;
                match elf::FileType(elf.file_type) {
                    elf::ET_DYN => return Ok(Self::SharedObject),
                    elf::ET_EXEC | elf::ET_CORE => return Ok(Self::Other),
                    // GNU's linker treats any other file as an object.
                    _ => {}
                }
                let sections: Vec<ElfSection> = elf.sections().filter(is_marked).collect();
                let device_code = DeviceCode::of_sections(&sections);
                (UnitKind::Elf, device_code, has_bundle(&elf, &sections)?)
            }
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => {
                return Ok(Self::Archive);
            }
            Magic::OffloadBinary => return Ok(Self::OffloadBinary),
            Magic::Bundle | Magic::CompressedBundle | Magic::TextBundle => {
                return Ok(Self::Bundle);
            }
            Magic::Bitcode => {
                let bytes = data.read_at(range.start, range.end - range.start);
                let bytes = bytes.ok_or("it cannot be read")?;
                let has_images = bytes.windows(METADATA.len()).any(|at| at == METADATA);
                let device_code = match has_images {
                    true => DeviceCode::Waiting,
                    false => DeviceCode::None,
                };
                (UnitKind::Bitcode, device_code, false)
            }
            Magic::Coff => {
                // Two bytes do not prove COFF, so an error about COFF could mislead.
                let Ok(sections) = coff::sections(data, range) else {
                    return Ok(Self::Other);
                };
                let offloading = |section: &coff::CoffSection<'_>| {
                    section.name.starts_with(OFFLOADING_SECTION.as_bytes())
                };
                let device_code = match sections.iter().any(offloading) {
                    true => DeviceCode::Waiting,
                    false => DeviceCode::None,
                };
                let bundle = |section: &coff::CoffSection<'_>| {
                    section.name.starts_with(BUNDLE_SECTION.as_bytes())
                };
                (UnitKind::Coff, device_code, sections.iter().any(bundle))
            }
            _ => return Ok(Self::Other),
        };
        Ok(Self::Object {
            kind,
            device_code,
            bundle,
        })
    }
}

/// Tells whether a section may contain device code, by its header alone: names cost another read.
fn is_marked(section: &ElfSection) -> bool {
    section.excluded() || section.section_type == SHT_LLVM_OFFLOADING
}

/// Tells whether an object has the sections of a bundle. Linkers exclude them, so names are read only if there are
/// excluded sections.
///
/// For sections of images, the type decides. A section with their name and another type comes from an assembler that
/// does not know the type, or from GNU's linker, after the images were linked and registered.
fn has_bundle<'data, R: ReadAt<'data>>(
    elf: &Elf<'data, R>,
    marked: &[ElfSection],
) -> Result<bool, Problem> {
    let is_image = |section: &&ElfSection| section.section_type == SHT_LLVM_OFFLOADING;
    if marked.iter().all(|section| is_image(&section)) {
        return Ok(false);
    }
    let names = elf.names()?;
    let mut found = false;
    for section in marked.iter().filter(|section| !is_image(section)) {
        let name = names.of(section)?;
        if name == OFFLOADING_SECTION.as_bytes() && !registers(elf)? {
            let (index, given) = (section.index, section.section_type);
            let expected = SHT_LLVM_OFFLOADING;
            return Err(format!(
                "section {index} is `{OFFLOADING_SECTION}` and has type {given:#x}, not {expected:#x}"
            )
            .into());
        }
        found |= name.starts_with(BUNDLE_SECTION.as_bytes());
    }
    Ok(found)
}

fn registers<'data, R: ReadAt<'data>>(elf: &Elf<'data, R>) -> Result<bool, Problem> {
    let symbols = elf.symbols(SymbolTable::All)?;
    Ok(symbols.iter().any(|symbol| is_registration(symbol.name)))
}

impl DeviceCode {
    /// Decides by the types of sections.
    fn of_sections(marked: &[ElfSection]) -> Self {
        let codes = marked.iter().map(|section| match section.section_type {
            SHT_LLVM_OFFLOADING if section.allocated() && !section.excluded() => Self::Allocated,
            SHT_LLVM_OFFLOADING => Self::Waiting,
            _ => Self::None,
        });
        codes.max().unwrap_or_default()
    }
}

/// Metadata of host bitcode for the global with its offload binaries.
const METADATA: &[u8] = b".llvm.offloading";
