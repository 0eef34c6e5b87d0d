//! Tells which objects and archive members the host link loads.
//!
//! | unit                                       | its definitions      | its undefined symbols      |
//! |--------------------------------------------|----------------------|----------------------------|
//! | an object                                  | read                 | read                       |
//! | an archive member in the symbol index      | from the index       | read if it is loaded       |
//! | another archive member, a made host part   | read                 | read                       |
//!
//! Nothing is read if the images do not depend on the answer.

use std::collections::HashSet;

use offload_formats::escape::terminal;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs, Unit, UnitKind};
use crate::linker_wrapper::inputs::host_objects;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::symbols::{Candidate, Names, linked};
use crate::linker_wrapper::line::arguments::{Arguments, Item, Load};
use crate::linker_wrapper::report::fates::Report;

/// Tells for each unit whether the host link loads it.
///
/// # Errors
///
/// Fails if an input cannot be opened again.
pub(super) fn linked_units(
    inputs: &Inputs,
    images: &[Image],
    arguments: &Arguments,
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
    let mut taken = Vec::new();
    if unread.is_none() {
        let roots = arguments.roots.iter().map(|root| root.as_encoded_bytes());
        let roots = roots.chain([&b"main"[..], b"_start"]);
        taken = HostUnits::read(inputs, &mut unread)?.linked(roots, &mut unread)?;
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

/// The units of the inputs and what they define.
struct HostUnits<'a> {
    units: Vec<(&'a InputFile, &'a Unit)>,
    /// Symbols of each unit that was read.
    names: Vec<Option<Names>>,
}

impl<'a> HostUnits<'a> {
    /// Reads the symbols of the units that no index has. `unread` becomes the first unit that cannot be read.
    fn read(inputs: &'a Inputs, unread: &mut Option<String>) -> Result<Self, LinkError> {
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
        Ok(Self { units, names })
    }

    fn linked<'r>(
        &self,
        roots: impl Iterator<Item = &'r [u8]>,
        unread: &mut Option<String>,
    ) -> Result<Vec<bool>, LinkError> {
        let mut candidates = Vec::new();
        for ((file, unit), names) in self.units.iter().zip(&self.names) {
            candidates.push(Candidate {
                defined: match names {
                    Some(names) => names.symbols().defined,
                    None => indexed(file, unit)?.collect(),
                },
                always: always(file),
            });
        }
        linked(&candidates, roots, |index, want| {
            let read;
            let names = match &self.names[index] {
                Some(names) => names,
                None => {
                    let (file, unit) = self.units[index];
                    read = names_of(file, unit, unread)?;
                    &read
                }
            };
            names.symbols().undefined.iter().for_each(|name| want(name));
            Ok(())
        })
    }
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
