//! The own names of COFF objects, which nothing joins: what one has under such a name, the others refer to by it.
//!
//! The symbol at an offload entry gets the name that its alias has elsewhere. When
//! several objects have an entry (of a template's kernel), the first has that name, and is registered. Of a module that
//! the last link registers only aliases get new names: for `lld-link` two of one name are an error.

use crate::steps::host_objects::entries::coff::{entries, entry_sections};
use crate::steps::host_objects::own::{DEVICE_STUB, Own, Symbols, stub_of};
use offload_build_core::error::Error;
use offload_build_core::readable::Readable;
use offload_formats::container::coff::{CoffError, Object};
use offload_formats::format::pieces::Piece;
use std::collections::BTreeSet;
use std::path::Path;

/// Section of entries whose start and end are unused.
const ENTRIES: &str = ".rdata$offload_entries";

impl Own {
    pub(crate) fn apply_to_coff(&self, objects: &[Readable]) -> Result<Vec<Vec<Piece>>, Error> {
        let wrong = |path: &Path| {
            let path = path.display().to_string();
            move |error: CoffError| Error::because(path, error)
        };
        let mut read = Vec::new();
        for file in objects {
            read.push((file.path(), file.parse(Object::read)?));
        }
        let mut own = BTreeSet::new();
        let is_own = self.symbols != Symbols::None;
        let objects = read.iter().filter(|_| is_own);
        objects.for_each(|(_, object)| defined(object, self.symbols, &mut own));
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (number, (path, mut object)) in (0..).zip(read) {
            let names = self.names(number, &object, &own, &mut seen);
            let sections = self.sections(&object, &own);
            names
                .iter()
                .for_each(|(index, name)| object.rename_symbol(*index, name));
            sections
                .iter()
                .for_each(|(number, name)| object.rename_section(*number, name));
            all.push(object.write().map_err(wrong(path))?);
        }
        Ok(all)
    }

    /// New names of sections, with their numbers. The last one of a section counts.
    fn sections(&self, object: &Object<'_>, own: &BTreeSet<String>) -> Vec<(usize, String)> {
        let mut names = Vec::new();
        for (number, section) in (1..).zip(object.sections()) {
            let name = String::from_utf8_lossy(section.name);
            // MinGW: where several objects may have a function, its sections are called by it, and its linker takes one
            // of each name.
            let called = name.split_once('$');
            if let Some((start, symbol)) = called.filter(|(_, symbol)| own.contains(*symbol)) {
                names.push((number, format!("{start}${}", self.name(symbol))));
            }
        }
        let entries = entry_sections(object).filter(|_| self.symbols != Symbols::None);
        names.extend(entries.map(|(number, ..)| (number, ENTRIES.to_owned())));
        names
    }

    /// New names, with the indices of the symbols of the object of that number. The last one of a symbol counts. `seen` are
    /// the entries of the objects before.
    fn names(
        &self,
        number: usize,
        object: &Object<'_>,
        own: &BTreeSet<String>,
        seen: &mut BTreeSet<String>,
    ) -> Vec<(usize, String)> {
        let mut names = Vec::new();
        for symbol in object.symbols().filter(|symbol| symbol.is_external) {
            let name = String::from_utf8_lossy(symbol.name);
            if own.contains(&*name) {
                names.push((symbol.index, self.name(&name)));
            }
        }
        for entry in entries(object) {
            let name = self.name(&entry.symbol);
            if let Some(alias) = entry.alias {
                let end = format!("{}.alias{number}", self.suffix);
                names.push((alias, format!("{}.{end}", entry.symbol)));
            }
            if self.symbols == Symbols::None {
                continue;
            }
            let is_first = seen.insert(entry.symbol);
            let name = match is_first {
                true => name,
                false => format!("{name}.{number}"),
            };
            names.push((entry.at, name));
        }
        names
    }
}

/// Adds what an object defines that is the module's own.
fn defined(object: &Object<'_>, symbols: Symbols, own: &mut BTreeSet<String>) {
    let mut referred = Vec::new();
    for (number, ..) in entry_sections(object) {
        referred.extend(object.referred(number));
    }
    referred.sort_unstable();
    let kernels: BTreeSet<String> = match symbols {
        Symbols::OfStubs => {
            let names = object.symbols();
            let names = names.map(|symbol| String::from_utf8_lossy(symbol.name).into_owned());
            names.filter_map(|name| stub_of(&name)).collect()
        }
        _ => BTreeSet::new(),
    };
    for symbol in object.symbols() {
        let name = String::from_utf8_lossy(symbol.name);
        let is_own = referred.binary_search(&symbol.index).is_ok()
            || name.contains(DEVICE_STUB)
            || kernels.contains(&*name);
        if is_own && symbol.is_external && symbol.section.is_some() {
            own.insert(name.into_owned());
        }
    }
}
