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
    /// Collects the names that no object defines. Each symbol of an object comes with whether the object defines it.
    fn new(symbols: Vec<(String, bool)>) -> Self {
        let mut names: BTreeMap<String, bool> = BTreeMap::new();
        for (name, defined) in symbols {
            *names.entry(name).or_default() |= defined;
        }
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
        let mut hip_symbols = Vec::new();
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
            hip_symbols.extend(hip);
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
                known.append(section);
            }
        }
        if let Some(release) = arguments.options.llvm {
            let table = offload_entry::EntryLayout::of(release);
            let of_release = |known: &EntrySection| table.sections().any(|name| name == known.name);
            found.tables.retain(of_release);
        }
        found.hip = HipNames::new(hip_symbols);
        Ok(found)
    }

    /// Adds an empty table for each of `kinds` without one: there is no kernel, but there may be globals with
    /// constructors.
    pub(crate) fn complete(&mut self, kinds: &[OffloadKind], arguments: &Arguments) {
        let release = match (arguments.options.named_llvm(), self.clang) {
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
                let mut kinds = host_objects::kinds_of(section);
                kinds.retain(|kind| self.of(*kind).next().is_none());
                self.tables.push(EntrySection {
                    name: section,
                    size: 0,
                    flags: 3, // SHF_WRITE | SHF_ALLOC, as in clang's objects
                    alignment: 8,
                    strides: Vec::new(),
                    kinds,
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
    /// Adds the section of a later object, at the offset that linkers give it.
    fn append(&mut self, section: Self) {
        let alignment = section.alignment.max(1);
        let start = self.size.checked_next_multiple_of(alignment);
        self.size = start.unwrap_or(u64::MAX).saturating_add(section.size);
        self.alignment = self.alignment.max(alignment);
        if self.strides.is_empty() {
            self.strides = section.strides;
        }
        self.kinds.extend(section.kinds);
        self.symbols.extend(section.symbols);
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &'static str, kind: OffloadKind) -> EntrySection {
        EntrySection {
            name,
            size: 0,
            flags: 3,
            alignment: 1,
            strides: Vec::new(),
            kinds: vec![kind],
            symbols: Vec::new(),
        }
    }

    #[test]
    fn joins_the_sections_of_two_objects() {
        let (hip, openmp) = (OffloadKind::HIP, OffloadKind::OPENMP);
        // Without entries, so that its layout is that of the next object: 56 bytes an entry since LLVM 20.
        let mut joined = EntrySection {
            size: 20,
            alignment: 4,
            symbols: vec!["one".to_owned()],
            ..section("omp_offloading_entries", hip)
        };
        joined.append(EntrySection {
            size: 56,
            alignment: 8,
            strides: vec![56],
            symbols: vec!["two".to_owned()],
            ..section("omp_offloading_entries", openmp)
        });
        assert_eq!((joined.size, joined.alignment), (24 + 56, 8));
        assert_eq!(joined.layout().stride(), 56);
        assert_eq!(joined.kinds, [hip, openmp]);
        assert_eq!(joined.symbols, ["one", "two"]);
    }

    #[test]
    fn gives_a_kind_without_entries_the_table_that_other_kinds_use() {
        let arguments = Arguments::parse(vec!["a.o".into()], "offload-ld").unwrap();
        let mut entries = HostEntries {
            tables: vec![section("llvm_offload_entries", OffloadKind::HIP)],
            ..HostEntries::default()
        };
        entries.complete(&[OffloadKind::OPENMP], &arguments);
        assert_eq!(entries.of(OffloadKind::OPENMP).count(), 1);
        assert_eq!(entries.tables.len(), 1);
        // OpenMP's table of LLVM 20 remains its only one: images are registered once.
        let mut entries = HostEntries {
            tables: vec![section("omp_offloading_entries", OffloadKind::OPENMP)],
            ..HostEntries::default()
        };
        entries.complete(&[OffloadKind::OPENMP, OffloadKind::HIP], &arguments);
        let names = |kind| entries.of(kind).map(|table| table.name).collect::<Vec<_>>();
        assert_eq!(names(OffloadKind::OPENMP), ["omp_offloading_entries"]);
        assert_eq!(names(OffloadKind::HIP), ["llvm_offload_entries"]);
    }

    #[test]
    fn finds_names_of_hip_that_no_object_defines() {
        let symbols = |places: [bool; 2]| {
            let names = places.map(|defined| ("__hip_fatbin_1".to_owned(), defined));
            let other = ("__hip_gpubin_handle_2".to_owned(), false);
            names.into_iter().chain([other]).collect()
        };
        for (places, expected) in [
            ([true, false], &[][..]),
            ([false, true], &[]),
            ([false, false], &["__hip_fatbin_1"]),
        ] {
            let names = HipNames::new(symbols(places));
            assert_eq!(names.fat_binary, expected, "{places:?}");
            assert_eq!(names.handle, ["__hip_gpubin_handle_2"]);
        }
    }
}
