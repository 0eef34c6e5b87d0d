//! Offload entries of the host objects in the link.

use std::collections::{BTreeMap, BTreeSet};

use offload_formats::format::offload_entry;
use offload_formats::names::{LlvmRelease, OffloadKind};

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::Inputs;
use crate::linker_wrapper::inputs::host_objects::{self, EntrySection, HIP_NAMES, HostSide};
use crate::linker_wrapper::line::arguments::Arguments;

/// Facts from the host objects about the offload entries of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostEntries {
    pub tables: Vec<EntrySection>,
    /// Names of entries, of the objects that have a section of them.
    pub names: BTreeSet<Vec<u8>>,
    /// Tells for each unit of the inputs whether it was read.
    pub units: Vec<bool>,
    /// An object needs the registration that only this tool makes.
    pub deferred: bool,
    /// Release of clang that made the first object with such a record.
    pub clang: Option<u32>,
    pub hip: HipNames,
}

/// Undefined symbols of HIP objects that register themselves (clang's older driver): names of HIP's fat binary and of
/// its handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HipNames {
    pub fat_binary: Vec<String>,
    pub handle: Vec<String>,
    /// Set if objects of the newer driver exist, too, for which the fat binary is registered.
    pub registered: bool,
}

impl HipNames {
    /// Collects the names from objects' symbols and whether they are defined.
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

    /// Tells whether no object needs the fat binary.
    pub(crate) fn is_empty(&self) -> bool {
        self.fat_binary.is_empty() && self.handle.is_empty()
    }
}

impl HostEntries {
    /// Returns the size of all tables in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.tables.iter().map(|table| table.size).sum()
    }

    /// Reads the entries from the units that the host link loads.
    pub(crate) fn read(
        inputs: &Inputs,
        linked: &[bool],
        arguments: &Arguments,
    ) -> Result<Self, LinkError> {
        let mut found = Self {
            units: linked.to_vec(),
            ..Self::default()
        };
        let mut first = Vec::new();
        let mut hip_names = BTreeMap::new();
        for ((file, unit), linked) in inputs.units().zip(linked) {
            if !linked {
                continue;
            }
            let blocks = file.blocks(unit);
            let blocks =
                blocks.map_err(|problem| LinkError::unopened(unit.path(&file.path), &problem))?;
            let side = host_objects::host_side(&blocks, unit);
            let Some(side) = side else {
                continue;
            };
            let HostSide {
                entries,
                names,
                clang,
                deferred,
                hip,
            } = side;
            found.names.extend(names);
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
            let table = offload_entry::EntryLayout::of(release);
            let of_release = |known: &EntrySection| table.sections().any(|name| name == known.name);
            found.tables.retain(of_release);
        }
        found.hip = HipNames::new(&hip_names);
        Ok(found)
    }

    /// Adds an empty table for each of `kinds` without one: there is no kernel, but there may be globals with
    /// constructors.
    pub(crate) fn complete(&mut self, kinds: &[OffloadKind], arguments: &Arguments) {
        let release = match (arguments.options.llvm, self.clang) {
            (Some(release), _) => release,
            (None, Some(..=20)) => LlvmRelease::V20,
            (None, _) => LlvmRelease::default(),
        };
        for kind in kinds {
            if self.of(*kind).next().is_none() {
                let table = offload_entry::EntryLayout::of(release);
                // Kinds since LLVM 21 have no section of their own.
                let newest = || offload_entry::EntryLayout::V21.section(*kind);
                let section = table.section(*kind).or_else(newest);
                let section = section.expect("since LLVM 21 every kind has a section");
                let known = self.tables.iter_mut().find(|known| known.name == section);
                if let Some(known) = known {
                    known.kinds.push(*kind);
                    continue;
                }
                self.tables.push(EntrySection {
                    name: section,
                    size: 0,
                    flags: 3, // SHF_WRITE | SHF_ALLOC, as in clang's objects
                    alignment: 8,
                    strides: Vec::new(),
                    kinds: host_objects::kinds_of(section),
                    symbols: Vec::new(),
                });
            }
        }
    }

    /// Returns the tables that can contain entries of a kind.
    pub(crate) fn of(&self, kind: OffloadKind) -> impl Iterator<Item = &EntrySection> {
        let tables = self.tables.iter();
        tables.filter(move |table| table.kinds.contains(&kind))
    }
}

impl EntrySection {
    /// Returns the layout of its entries.
    pub(crate) fn layout(&self) -> offload_entry::EntryLayout {
        let stride = self.strides.first();
        let found = stride.and_then(|stride| offload_entry::EntryLayout::find(self.name, *stride));
        let found = found.or_else(|| offload_entry::EntryLayout::oldest_in(self.name));
        found.expect("a table is in a section of offload entries")
    }
}

/// Fails if one section has entries of different sizes: nobody can iterate over them.
fn check_strides(
    known: &EntrySection,
    new: &EntrySection,
    known_from: impl Fn() -> String,
    new_from: impl Fn() -> String,
) -> Result<(), LinkError> {
    let Some(first) = known.strides.first() else {
        return Ok(());
    };
    match new.strides.iter().find(|size| *size != first) {
        Some(size) => Err(LinkError::MixedEntries {
            section: known.name.to_owned(),
            first: (known_from(), *first),
            second: (new_from(), *size),
        }),
        None => Ok(()),
    }
}
