//! The objects that register the linked images, one for each table of offload entries.

use std::ops::Range;

use offload_build::container::elf::Machine;
use offload_build::format::offload_binary::BinaryImage;
use offload_build::format::offload_entry;
use offload_build::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_build::registration::{Global, NEEDS_OFFLOAD_LINK};
use offload_build::target::{ImageKind, LlvmRelease, OffloadKind};

use super::Error;
use super::arguments::Arguments;
use super::host_objects::{self, EntrySection, HostSide};
use super::images::unit_name;
use super::inputs::Inputs;

/// What the host's objects say about the offload entries of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostEntries {
    pub tables: Vec<EntrySection>,
    /// An object waits for the registration.
    pub deferred: bool,
    /// Release of the clang that made the first object that says so.
    pub clang: Option<u32>,
}

/// An image that was linked, in its offload binary.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    pub binary: Vec<u8>,
    pub image: Range<u64>,
}

impl Linked {
    /// Puts an image into an offload binary as LLVM 22 does.
    pub(super) fn new(
        image_kind: ImageKind,
        triple: &str,
        processor: &str,
        image: &[u8],
    ) -> Result<Self, Error> {
        let strings = [("triple", triple), ("arch", processor)];
        let packed = BinaryImage {
            image_kind,
            offload_kind: OffloadKind::OPENMP,
            flags: 0,
            strings: &strings,
            image,
        };
        let written = packed
            .head(image.len() as u64, LlvmRelease::default())
            .and_then(|(head, _)| {
                Ok((head.len() as u64, packed.to_bytes(LlvmRelease::default())?))
            });
        let (start, binary) = written.map_err(|source| Error::Input {
            from: triple.to_owned(),
            source: source.into(),
        })?;
        let image = start..start + image.len() as u64;
        Ok(Self { binary, image })
    }
}

impl HostEntries {
    /// Reads them from the units that the host link takes.
    pub(super) fn read(
        inputs: &Inputs,
        linked: &[bool],
        arguments: &Arguments,
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut first: Vec<String> = Vec::new();
        for ((file, unit), linked) in inputs.units().zip(linked) {
            if !linked {
                continue;
            }
            let Some(side) = host_objects::host_side(&file.path, unit) else {
                continue;
            };
            let HostSide {
                entries,
                clang,
                deferred,
            } = side;
            found.deferred |= deferred;
            if unit.has_device_code() {
                found.clang = found.clang.or(clang);
            }
            for section in entries {
                let known = found
                    .tables
                    .iter()
                    .position(|known| known.name == section.name);
                let Some(at) = known else {
                    check_strides(
                        &section,
                        &section,
                        unit_name(file, unit),
                        &unit_name(file, unit),
                    )?;
                    first.push(unit_name(file, unit));
                    found.tables.push(section);
                    continue;
                };
                let known = &mut found.tables[at];
                check_strides(known, &section, first[at].clone(), &unit_name(file, unit))?;
                let alignment = section.alignment.max(1);
                known.size = known.size.next_multiple_of(alignment) + section.size;
                known.alignment = known.alignment.max(alignment);
                if known.strides.is_empty() {
                    known.strides = section.strides;
                }
            }
        }
        if let Some(release) = arguments.options.llvm {
            let name = section_of(release);
            found.tables.retain(|table| table.name == name);
            if found.tables.is_empty() {
                found.tables.push(empty(name));
            }
        }
        if found.tables.is_empty() {
            // No kernel, but perhaps globals with constructors: the images are registered.
            let release = match found.clang {
                Some(..=20) => LlvmRelease::V20,
                _ => LlvmRelease::default(),
            };
            found.tables.push(empty(section_of(release)));
        }
        Ok(found)
    }
}

fn section_of(release: LlvmRelease) -> &'static str {
    let table = offload_entry::EntryTable::of(release);
    table.section(OffloadKind::OPENMP).unwrap_or_default()
}

fn empty(name: &'static str) -> EntrySection {
    EntrySection {
        name,
        size: 0,
        flags: 3, // SHF_WRITE | SHF_ALLOC, as clang has it
        alignment: 8,
        strides: Vec::new(),
    }
}

/// Entries that differ in size cannot be walked in one section.
fn check_strides(
    known: &EntrySection,
    new: &EntrySection,
    known_from: String,
    new_from: &str,
) -> Result<(), Error> {
    let Some(first) = known.strides.first() else {
        return Ok(());
    };
    match new.strides.iter().find(|size| *size != first) {
        Some(size) => Err(Error::MixedEntries {
            section: known.name.to_owned(),
            first: (known_from, *first),
            second: (new_from.to_owned(), *size),
        }),
        None => Ok(()),
    }
}

/// The objects, each with the entry section that it is for.
pub(super) fn objects<'a>(
    entries: &'a HostEntries,
    linked: &[Linked],
    relocatable: bool,
    host: Machine,
) -> Result<Vec<(&'a str, Vec<u8>)>, Error> {
    let images: Vec<Blob<'_>> = linked
        .iter()
        .map(|linked| Blob {
            bytes: &linked.binary,
            image: linked.image.clone(),
        })
        .collect();
    let demand = [Global::Marker {
        name: NEEDS_OFFLOAD_LINK,
    }];
    let globals = if entries.deferred { &demand[..] } else { &[] };
    entries
        .tables
        .iter()
        .map(|table| {
            let section = table.name;
            let object = OpenMp {
                images: &images,
                table: match relocatable {
                    false => EntryTable::StartStop { section },
                    true => EntryTable::SectionRange {
                        section,
                        size: table.size,
                        flags: table.flags,
                        alignment: table.alignment,
                    },
                },
                section: match relocatable {
                    false => BlobSection::Offloading,
                    true => BlobSection::Finished,
                },
                globals,
            };
            Ok((section, object.to_object(host)?))
        })
        .collect()
}
