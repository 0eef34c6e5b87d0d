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
    CommonStorage, HostSearch, Roots, SearchRules, SearchedContent, SearchedFile, SymbolReader,
};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs, Unit, UnitKind};
use crate::linker_wrapper::inputs::host_objects;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::symbols::{Names, Symbols};
use crate::linker_wrapper::line::arguments::{Arguments, Item, Load, Position};
use crate::linker_wrapper::line::elf_linker::{AskedLinker, ElfLinker};
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
    linker: &impl AskedLinker,
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
    inputs: &'a Inputs,
    units: Vec<(&'a InputFile, &'a Unit)>,
    /// Symbols of each unit that was read.
    names: Vec<Option<Names>>,
    /// Symbols of each shared library, by the number of its file.
    libraries: HashMap<usize, Names>,
    arguments: &'a Arguments,
}

impl<'a> HostUnits<'a> {
    /// Reads the symbols of the units that no index has, and of shared libraries. `unread` becomes the first that cannot be read.
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

    fn linked(
        &self,
        linker: &impl AskedLinker,
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
                is_open && linker.lld_release() < Some(WITHOUT_FORTRAN_COMMON)
            }),
        };
        let rules = match self.arguments.family {
            Family::MinGw => SearchRules::Coff(CommonStorage::NeedsValue),
            Family::Coff => SearchRules::Coff(CommonStorage::IsDefined),
            Family::Gnu if is_asked => elf(linker.elf_linker()),
            Family::Gnu | Family::Darwin => elf(ElfLinker::Unknown),
        };
        let mut reader = UnitReader {
            of: self,
            rules,
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

/// Reads the units of a link, the first time that each is loaded.
struct UnitReader<'u, 'a> {
    of: &'u HostUnits<'a>,
    rules: SearchRules,
    unread: &'u mut Option<String>,
}

impl UnitReader<'_, '_> {
    /// Returns the symbol that a reference to `name` leads to, which `--wrap` changes. lld changes references after it has read all
    /// files.
    fn meant<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let is_wrapped = |name: &[u8]| {
            let mut wrapped = self.of.arguments.wrapped.iter();
            wrapped.any(|other| other.as_encoded_bytes() == name)
        };
        let real = name.strip_prefix(b"__real_");
        match real.filter(|real| is_wrapped(real)) {
            Some(real) => Cow::Borrowed(real),
            None if !self.rules.wrap_last() && is_wrapped(name) => {
                Cow::Owned([b"__wrap_", name].concat())
            }
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
}

impl SymbolReader<LinkError> for UnitReader<'_, '_> {
    fn unit(&mut self, unit: usize, pass: &mut dyn FnMut(&Symbols<'_>)) -> Result<(), LinkError> {
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

    fn library(&mut self, library: usize, pass: &mut dyn FnMut(&Symbols<'_>)) {
        if let Some(names) = self.of.libraries.get(&library) {
            self.pass(names, pass);
        }
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
