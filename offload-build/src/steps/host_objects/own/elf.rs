//! The own names of a joined ELF object.

use crate::steps::host_objects::own::launchers::Launchers;
use crate::steps::host_objects::own::{DEVICE_STUB, Own, Symbols, stub_of};
use offload_build_core::readable::Readable;
use offload_formats::container::elf::{
    self, Binding, Elf, ElfSymbol, ElfWriteError, Machine, SymbolPlace, SymbolTable,
};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use offload_formats::format::pieces::{self, Piece};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// Prefixes of what nvcc's objects define for each other by names of their sources, weak because whatever registers a
/// program's kernels
/// looks for it there.
const NVCC: [&str; 3] = ["__fatbinwrap_", "__cudaRegisterLinkedBinary_", "hostRef"];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

impl Own {
    pub(crate) fn apply_to_elf(&self, object: &Readable) -> Result<Vec<Piece>> {
        let (own, separate) = self.of(object)?;
        let rename = |name: &str| own.contains(name).then(|| self.name(name));
        let renamed = elf::rename_symbols(object.data(), 0..object.size(), rename)?;
        let renamed = edited_again(object, renamed, |object| {
            elf::separate_symbols(object.data(), 0..object.size(), &separate)
        })?;
        match self.symbols {
            Symbols::Deferred | Symbols::OfNvcc | Symbols::OfStubs => return Ok(renamed),
            Symbols::None | Symbols::OfEntries => {}
        }
        let section = entry_section(object)?;
        let name = format!("{section}_{}", self.suffix);
        edited_again(object, renamed, |object| {
            elf::rename_section(object.data(), 0..object.size(), &section, &name)
        })
    }

    /// Returns the module's own symbols that an object defines, and the names that weak functions get because they lead to them,
    /// by their indices.
    fn of(&self, object: &Readable) -> Result<(BTreeSet<String>, BTreeMap<u32, String>)> {
        let file = Elf::parse(object.data(), 0..object.size())?;
        let symbols = file.symbols(SymbolTable::All)?;
        let launchers = Launchers::new(&file, &symbols)?;
        let own = self.symbols_of(&file, &symbols, &launchers)?;
        let mut separate = BTreeMap::new();
        for index in launchers.find(&own) {
            if let Some(symbol) = symbols.get(index as usize) {
                let name = std::str::from_utf8(symbol.name)?;
                separate.insert(index, self.separate_name(name));
            }
        }
        Ok((own, separate))
    }

    fn symbols_of(
        &self,
        file: &Elf<'_, &ReadCache>,
        symbols: &[ElfSymbol<'_>],
        launchers: &Launchers<'_>,
    ) -> Result<BTreeSet<String>> {
        let registered = match self.symbols {
            Symbols::None | Symbols::Deferred => return Ok(BTreeSet::new()),
            Symbols::OfEntries => registered(file, symbols)?,
            Symbols::OfStubs => kernels(symbols)?,
            Symbols::OfNvcc => BTreeSet::new(),
        };
        let mut own = BTreeSet::new();
        for (index, symbol) in (0..).zip(symbols) {
            let name = std::str::from_utf8(symbol.name)?;
            let is_own = name.contains(DEVICE_STUB)
                || match self.symbols {
                    Symbols::OfNvcc => {
                        launchers.is_registered(index)
                            || NVCC.iter().any(|prefix| name.starts_with(prefix))
                            || is_of_file(symbol, name, file.machine)
                    }
                    _ => {
                        registered.contains(name)
                            || OffloadEntry::name_of(name.as_bytes()).is_some()
                    }
                };
            if is_own && is_defined_for_others(symbol) {
                own.insert(name.to_owned());
            }
        }
        Ok(own)
    }
}

/// Tells whether a symbol belongs to its file, although nvcc lets other objects see it: other modules may have it, too.
fn is_of_file(symbol: &ElfSymbol<'_>, name: &str, machine: u16) -> bool {
    // Anonymous namespaces have names, which depend on the file, and are hidden since CUDA 13.0. What GCC has in its own is local.
    let is_unnamed = name.contains("_GLOBAL__N_");
    // GCC for AArch64 addresses variables by their distance from others, so that the registrar does not name them.
    let is_variable = symbol.hidden && symbol.is_object() && machine != Machine::X86_64.number;
    is_unnamed || is_variable
}

/// Returns an object with one more edit, after the edits that `pieces` are.
fn edited_again(
    object: &Readable,
    pieces: Vec<Piece>,
    edit: impl FnOnce(&Readable) -> std::result::Result<Vec<Piece>, ElfWriteError>,
) -> Result<Vec<Piece>> {
    let object = Readable::edited(object.path(), pieces.clone())?;
    let edited = edit(&object);
    object.check()?;
    let edited = pieces::replace_inputs(&edited?, &[&pieces]);
    Ok(edited.expect("an edit copies parts of the edited object"))
}

/// Returns the name of an object's entry section.
fn entry_section(object: &Readable) -> Result<String> {
    let file = Elf::parse(object.data(), 0..object.size())?;
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

fn is_defined_for_others(symbol: &ElfSymbol<'_>) -> bool {
    symbol.binding != Binding::Local && symbol.place != SymbolPlace::Undefined
}

/// The symbols that entries refer to, as far as other objects see them.
fn registered(file: &Elf<'_, &ReadCache>, symbols: &[ElfSymbol<'_>]) -> Result<BTreeSet<String>> {
    let section_names = file.names()?;
    let mut names = BTreeSet::new();
    for section in file.sections().skip(1) {
        // A name that cannot be read is not skipped: the symbols of its entries would keep names that others have.
        if EntryLayout::section_named(section_names.of(&section)?).is_none() {
            continue;
        }
        for index in file.referred(section.index)? {
            let symbol = usize::try_from(index).ok().and_then(|at| symbols.get(at));
            let symbol =
                symbol.ok_or_else(|| format!("relocation against missing symbol {index}"))?;
            if is_defined_for_others(symbol) {
                names.insert(std::str::from_utf8(symbol.name)?.to_owned());
            }
        }
    }
    Ok(names)
}

/// Returns the names of the kernels that functions of an object launch.
fn kernels(symbols: &[ElfSymbol<'_>]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for symbol in symbols {
        names.extend(stub_of(std::str::from_utf8(symbol.name)?));
    }
    Ok(names)
}
