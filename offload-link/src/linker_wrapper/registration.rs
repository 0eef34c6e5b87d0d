//! What registers the linked images: an object for each kind, with every table of offload entries.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use offload_formats::format::offload_binary::{self, BinaryEntry};
use offload_formats::format::offload_entry;
use offload_formats::names::{LlvmRelease, OffloadKind, Triple};
use offload_formats::registration::fat_binary::{FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::{HipFatBinary, HipSymbols};
use offload_formats::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{Global, NEEDS_OFFLOAD_LINK};

use super::Error;
use super::arguments::Arguments;
use super::containers::{Container, Content};
use super::from_c::Way;
use super::host_objects::{self, EntrySection, HIP_NAMES, HostSide};
use super::inputs::Inputs;

/// What the host's objects say about the offload entries of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostEntries {
    pub tables: Vec<EntrySection>,
    /// An object waits for the registration.
    pub deferred: bool,
    /// Release of the clang that made the first object that says so.
    pub clang: Option<u32>,
    pub hip: HipNames,
}

/// What objects of clang's older driver, which register themselves, leave undefined: names of HIP's
/// fat binary, and of the handle for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HipNames {
    pub fat_binary: Vec<String>,
    pub handle: Vec<String>,
    /// There are objects of the newer driver too, for which the fat binary is registered.
    pub registered: bool,
}

impl HipNames {
    /// From the names that objects have, and whether they define them.
    fn new(names: &BTreeMap<String, bool>) -> Self {
        let of = |start: &str| {
            let wanted = names
                .iter()
                .filter(|(name, defined)| !**defined && name.starts_with(start));
            wanted.map(|(name, _)| name.clone()).collect()
        };
        let [fat_binary, handle] = HIP_NAMES.map(of);
        Self {
            fat_binary,
            handle,
            registered: true,
        }
    }

    /// Whether nobody asks.
    pub(super) fn is_empty(&self) -> bool {
        self.fat_binary.is_empty() && self.handle.is_empty()
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
        let mut first = Vec::new();
        let mut hip_names = BTreeMap::new();
        for ((file, unit), linked) in inputs.units().zip(linked) {
            if !linked {
                continue;
            }
            let blocks = file.blocks(unit);
            let blocks =
                blocks.map_err(|problem| Error::unopened(unit.path(&file.path), &problem))?;
            let side = host_objects::host_side(&blocks, unit);
            let Some(side) = side else {
                continue;
            };
            let HostSide {
                entries,
                clang,
                deferred,
                hip,
            } = side;
            found.deferred |= deferred;
            for (name, defined) in hip {
                *hip_names.entry(name).or_default() |= defined;
            }
            if unit.has_device_code() {
                found.clang = found.clang.or(clang);
            }
            for section in entries {
                let known = found
                    .tables
                    .iter()
                    .position(|known| known.name == section.name);
                let Some(at) = known else {
                    let name = || file.unit_name(unit);
                    check_strides(&section, &section, name, name)?;
                    first.push((file, unit));
                    found.tables.push(section);
                    continue;
                };
                let known = &mut found.tables[at];
                let (first_file, first_unit) = first[at];
                let first_name = || first_file.unit_name(first_unit);
                check_strides(known, &section, first_name, || file.unit_name(unit))?;
                let alignment = section.alignment.max(1);
                let start = known.size.checked_next_multiple_of(alignment);
                known.size = start.unwrap_or(u64::MAX).saturating_add(section.size);
                known.alignment = known.alignment.max(alignment);
                if known.strides.is_empty() {
                    known.strides = section.strides;
                }
                known.kinds.extend(section.kinds);
                known.symbols.extend(section.symbols);
            }
        }
        if let Some(release) = arguments.options.llvm {
            let table = offload_entry::EntryTable::of(release);
            let of_release = |known: &EntrySection| table.sections().any(|name| name == known.name);
            found.tables.retain(of_release);
        }
        found.hip = HipNames::new(&hip_names);
        Ok(found)
    }

