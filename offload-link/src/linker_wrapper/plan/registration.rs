//! Makes the objects that register linked images: one for each kind, with every table of offload entries.

use crate::linker_wrapper::choose::host_entries::HipNames;
use crate::linker_wrapper::choose::host_entries::HostEntries;
use crate::linker_wrapper::line::family::Family;
use object::elf;
use offload_formats::container::elf::Machine;
use offload_formats::container::large::ImagePlacement;
use offload_formats::registration::coff::WindowsAbi;
use std::path::Path;

use offload_formats::format::offload_binary::BinaryEntry;
use offload_formats::format::pieces::{self, Embedded, Piece};
use offload_formats::names::Triple;
use offload_formats::registration::fat_binary::{FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::{HipFatBinary, HipSymbols};
use offload_formats::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{ElfHost, Global, HostFormat, NEEDS_OFFLOAD_LINK};

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::host_objects::EntrySection;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::plan::containers::{Container, ContainerContent};

/// How objects for a host are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Object(HostFormat, ImagePlacement),
    C,
}

impl Way {
    /// Returns the form for a host: machine code if there is some for it and no option requests C.
    pub(crate) fn of(host: Machine, arguments: &Arguments, placement: ImagePlacement) -> Self {
        let x86_64 = host.number == elf::EM_X86_64.0;
        match arguments.family {
            _ if arguments.options.wrapper_from_c => Self::C,
            Family::Gnu if x86_64 || host.number == elf::EM_AARCH64.0 => {
                Self::Object(HostFormat::Elf(host), placement)
            }
            Family::Coff if x86_64 => Self::Object(HostFormat::Coff(WindowsAbi::Msvc), placement),
            Family::MinGw if x86_64 => Self::Object(HostFormat::Coff(WindowsAbi::Gnu), placement),
            _ => Self::C,
        }
    }
}

impl EntrySection {
    /// Returns the table with the symbols `entries`.
    fn table<'a>(&'a self, relocatable: bool, entries: &'a [&'a str]) -> EntryTable<'a> {
        let section = self.name;
        match relocatable {
            false => EntryTable::StartStop { section, entries },
            true => EntryTable::SectionRange {
                section,
                size: self.size,
                flags: self.flags,
                alignment: self.alignment,
            },
        }
    }
}

/// Registration of a container with one runtime.
#[derive(Debug)]
pub(crate) enum Registration<'a> {
    OpenMp(OpenMp<'a>),
    FatBinary(FatBinary<'a>),
    /// Symbols for HIP objects that register themselves.
    Symbols(HipFatBinary<'a>),
    Sycl(Sycl<'a>),
}

impl Registration<'_> {
    /// Returns the object file in pieces; `None` if it must be compiled from C.
    pub(crate) fn to_object(&self, way: Way) -> Result<Option<Vec<Piece>>, LinkError> {
        let Way::Object(host, placement) = way else {
            return Ok(None);
        };
        Ok(Some(match (self, host) {
            (Self::OpenMp(form), _) => form.to_host_pieces(host, placement)?,
            (Self::FatBinary(form), _) => form.to_host_pieces(host, placement)?,
            (Self::Symbols(form), HostFormat::Elf(machine)) => {
                form.to_pieces(ElfHost { machine, placement })?
            }
            (Self::Sycl(form), HostFormat::Elf(machine)) => {
                form.to_pieces(ElfHost { machine, placement })?
            }
            (Self::Symbols(_) | Self::Sycl(_), HostFormat::Coff(_)) => return Ok(None),
        }))
    }

    /// Returns the registration as LLVM IR; `None` if the host has none.
    pub(crate) fn to_ir(&self, host: &Triple) -> Option<String> {
        match self {
            Self::OpenMp(form) => form.to_ir(host).ok(),
            Self::FatBinary(form) => form.to_ir(host).ok(),
            Self::Sycl(form) => form.to_ir(host).ok(),
            Self::Symbols(_) => None,
        }
    }

    /// Returns the pieces of each file that C source includes.
    pub(crate) fn blobs(&self) -> Vec<Vec<Piece>> {
        let blobs: Vec<Embedded<'_>> = match self {
            Self::OpenMp(form) => form.images.iter().map(|image| image.bytes).collect(),
            Self::FatBinary(FatBinary { bytes, .. })
            | Self::Symbols(HipFatBinary { bytes, .. }) => vec![*bytes],
            Self::Sycl(form) => form.images.iter().map(|image| image.bytes).collect(),
        };
        blobs.into_iter().map(Embedded::to_pieces).collect()
    }

    /// Returns the registration in C. It includes `files`, one for each of [`Self::blobs`].
    pub(crate) fn to_c(&self, files: &[&Path]) -> Result<String, LinkError> {
        let first = files.first().copied().unwrap_or(Path::new(""));
        Ok(match self {
            Self::OpenMp(form) => form.to_c(files)?,
            Self::FatBinary(form) => form.to_c(first)?,
            Self::Symbols(form) => form.to_c(first)?,
            Self::Sycl(form) => form.to_c(files)?,
        })
    }
}

/// Calls `each` with every registration of `container`, and with the prefix of its object's name. `sycl` are the
/// images in a container of SYCL.
pub(crate) fn forms(
    entries: &HostEntries,
    container: &Container,
    sycl: &[BinaryEntry],
    relocatable: bool,
    mut each: impl FnMut(&str, &Registration<'_>) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    let demand = [Global::Marker {
        name: NEEDS_OFFLOAD_LINK,
    }];
    let globals = if entries.deferred { &demand[..] } else { &[] };
    let kind = container.kind.name();
    let tables: Vec<NamedTable<'_>> = entries.of(container.kind).map(NamedTable::new).collect();
    let section = match relocatable {
        false => BlobSection::Offloading,
        true => BlobSection::Finished,
    };
    match &container.content {
        ContainerContent::OpenMp(images) => {
            let images: Vec<Blob<'_>> = images
                .iter()
                .map(|packed| Blob {
                    bytes: Embedded::Pieces(&packed.binary),
                    image: packed.image.clone(),
                })
                .collect();
            // A descriptor has one table, so each table gets its own.
            for table in &tables {
                let form = Registration::OpenMp(OpenMp {
                    images: &images,
                    table: table.section.table(relocatable, &table.symbols),
                    section,
                    globals,
                });
                match tables.len() {
                    1 => each(kind, &form)?,
                    _ => each(&format!("{kind}.{}", table.section.name), &form)?,
                }
            }
            Ok(())
        }
        ContainerContent::FatBinary(runtime, pieces) => {
            let tables = tables.iter().map(|table| HostTable {
                layout: table.section.layout(),
                table: table.section.table(relocatable, &table.symbols),
            });
            let tables: Vec<HostTable<'_>> = tables.collect();
            let content = (*runtime, Embedded::Pieces(pieces));
            fat_binary(&entries.hip, content, &tables, globals, |form| {
                each(kind, form)
            })
        }
        ContainerContent::Sycl(pieces) => {
            let images = sycl.iter().map(|entry| {
                let range = entry.image.clone();
                let image = pieces::replace_inputs(&[Piece::Copy { input: 0, range }], &[pieces]);
                image.expect("the parser checked the range")
            });
            let images: Vec<Vec<Piece>> = images.collect();
            let images = images.iter().zip(sycl);
            let images: Vec<SyclImage<'_>> = images
                .map(|(image, entry)| sycl_image(Embedded::Pieces(image), entry))
                .collect();
            let form = Registration::Sycl(Sycl {
                images: &images,
                section,
                globals,
            });
            each(kind, &form)
        }
    }
}

