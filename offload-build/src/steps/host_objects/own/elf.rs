//! The own names of a joined ELF object.

use crate::steps::host_objects::own::{DEVICE_STUB, Own, Symbols, stub_of};
use object::elf as elf_names;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolFlags};
use offload_formats::container::elf;
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use std::collections::BTreeSet;
use std::error::Error;

/// Prefixes of what nvcc's objects define for each other by names of their sources, weak because whatever registers a
/// program's kernels
/// looks for it there.
const NVCC: [&str; 3] = ["__fatbinwrap_", "__cudaRegisterLinkedBinary_", "hostRef"];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

impl Own {
    pub(crate) fn apply_to_elf(&self, object: &[u8]) -> Result<Vec<u8>> {
        let symbols = self.of(object)?;
        let rename = |name: &str| symbols.contains(name).then(|| self.name(name));
        let object = elf::rename_symbols(object, rename)?;
        if matches!(self.symbols, Symbols::OfNvcc | Symbols::OfStubs) {
            return Ok(object);
        }
        let section = entry_section(&object)?;
        let name = format!("{section}_{}", self.suffix);
        Ok(elf::rename_section(&object, &section, &name)?)
    }

    /// Returns the module's own symbols that an object defines.
    fn of(&self, object: &[u8]) -> object::Result<BTreeSet<String>> {
        let file = object::File::parse(object)?;
        let registered = match self.symbols {
            Symbols::None => return Ok(BTreeSet::new()),
            Symbols::OfEntries => registered(&file)?,
            Symbols::OfStubs => kernels(&file)?,
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
                        || OffloadEntry::name_of(name.as_bytes()).is_some()
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

/// Returns the name of an object's entry section.
fn entry_section(object: &[u8]) -> Result<String> {
    let file = object::File::parse(object)?;
    let names = file.sections().filter_map(|section| section.name().ok());
    let found = names.into_iter().find(|name| is_entry_section(name));
    // The objects joined in it had one, or there would have been no registration.
    let found = found.ok_or("the joined object has no section of offload entries")?;
    Ok(found.to_owned())
}

fn is_entry_section(name: &str) -> bool {
    EntryLayout::section_named(name.as_bytes()).is_some()
}

/// The symbols that entries refer to, as far as other objects see them.
fn registered(file: &object::File<'_>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let is_entries = |name: object::Result<&str>| name.is_ok_and(is_entry_section);
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

/// Returns the names of the kernels that functions of an object launch.
fn kernels(file: &object::File<'_>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for symbol in file.symbols() {
        names.extend(stub_of(symbol.name()?));
    }
    Ok(names)
}