    /// Adds an empty table for each of `kinds` that has none: no kernel, but perhaps globals with
    /// constructors.
    pub(super) fn complete(&mut self, kinds: &[OffloadKind], arguments: &Arguments) {
        let release = match (arguments.options.llvm, self.clang) {
            (Some(release), _) => release,
            (None, Some(..=20)) => LlvmRelease::V20,
            (None, _) => LlvmRelease::default(),
        };
        for kind in kinds {
            if self.of(*kind).next().is_none() {
                let table = offload_entry::EntryTable::of(release);
                // Kinds that came later have no section of their own.
                let section = table.section(*kind).unwrap_or(NEW_SECTION);
                let known = self.tables.iter_mut().find(|known| known.name == section);
                if let Some(known) = known {
                    known.kinds.push(*kind);
                    continue;
                }
                self.tables.push(EntrySection {
                    name: section,
                    size: 0,
                    flags: 3, // SHF_WRITE | SHF_ALLOC, as clang has it
                    alignment: 8,
                    strides: Vec::new(),
                    kinds: host_objects::kinds_of(section),
                    symbols: Vec::new(),
                });
            }
        }
    }

    /// The tables in which entries of a kind can be.
    fn of(&self, kind: OffloadKind) -> impl Iterator<Item = &EntrySection> {
        let tables = self.tables.iter();
        tables.filter(move |table| table.kinds.contains(&kind))
    }
}

/// Where entries of all kinds are since LLVM 21.
const NEW_SECTION: &str = "llvm_offload_entries";

impl EntrySection {
    /// How its entries look.
    fn layout(&self) -> offload_entry::EntryTable {
        let stride = self.strides.first().copied().unwrap_or_default();
        let default = match self.name {
            NEW_SECTION => offload_entry::EntryTable::V21,
            _ => offload_entry::EntryTable::V19,
        };
        offload_entry::EntryTable::find(self.name, stride).unwrap_or(default)
    }