/// A table of entries with the names of its symbols.
struct NamedTable<'a> {
    section: &'a EntrySection,
    symbols: Vec<&'a str>,
}

impl<'a> NamedTable<'a> {
    fn new(section: &'a EntrySection) -> Self {
        let symbols = section.symbols.iter().map(String::as_str).collect();
        Self { section, symbols }
    }
}

/// Returns the fat binary of CUDA or HIP. Objects of HIP's older driver register themselves and need only the
/// symbols.
fn fat_binary(
    hip: &HipNames,
    (runtime, bytes): (Runtime, Embedded<'_>),
    tables: &[HostTable<'_>],
    globals: &[Global<'_>],
    each: impl FnOnce(&Registration<'_>) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    let names: [Vec<&str>; 2] = match runtime {
        Runtime::Hip => {
            let lists = [&hip.fat_binary, &hip.handle];
            lists.map(|list| list.iter().map(String::as_str).collect())
        }
        Runtime::Cuda => [Vec::new(), Vec::new()],
    };
    let [fat_binary, handle] = &names;
    let symbols = HipSymbols { fat_binary, handle };
    if runtime == Runtime::Hip && !hip.registered {
        return each(&Registration::Symbols(HipFatBinary { bytes, symbols }));
    }
    each(&Registration::FatBinary(FatBinary {
        runtime,
        bytes,
        tables,
        symbols,
        globals,
    }))
}

/// Returns an image in the offload binary that the device link made.
fn sycl_image<'a>(bytes: Embedded<'a>, entry: &'a BinaryEntry) -> SyclImage<'a> {
    SyclImage {
        bytes,
        kind: entry.image_kind,
        triple: entry.triple(),
        symbols: entry.strings.value("symbols").unwrap_or_default(),
        compile_options: entry.strings.value("compile-opts").unwrap_or_default(),
        link_options: entry.strings.value("link-opts").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_formats::format::offload_binary::{self, BinaryImage};
    use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};

    #[test]
    fn keeps_options_of_sycl_in_any_encoding() {
        let image = BinaryImage {
            image_kind: ImageKind::SPIRV,
            offload_kind: OffloadKind::SYCL,
            flags: 0,
            strings: &[("compile-opts", "-DX"), ("link-opts", "-DY")],
            image: b"image",
        };
        let mut bytes = image.to_bytes(LlvmRelease::V22).unwrap();
        let option = bytes.windows(3).position(|part| part == b"-DX").unwrap();
        bytes[option + 2] = 0xe9;
        let binaries = offload_binary::walk(&*bytes, 0..bytes.len() as u64).unwrap();
        let image = sycl_image(Embedded::Bytes(b"image"), &binaries[0].entries[0]);
        assert_eq!(image.bytes.size(), 5);
        assert_eq!(image.compile_options, b"-D\xe9");
        assert_eq!(image.link_options, b"-DY");
    }
}
