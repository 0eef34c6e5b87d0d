//! The own names of a joined ELF object.

use crate::readable::Readable;
use crate::steps::host_objects::own::{DEVICE_STUB, Own, Symbols, stub_of};
use object::elf as elf_names;
use object::{Object, ObjectSection, ObjectSymbol, ReadRef, RelocationTarget, SymbolFlags};
use offload_formats::container::elf;
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use offload_formats::format::pieces::{self, Piece};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// Prefixes of what nvcc's objects define for each other by names of their sources, weak because whatever registers a
/// program's kernels
/// looks for it there.
const NVCC: [&str; 3] = ["__fatbinwrap_", "__cudaRegisterLinkedBinary_", "hostRef"];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

impl Own {
    pub(crate) fn apply_to_elf(&self, object: &Readable) -> Result<Vec<Piece>> {
        let symbols = self.of(object.path())?;
        let rename = |name: &str| symbols.contains(name).then(|| self.name(name));
        let renamed = elf::rename_symbols(object.data(), 0..object.size(), rename)?;
        if matches!(self.symbols, Symbols::OfNvcc | Symbols::OfStubs) {
            return Ok(renamed);
        }
        let object = Readable::edited(object.path(), renamed.clone())?;
        let section = entry_section(&object)?;
        let name = format!("{section}_{}", self.suffix);
        let pieces = elf::rename_section(object.data(), 0..object.size(), &section, &name);
        object.check()?;
        let pieces = pieces::replace_inputs(&pieces?, &[&renamed]);
        Ok(pieces.expect("the section is renamed in these pieces"))
    }

    /// Returns the module's own symbols that an object defines.
    fn of(&self, object: &Path) -> Result<BTreeSet<String>> {
        let data = object::ReadCache::new(File::open(object)?);
        let file = object::File::parse(&data)?;
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
fn entry_section(object: &Readable) -> Result<String> {
    let file = elf::Elf::parse(object.data(), 0..object.size())?;
    let names = file.names()?;
    let named = file.sections().skip(1);
    let mut named = named.filter_map(|section| std::str::from_utf8(names.of(&section).ok()?).ok());
    let found = named.find(|name| is_entry_section(name));
    // The objects joined in it had one, or there would have been no registration.
    let found = found.ok_or("the joined object has no section of offload entries")?;
    Ok(found.to_owned())
}

fn is_entry_section(name: &str) -> bool {
    EntryLayout::section_named(name.as_bytes()).is_some()
}

/// The symbols that entries refer to, as far as other objects see them.
fn registered<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for section in file.sections() {
        // A name that cannot be read is not skipped: the symbols of its entries would keep names that others have.
        if EntryLayout::section_named(section.name_bytes()?).is_none() {
            continue;
        }
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
fn kernels<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for symbol in file.symbols() {
        names.extend(stub_of(symbol.name()?));
    }
    Ok(names)
}
