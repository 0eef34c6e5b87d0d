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
use std::ops::Range;
use std::path::Path;

use offload_formats::escape::terminal;

use crate::linker_wrapper::choose::host_search::{
    CommonStorage, HostSearch, Roots, SearchRules, SearchedContent, SearchedFile,
};
use crate::linker_wrapper::choose::host_units::{HostUnits, UnitReader, always, indexed};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs};
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::installed::host_linker::HostLinker;
use crate::linker_wrapper::line::arguments::{Arguments, Item, Position};
use crate::linker_wrapper::line::elf_linker::ElfLinker;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::report::fates::Report;

/// First release of lld without `--fortran-common` by default.
const WITHOUT_FORTRAN_COMMON: u32 = 15;

/// Tells for each unit whether the host link loads it.
///
/// # Errors
///
/// Fails if an input cannot be opened again.
pub(super) fn linked_units(
    inputs: &Inputs,
    images: &[Image],
    arguments: &Arguments,
    linker: &HostLinker,
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
        taken = HostUnits::read(inputs, arguments, &mut unread)?.linked(linker, &mut unread)?;
    }
    if let Some(name) = unread {
        report.warnings.push(format!(
            "the symbols of {name} cannot be read: images of all archive members are linked"
        ));
        return Ok(inputs.units().map(|_| true).collect());
    }
    Ok(taken)
}

impl HostUnits<'_> {
    fn linked(
        &self,
        linker: &HostLinker,
        unread: &mut Option<String>,
    ) -> Result<Vec<bool>, LinkError> {
        let files = self.files();
        let mut listed = vec![Vec::new(); self.units.len()];
        for file in &files {
            let SearchedContent::Searched(units) = &file.content else {
                continue;
            };
            for unit in units.clone() {
                let (file, of) = self.units[unit];
                listed[unit] = match &self.names[unit] {
                    Some(names) => names.symbols().defined,
                    None => indexed(file, of)?.collect(),
                };
            }
        }
        let search = HostSearch::new(listed);
        let units = self.units.iter().zip(&self.names);
        let loaded = units.filter(|((file, _), _)| always(file));
        let defined = loaded
            .flat_map(|(_, names)| names)
            .flat_map(|names| names.symbols().defined);
        let shared = self.libraries.values();
        let defined = defined.chain(shared.flat_map(|names| names.symbols().defined));
        let is_asked = search.depends_on_linker(defined) || !self.arguments.wrapped.is_empty();
        let elf = |elf_linker| SearchRules::Elf {
            linker: elf_linker,
            fortran_common: self.arguments.fortran_common.unwrap_or_else(|| {
                let mut names = self.names.iter().flatten();
                let is_open = elf_linker == ElfLinker::Lld
                    && names.any(|names| search.knows(&names.symbols().common));
                is_open && linker.lld_release(self.arguments) < Some(WITHOUT_FORTRAN_COMMON)
            }),
        };
        let rules = match self.arguments.family {
            Family::MinGw => SearchRules::Coff(CommonStorage::NeedsValue),
            Family::Coff => SearchRules::Coff(CommonStorage::IsDefined),
            Family::Gnu if is_asked => elf(linker.elf(self.arguments)),
            Family::Gnu | Family::Darwin => elf(ElfLinker::Unknown),
        };
        let mut reader = UnitReader {
            of: self,
            wrap_last: rules.wrap_last(),
            unread,
        };
        // Options name symbols as they are, whatever `--wrap` says.
        let named = self.arguments.roots.iter().chain(&self.inputs.roots);
        let named = named.map(|root| Cow::Borrowed(root.as_encoded_bytes()));
        let of_runtimes = self.roots_of_runtimes().into_iter();
        let of_runtimes = of_runtimes.map(|name| reader.meant(name));
        let roots: Vec<Cow<'_, [u8]>> = named.chain(of_runtimes).collect();
        let wrapped = self.arguments.wrapped.iter();
        let wrapped: Vec<&[u8]> = wrapped.map(|name| name.as_encoded_bytes()).collect();
        let wraps = wrapped.iter().map(|name| [b"__wrap_", *name].concat());
        let wraps: Vec<Vec<u8>> = wraps.collect();
        let roots = Roots {
            first: roots.iter().map(Cow::as_ref).collect(),
            last: wraps.iter().map(Vec::as_slice).zip(wrapped).collect(),
        };
        search.run(rules, &files, roots, &mut reader)
    }

    /// Returns the functions that start files and runtimes call. An ELF linker's own command line has these files.
    fn roots_of_runtimes(&self) -> Vec<&'static [u8]> {
        let arguments = self.arguments;
        let is_windows = matches!(arguments.family, Family::MinGw | Family::Coff);
        let mut roots: Vec<&[u8]> = Vec::new();
        if !arguments.relocatable {
            roots.push(b"_start");
        }
        if !arguments.relocatable && (is_windows || arguments.position == Position::Driver) {
            roots.push(b"main");
        }
        if is_windows {
            roots.extend([&b"DllMain"[..], b"WinMain", b"wWinMain", b"wmain"]);
        }
        if arguments.mentions("-fsanitize=") && arguments.mentions("fuzzer") {
            roots.push(b"LLVMFuzzerTestOneInput");
        }
        roots
    }

    /// Returns what the linker does with each file.
    fn files(&self) -> Vec<SearchedFile> {
        let mut files = Vec::new();
        let mut known: HashMap<&Path, Range<usize>> = HashMap::new();
        let mut start = 0;
        for (number, file) in self.inputs.files.iter().enumerate() {
            let units = start..start + file.units.len();
            start = units.end;
            let content = match file.kind {
                FileKind::SharedObject => SearchedContent::Library {
                    number,
                    as_needed: file.as_needed || self.arguments.is_as_needed(file.item),
                },
                _ if always(file) => SearchedContent::Loaded(units),
                // An archive that is named again has the same members.
                _ => SearchedContent::Searched(known.entry(&file.path).or_insert(units).clone()),
            };
            files.push(SearchedFile {
                content,
                // Files that a script names are searched together.
                group: self.arguments.group(file.item),
            });
        }
        files
    }
}
