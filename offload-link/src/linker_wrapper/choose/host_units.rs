//! The units of a host link, and their symbols.

use std::borrow::Cow;
use std::collections::HashMap;

use offload_formats::escape::terminal;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs, Unit, UnitKind};
use crate::linker_wrapper::inputs::host_objects;
use crate::linker_wrapper::inputs::symbols::{Names, Symbols};
use crate::linker_wrapper::line::arguments::{Arguments, Load};

/// The units of the inputs and what they define.
pub(super) struct HostUnits<'a> {
    pub inputs: &'a Inputs,
    pub units: Vec<(&'a InputFile, &'a Unit)>,
    /// Symbols of each unit that was read.
    pub names: Vec<Option<Names>>,
    /// Symbols of each shared library, by the number of its file.
    pub libraries: HashMap<usize, Names>,
    pub arguments: &'a Arguments,
}

impl<'a> HostUnits<'a> {
    /// Reads the symbols of the units that no index has, and of shared libraries. `unread` becomes the first that cannot be read.
    pub(super) fn read(
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
        let mut libraries = HashMap::new();
        let files = inputs.files.iter().enumerate();
        for (number, file) in files.filter(|(_, file)| file.kind == FileKind::SharedObject) {
            let blocks = file.blocks_of(None);
            let blocks = blocks.map_err(|problem| LinkError::unopened(&file.path, &problem))?;
            let names = host_objects::shared_symbols(&blocks);
            if names.is_none() {
                unread.get_or_insert_with(|| terminal(&*file.path).to_string());
            }
            libraries.insert(number, names.unwrap_or_default());
        }
        Ok(Self {
            inputs,
            units,
            names,
            libraries,
            arguments,
        })
    }
}

/// Reads the units of a link, the first time that each is loaded.
pub(super) struct UnitReader<'u, 'a> {
    pub of: &'u HostUnits<'a>,
    /// Set if `--wrap` changes references after all files were read.
    pub wrap_last: bool,
    pub unread: &'u mut Option<String>,
}

impl UnitReader<'_, '_> {
    /// Returns the symbol that a reference to `name` leads to, which `--wrap` changes. lld changes references after it has read all
    /// files.
    pub(super) fn meant<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let is_wrapped = |name: &[u8]| {
            let mut wrapped = self.of.arguments.wrapped.iter();
            wrapped.any(|other| other.as_encoded_bytes() == name)
        };
        let real = name.strip_prefix(b"__real_");
        match real.filter(|real| is_wrapped(real)) {
            Some(real) => Cow::Borrowed(real),
            None if !self.wrap_last && is_wrapped(name) => Cow::Owned([b"__wrap_", name].concat()),
            None => Cow::Borrowed(name),
        }
    }

    fn pass(&self, names: &Names, pass: &mut dyn FnMut(&Symbols<'_>)) {
        let symbols = names.symbols();
        if self.of.arguments.wrapped.is_empty() {
            return pass(&symbols);
        }
        let undefined = symbols.undefined.iter();
        let meant: Vec<Cow<'_, [u8]>> = undefined.map(|name| self.meant(name)).collect();
        let undefined = meant.iter().map(Cow::as_ref).collect();
        pass(&Symbols {
            undefined,
            ..symbols
        });
    }

    /// Passes the symbols of a unit.
    pub(super) fn unit(
        &mut self,
        unit: usize,
        pass: &mut dyn FnMut(&Symbols<'_>),
    ) -> Result<(), LinkError> {
        match &self.of.names[unit] {
            Some(names) => self.pass(names, pass),
            None => {
                let (file, unit) = self.of.units[unit];
                let names = names_of(file, unit, self.unread)?;
                self.pass(&names, pass);
            }
        }
        Ok(())
    }

    /// Passes the symbols of a shared library.
    pub(super) fn library(&mut self, library: usize, pass: &mut dyn FnMut(&Symbols<'_>)) {
        if let Some(names) = self.of.libraries.get(&library) {
            self.pass(names, pass);
        }
    }
}

/// Tells whether every unit of a file is loaded, whatever its symbols.
pub(super) fn always(file: &InputFile) -> bool {
    match file.load {
        Load::Whole => true,
        Load::Usual => file.kind != FileKind::Archive,
        Load::Wanted => false,
    }
}

/// Returns the symbols that the archive's index has of a unit.
pub(super) fn indexed<'a>(
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
