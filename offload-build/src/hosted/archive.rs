//! The static library of a module with host code.

use super::entries;
use crate::container::archive::{self, NewMember};
use crate::container::elf;
use crate::error::{self, Error};
use crate::toolchain::task::{self, Done};
use object::elf as elf_names;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolFlags};
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
    /// Whose symbols get it: two versions of a crate have the same.
    pub(super) symbols: Symbols,
}

/// The symbols of a module that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbols {
    /// None: OpenMP's kernels have names of their file.
    None,
    /// What the offload entries name, and the entries.
    OfEntries,
    /// What nvcc hides from other objects, or names for them alone.
    OfNvcc,
}

/// In the names of functions that launch a kernel.
const DEVICE_STUB: &str = "__device_stub__";
/// What nvcc's objects have for each other by names of their sources, and weak, as whatever registers a program's kernels
/// looks for it there.
const NVCC: [&str; 3] = ["__fatbinwrap_", "__cudaRegisterLinkedBinary_", "hostRef"];

impl Archive {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let mut object = fs::read(&self.object).map_err(error::io(&self.object))?;
        let wrong = |error| Error::because(self.object.display(), error);
        if let Some(own) = &self.own {
            let rewritten = |error| Error::because(self.object.display(), error);
            let symbols = own.of(&object).map_err(wrong)?;
            let rename = |name: &str| symbols.contains(name).then(|| own.name(name));
            object = elf::rename_symbols(&object, rename).map_err(rewritten)?;
            if own.symbols != Symbols::OfNvcc {
                let section = entry_section(&object).map_err(wrong)?;
                let name = format!("{section}_{}", own.suffix);
                object = elf::rename_section(&object, &section, &name).map_err(rewritten)?;
            }
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
        match self.symbols {
            Symbols::None => symbol.to_owned(),
            Symbols::OfEntries | Symbols::OfNvcc => format!("{symbol}.{}", self.suffix),
        }
    }

    /// Those that an object defines.
    fn of(&self, object: &[u8]) -> object::Result<BTreeSet<String>> {
        let file = object::File::parse(object)?;
        let registered = match self.symbols {
            Symbols::None => return Ok(BTreeSet::new()),
            Symbols::OfEntries => registered(&file)?,
            Symbols::OfNvcc => BTreeSet::new(),
        };
        let mut own = BTreeSet::new();
        for symbol in file.symbols() {
            let name = symbol.name()?;
            let is_own = match self.symbols {
                Symbols::OfNvcc => {
                    let SymbolFlags::Elf { st_other, .. } = symbol.flags() else {
                        continue;
                    };
                    let is_hidden = st_other.visibility() == elf_names::STV_HIDDEN;
                    is_hidden || NVCC.iter().any(|prefix| name.starts_with(prefix))
                }
                _ => {
                    registered.contains(name)
                        || entries::is_entry_symbol(name)
                        || name.contains(DEVICE_STUB)
                }
            };
            if is_own && symbol.is_global() && !symbol.is_undefined() {
                own.insert(name.to_owned());
            }
        }
        Ok(own)
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

/// The symbols that entries refer to, as far as other objects see them.
fn registered(file: &object::File<'_>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let is_entries = |name: object::Result<&str>| name.is_ok_and(entries::is_entry_section);
    let sections = file.sections();
    for section in sections.filter(|section| is_entries(section.name())) {
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
