//! The static library of a module with host code.

use super::entries;
use crate::container::archive::{self, NewMember};
use crate::container::elf;
use crate::error::{self, Error};
use crate::toolchain::task::{self, Done};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Puts the object of a module into its static library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    /// As `-l` wants it.
    pub(crate) name: String,
    pub(crate) library: PathBuf,
    pub(crate) object: PathBuf,
    /// Whether its registration is complete: then nothing else shall find its entries, or mix them with others'.
    pub(super) own: Option<Own>,
}

/// What keeps a module's entries apart from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// Behind names, which no other module in any program has.
    pub(super) suffix: String,
    /// Whether symbols of kernels and globals get it, too: two versions of a crate have the same.
    pub(super) renames_symbols: bool,
}

/// In the names of functions that launch a kernel.
const DEVICE_STUB: &str = "__device_stub__";

impl Archive {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let mut object = fs::read(&self.object).map_err(error::io(&self.object))?;
        let wrong = |error| Error::because(self.object.display(), error);
        if let Some(own) = &self.own {
            let rewritten = |error| Error::because(self.object.display(), error);
            let section = entry_section(&object).map_err(wrong)?;
            if own.renames_symbols {
                let registered = registered(&object, &section).map_err(wrong)?;
                object = elf::rename_symbols(&object, |name| {
                    let is_own = registered.contains(name)
                        || entries::is_entry_symbol(name)
                        || name.contains(DEVICE_STUB);
                    is_own.then(|| own.name(name))
                })
                .map_err(rewritten)?;
            }
            let name = format!("{section}_{}", own.suffix);
            object = elf::rename_section(&object, &section, &name).map_err(rewritten)?;
        }
        let symbols: Vec<String> = {
            let file = object::File::parse(object.as_slice()).map_err(wrong)?;
            let defined = file
                .symbols()
                .filter(|symbol| symbol.is_global() && !symbol.is_undefined());
            defined
                .map(|symbol| symbol.name().map(str::to_owned))
                .collect::<Result<_, _>>()
                .map_err(wrong)?
        };
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let name = format!("{}.o", self.name);
        let member = NewMember {
            name: &name,
            bytes: &object,
            symbols: &symbols,
        };
        task::write(&self.library, &archive::write(&[member])).map_err(error::io(&self.library))?;
        Ok(Done::default())
    }
}

impl Own {
    /// The name of a symbol that is this module's own.
    pub(super) fn name(&self, symbol: &str) -> String {
        match self.renames_symbols {
            true => format!("{symbol}.{}", self.suffix),
            false => symbol.to_owned(),
        }
    }
}

/// Which entry section an object has.
fn entry_section(object: &[u8]) -> object::Result<String> {
    let file = object::File::parse(object)?;
    let names = file.sections().filter_map(|section| section.name().ok());
    // The objects joined in it had one, or there would have been no registration.
    let found = names
        .into_iter()
        .find(|name| entries::is_entry_section(name));
    Ok(found.unwrap_or_default().to_owned())
}

/// The symbols that entries in `section` refer to, as far as other objects see them.
fn registered(object: &[u8], section: &str) -> object::Result<BTreeSet<String>> {
    let file = object::File::parse(object)?;
    let mut names = BTreeSet::new();
    let sections = file.sections();
    for section in sections.filter(|found| found.name() == Ok(section)) {
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index)?;
            if symbol.is_global() && symbol.is_definition() {
                names.insert(symbol.name()?.to_owned());
            }
        }
    }
    Ok(names)
}
