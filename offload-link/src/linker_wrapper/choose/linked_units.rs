//! Tells which objects and archive members the host link loads.
//!
//! | unit                                       | its definitions      | its undefined symbols      |
//! |--------------------------------------------|----------------------|----------------------------|
//! | an object                                  | read                 | read                       |
//! | a shared library                           |                      | read                       |
//! | an archive member in the symbol index      | from the index       | read if it is loaded       |
//! | another archive member, a made host part   | read                 | read                       |
//!
//! Nothing is read if the images do not depend on the answer.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use offload_formats::escape::terminal;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs, Unit, UnitKind};
use crate::linker_wrapper::inputs::host_objects;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::symbols::{ArchiveSearch, Candidate, Names, Symbols, linked};
use crate::linker_wrapper::line::arguments::{Arguments, Item, Load};
use crate::linker_wrapper::line::elf_linker::ElfLinker;
use crate::linker_wrapper::report::fates::Report;

/// Tells for each unit whether the host link loads it. `linker` tells which linker that is.
///
/// # Errors
///
/// Fails if an input cannot be opened again.
pub(super) fn linked_units(
    inputs: &Inputs,
    images: &[Image],
    arguments: &Arguments,
    linker: impl Fn() -> ElfLinker,
    report: &mut Report,
) -> Result<Vec<bool>, LinkError> {
    let in_question: HashSet<usize> = images.iter().map(|image| image.unit).collect();
    let mut units = inputs.units().enumerate();
    let open = units.any(|(index, (file, _))| !always(file) && in_question.contains(&index));
    if !open {
        return Ok(inputs.units().map(|(file, _)| always(file)).collect());
    }
    // A source file for a compiler driver: the symbols that its object will need are unknown.
    let source = |file: &&InputFile| {
        let named = matches!(arguments.items.get(file.item), Some(Item::File { .. }));
        named && file.kind == FileKind::Other
    };
    let source = inputs.files.iter().find(source);
    let mut unread = source.map(|file| terminal(&*file.path).to_string());
    if let Some(pattern) = &arguments.root_pattern {
        unread.get_or_insert_with(|| format!("--undefined-glob={}", terminal(&**pattern)));
    }
    let mut taken = Vec::new();
    if unread.is_none() {
        let of_libraries = of_shared_libraries(inputs, &mut unread)?;
        let of_libraries = of_libraries
            .iter()
            .flat_map(|names| names.symbols().undefined);
        let roots = arguments.roots.iter().map(|root| root.as_encoded_bytes());
        let roots = roots.chain([&b"main"[..], b"_start"]).chain(of_libraries);
        let search = || match linker() {
            ElfLinker::Gnu | ElfLinker::Gold => ArchiveSearch::Following,
            _ => ArchiveSearch::First,
        };
        let units = HostUnits::read(inputs, arguments, &mut unread)?;
        taken = units.linked(roots, search, &mut unread)?;
    }
    if let Some(name) = unread {
        report.warnings.push(format!(
            "the symbols of {name} cannot be read: images of all archive members are linked"
        ));
        return Ok(inputs.units().map(|_| true).collect());
    }
    Ok(taken)
}

/// Tells whether every unit of a file is loaded, whatever its symbols.
fn always(file: &InputFile) -> bool {
    match file.load {
        Load::Whole => true,
        Load::Usual => file.kind != FileKind::Archive,
        Load::Wanted => false,
    }
}

/// Reads the undefined symbols of the shared libraries: linkers load archive members for them, too.
fn of_shared_libraries(
    inputs: &Inputs,
    unread: &mut Option<String>,
) -> Result<Vec<Names>, LinkError> {
    let mut all = Vec::new();
    let libraries = inputs.files.iter();
    for file in libraries.filter(|file| file.kind == FileKind::SharedObject) {
        let blocks = file.blocks_of(None);
        let blocks = blocks.map_err(|problem| LinkError::unopened(&file.path, &problem))?;
        match host_objects::shared_symbols(&blocks) {
            Some(names) => all.push(names),
            None => {
                unread.get_or_insert_with(|| terminal(&*file.path).to_string());
            }
        }
    }
    Ok(all)
}

/// The units of the inputs and what they define.
struct HostUnits<'a> {
    units: Vec<(&'a InputFile, &'a Unit)>,
    /// Symbols of each unit that was read.
    names: Vec<Option<Names>>,
    arguments: &'a Arguments,
}