    /// `entries` are its symbols.
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

/// Entries that differ in size cannot be walked in one section.
fn check_strides(
    known: &EntrySection,
    new: &EntrySection,
    known_from: impl Fn() -> String,
    new_from: impl Fn() -> String,
) -> Result<(), Error> {
    let Some(first) = known.strides.first() else {
        return Ok(());
    };
    match new.strides.iter().find(|size| *size != first) {
        Some(size) => Err(Error::MixedEntries {
            section: known.name.to_owned(),
            first: (known_from(), *first),
            second: (new_from(), *size),
        }),
        None => Ok(()),
    }
}

/// What registers a container with one runtime.
#[derive(Debug)]
pub(super) enum Form<'a> {
    OpenMp(OpenMp<'a>),
    FatBinary(FatBinary<'a>),
    /// For HIP objects that register themselves.
    Symbols(HipFatBinary<'a>),
    Sycl(Sycl<'a>),
}

impl Form<'_> {
    /// The object file; nothing when it has to be made from C.
    pub(super) fn to_object(&self, way: Way) -> Result<Option<Vec<u8>>, Error> {
        Ok(Some(match (self, way) {
            (Self::OpenMp(form), Way::Elf(host)) => form.to_object(host)?,
            (Self::FatBinary(form), Way::Elf(host)) => form.to_object(host)?,
            (Self::Symbols(form), Way::Elf(host)) => form.to_object(host)?,
            (Self::Sycl(form), Way::Elf(host)) => form.to_object(host)?,
            (Self::OpenMp(form), Way::Coff(abi)) => form.to_coff(abi)?,
            (Self::FatBinary(form), Way::Coff(abi)) => form.to_coff(abi)?,
            (Self::Symbols(_) | Self::Sycl(_), Way::Coff(_)) | (_, Way::C) => return Ok(None),
        }))
    }

    /// The same as a module of LLVM IR; nothing when there is none for the host.
    pub(super) fn to_ir(&self, host: &Triple) -> Option<String> {
        match self {
            Self::OpenMp(form) => form.to_ir(host).ok(),
            Self::FatBinary(form) => form.to_ir(host).ok(),
            Self::Sycl(form) => form.to_ir(host).ok(),
            Self::Symbols(_) => None,
        }
    }

    /// The bytes that C reads from files.
    pub(super) fn blobs(&self) -> Vec<&[u8]> {
        match self {
            Self::OpenMp(form) => form.images.iter().map(|image| image.bytes).collect(),
            Self::FatBinary(FatBinary { bytes, .. })
            | Self::Symbols(HipFatBinary { bytes, .. }) => vec![bytes],
            Self::Sycl(form) => form.images.iter().map(|image| image.bytes).collect(),
        }
    }

    /// The same in C, which reads `files`, one for each of [`Self::blobs`].
    pub(super) fn to_c(&self, files: &[&Path]) -> Result<String, Error> {
        let first = files.first().copied().unwrap_or(Path::new(""));
        Ok(match self {
            Self::OpenMp(form) => form.to_c(files)?,
            Self::FatBinary(form) => form.to_c(first)?,
            Self::Symbols(form) => form.to_c(first)?,
            Self::Sycl(form) => form.to_c(files)?,
        })
    }
}

/// Calls `each` for every object that registers a part of `container`, with what its name begins
/// with.
pub(super) fn forms<'a>(
    entries: &'a HostEntries,
    container: &Container,
    relocatable: bool,
    mut each: impl FnMut(&str, &Form<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let demand = [Global::Marker {
        name: NEEDS_OFFLOAD_LINK,
    }];
    let globals = if entries.deferred { &demand[..] } else { &[] };
    let kind = container.kind.name();
    let tables: Vec<&EntrySection> = entries.of(container.kind).collect();
    let names = |table: &&'a EntrySection| table.symbols.iter().map(String::as_str).collect();
    let symbols: Vec<Vec<&str>> = tables.iter().map(names).collect();
    let section = match relocatable {
        false => BlobSection::Offloading,
        true => BlobSection::Finished,
    };
    match &container.content {
        Content::OpenMp(images) => {
            let images: Vec<Blob<'_>> = images
                .iter()
                .map(|packed| Blob {
                    bytes: &packed.binary,
                    image: packed.image.clone(),
                })
                .collect();
            // A descriptor has one table; several descriptors are as good as one.
            for (table, symbols) in tables.iter().zip(&symbols) {
                let form = Form::OpenMp(OpenMp {
                    images: &images,
                    table: table.table(relocatable, symbols),
                    section,
                    globals,
                });
                match tables.len() {
                    1 => each(kind, &form)?,
                    _ => each(&format!("{kind}.{}", table.name), &form)?,
                }
            }
            Ok(())
        }
        Content::FatBinary(runtime, bytes) => {
            let tables = tables.iter().zip(&symbols);
            let tables = tables.map(|(table, symbols)| HostTable {
                layout: table.layout(),
                table: table.table(relocatable, symbols),
            });
            let tables: Vec<HostTable<'_>> = tables.collect();
            let names = |list: &'a [String]| list.iter().map(String::as_str).collect::<Vec<_>>();
            let [fat_binary, handle] = match runtime {
                Runtime::Hip => [names(&entries.hip.fat_binary), names(&entries.hip.handle)],
                Runtime::Cuda => [Vec::new(), Vec::new()],
            };
            let symbols = HipSymbols {
                fat_binary: &fat_binary,
                handle: &handle,
            };
            if *runtime == Runtime::Hip && !entries.hip.registered {
                return each(kind, &Form::Symbols(HipFatBinary { bytes, symbols }));
            }
            let form = Form::FatBinary(FatBinary {
                runtime: *runtime,
                bytes,
                tables: &tables,
                symbols,
                globals,
            });
            each(kind, &form)
        }
        Content::Sycl(bytes) => {
            let invalid = |source: offload_binary::Error| Error::Container {
                kind: container.kind,
                problem: source.to_string(),
            };
            let binaries = offload_binary::walk(&**bytes, 0..bytes.len() as u64);
            let binaries = binaries.map_err(invalid)?;
            let found: Vec<&BinaryEntry> = binaries.iter().flat_map(|it| &it.entries).collect();
            let images = found.iter().map(|entry| SyclImage {
                bytes: range(bytes, &entry.image),
                kind: entry.image_kind,
                triple: entry.triple(),
                symbols: entry.strings.value("symbols").unwrap_or_default(),
                compile_options: text(entry.strings.value("compile-opts")),
                link_options: text(entry.strings.value("link-opts")),
            });
            let images: Vec<SyclImage<'_>> = images.collect();
            let form = Form::Sycl(Sycl {
                images: &images,
                section,
                globals,
            });
            each(kind, &form)
        }
    }
}

fn range<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let start = usize::try_from(range.start).unwrap_or(usize::MAX);
    let end = usize::try_from(range.end).unwrap_or(usize::MAX);
    bytes.get(start..end).unwrap_or_default()
}

fn text(value: Option<&[u8]>) -> &str {
    value
        .and_then(|value| std::str::from_utf8(value).ok())
        .unwrap_or_default()
}