impl<'a> HostUnits<'a> {
    /// Reads the symbols of the units that no index has. `unread` becomes the first unit that cannot be read.
    fn read(
        inputs: &'a Inputs,
        arguments: &'a Arguments,
        unread: &mut Option<String>,
    ) -> Result<Self, LinkError> {
        let units: Vec<_> = inputs.units().collect();
        let mut names = Vec::new();
        for (file, unit) in &units {
            names.push(
                match always(file) || indexed(file, unit)?.next().is_none() {
                    true => Some(names_of(file, unit, unread)?),
                    false => None,
                },
            );
        }
        Ok(Self {
            units,
            names,
            arguments,
        })
    }

    fn linked<'r>(
        &self,
        roots: impl Iterator<Item = &'r [u8]>,
        search: impl Fn() -> ArchiveSearch,
        unread: &mut Option<String>,
    ) -> Result<Vec<bool>, LinkError> {
        let mut last: HashMap<&Path, usize> = HashMap::new();
        for (file, _) in &self.units {
            let place = self.arguments.end_of_group(file.item);
            let last = last.entry(&file.path).or_default();
            *last = place.max(*last);
        }
        let mut candidates = Vec::new();
        for ((file, unit), names) in self.units.iter().zip(&self.names) {
            let always = always(file);
            candidates.push(Candidate {
                defined: match names {
                    Some(names) if always => with_values(&names.symbols()),
                    Some(names) => names.symbols().defined,
                    None => indexed(file, unit)?.collect(),
                },
                always,
                place: file.item,
                last: last.get(&*file.path).copied().unwrap_or(file.item),
            });
        }
        let roots: Vec<Cow<'_, [u8]>> = roots.map(|name| self.meant(name)).collect();
        let roots = roots.iter().map(Cow::as_ref);
        linked(&candidates, roots, search, |index, want| {
            let read;
            let names = match &self.names[index] {
                Some(names) => names,
                None => {
                    let (file, unit) = self.units[index];
                    read = names_of(file, unit, unread)?;
                    &read
                }
            };
            let symbols = names.symbols();
            let wanted = symbols.undefined.iter().chain(&symbols.common);
            wanted.for_each(|name| want(&self.meant(name)));
            Ok(())
        })
    }

    /// Returns the symbol that a reference to `name` leads to, which `--wrap` changes.
    fn meant<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let is_wrapped = |name: &[u8]| {
            let mut wrapped = self.arguments.wrapped.iter();
            wrapped.any(|other| other.as_encoded_bytes() == name)
        };
        if is_wrapped(name) {
            return Cow::Owned([b"__wrap_", name].concat());
        }
        let real = name.strip_prefix(b"__real_");
        Cow::Borrowed(real.filter(|name| is_wrapped(name)).unwrap_or(name))
    }
}

/// Returns the definitions that no other one with a value replaces.
fn with_values<'d>(symbols: &Symbols<'d>) -> Vec<&'d [u8]> {
    let defined = symbols.defined.iter().copied();
    defined
        .filter(|name| !symbols.common.contains(name))
        .collect()
}

/// Returns the symbols that the archive's index has of a unit.
fn indexed<'a>(
    file: &'a InputFile,
    unit: &Unit,
) -> Result<impl Iterator<Item = &'a [u8]>, LinkError> {
    let index = file.index();
    let index = index.map_err(|problem| LinkError::unopened(&file.path, &problem))?;
    let header = unit.member.filter(|_| unit.kind != UnitKind::Other);
    Ok(header
        .into_iter()
        .flat_map(|header| index.of_member(header)))
}

/// Reads the symbols of a unit.
fn names_of(
    file: &InputFile,
    unit: &Unit,
    unread: &mut Option<String>,
) -> Result<Names, LinkError> {
    if unit.kind == UnitKind::Other {
        return Ok(Names::default());
    }
    let blocks = file.blocks(unit);
    let blocks = blocks.map_err(|problem| LinkError::unopened(unit.path(&file.path), &problem))?;
    let names = host_objects::symbols(&blocks, unit);
    if names.is_none() {
        unread.get_or_insert_with(|| file.unit_name(unit));
    }
    Ok(names.unwrap_or_default())
}
