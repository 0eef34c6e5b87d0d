//! Weak functions of a joined ELF object that lead to a module's kernels.
//!
//! A template or an `inline` function of C++ is a weak symbol in a COMDAT group, and a program has one for all its
//! objects. If it launches kernels, each module needs its own, since kernels are the module's own.
//! The same applies to functions that call such a function, and to virtual tables that contain it.
//!
//! Relocations tell what refers to what. They say nothing about calls inside a section, and do not name local functions. So
//! all code of a section that other objects do not see is one part here: a function may be separated without need.

use crate::steps::host_objects::own::DEVICE_STUB;
use crate::steps::task::regions;
use offload_formats::container::elf::{
    Binding, Elf, ElfRelocation, ElfSection, ElfSymbol, ElfWriteError, SymbolPlace,
};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::offload_entry::EntryLayout;
use std::collections::{BTreeMap, BTreeSet};

/// Names of functions in which compilers register kernels and variables. The last one calls nvcc's callback, and contains it where
/// the host's compiler optimizes.
const REGISTRARS: [&str; 4] = [
    "__hip_register_globals",
    "__cuda_register_globals",
    "__nv_cudaEntityRegisterCallback",
    "__sti____cudaRegisterAll",
];

/// Largest distance between the place of a relocation and the end of its instruction, in bytes. On x86-64 the distance is part of
/// the addend.
const INSTRUCTION_END: i64 = 8;

/// A part of an object that refers to others as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A COMDAT group, by its number.
    Group(usize),
    /// Functions of a section that other objects do not see.
    Code(u32),
    /// A variable that other objects do not see, by its symbol.
    Variable(u32),
    /// Data of a section without symbols.
    Unnamed(u32),
    /// A symbol outside of groups that other objects see: it is unique in a program, and its references do not count.
    Unique(u32),
}

/// References between the symbols of an object.
pub(super) struct Launchers<'o> {
    object: Object<'o>,
    references: References,
}

impl<'o> Launchers<'o> {
    pub(super) fn new(
        file: &Elf<'_, &ReadCache>,
        symbols: &'o [ElfSymbol<'o>],
    ) -> Result<Self, ElfWriteError> {
        let object = Object::new(file, symbols)?;
        let references = object.references(file)?;
        Ok(Self { object, references })
    }

    /// Returns true for a symbol, by its index, that a registrar refers to: what stands for a kernel or a variable of the device, and what
    /// the registrar calls.
    pub(super) fn is_registered(&self, symbol: u32) -> bool {
        self.references.symbols.contains(&symbol)
    }

    /// Returns the indices of the weak functions and constants in COMDAT groups that refer to a symbol of the module, also
    /// through others. `own` are the names of the module's own symbols, which are not among them.
    pub(super) fn find(&self, own: &BTreeSet<String>) -> Vec<u32> {
        let Self { object, references } = self;
        let symbols = object.symbols;
        let is_own = |symbol: &ElfSymbol<'_>| {
            let name = std::str::from_utf8(symbol.name);
            is_of_module(symbol.name) || name.is_ok_and(|name| own.contains(name))
        };
        let defined = (0..).zip(symbols);
        let defined = defined.filter(|(_, symbol)| symbol.place != SymbolPlace::Undefined);
        let mut found: BTreeSet<Part> = defined
            .filter(|(_, symbol)| is_own(symbol))
            .filter_map(|(index, _)| object.part(index))
            .collect();
        found.extend(&references.registered);
        let mut next: Vec<Part> = found.iter().copied().collect();
        while let Some(part) = next.pop() {
            for user in references.users.get(&part).into_iter().flatten() {
                if found.insert(*user) {
                    next.push(*user);
                }
            }
        }
        let names: BTreeSet<&[u8]> = symbols.iter().map(|symbol| symbol.name).collect();
        // What stands for a device variable is registered by its address, so it is the module's own as well.
        let is_separate = |(index, symbol): &(u32, &ElfSymbol<'_>)| {
            let part = object.part(*index);
            matches!(part, Some(Part::Group(_)))
                && part.is_some_and(|part| found.contains(&part))
                && symbol.binding == Binding::Weak
                && (symbol.is_function()
                    || object.is_constant(symbol, &names)
                    || self.is_registered(*index))
                && !is_own(symbol)
        };
        let separate = (0..).zip(symbols).filter(is_separate);
        separate.map(|(index, _)| index).collect()
    }
}

/// Returns true for names that compilers give to a module's kernels: functions that launch them, and OpenMP's regions and
/// pointers to variables.
fn is_of_module(name: &[u8]) -> bool {
    contains(name, DEVICE_STUB) || regions::is_own(name)
}

fn contains(name: &[u8], part: &str) -> bool {
    name.windows(part.len())
        .any(|window| window == part.as_bytes())
}

/// An object, with the places of its symbols.
struct Object<'o> {
    symbols: &'o [ElfSymbol<'o>],
    sections: Vec<ElfSection>,
    /// Number of the COMDAT group of a section.
    groups: BTreeMap<u32, usize>,
    /// Symbols with a size in each section, with the offsets of their start and end.
    places: BTreeMap<u32, Places>,
    /// Indices of the functions that register kernels.
    registrars: BTreeSet<u32>,
}

/// Symbols of a section by start, each with the largest end up to it.
#[derive(Default)]
struct Places(Vec<(u64, u64, u64, u32)>);

impl Places {
    /// Lists the symbols that overlap the bytes from `start` to `last`.
    fn overlapping(&self, start: u64, last: u64) -> impl Iterator<Item = u32> + '_ {
        let count = self.0.partition_point(|(from, ..)| *from <= last);
        let places = self.0.get(..count).unwrap_or_default();
        let near = places.iter().rev();
        let near = near.take_while(move |(_, _, largest, _)| *largest > start);
        let near = near.filter(move |(_, end, ..)| *end > start);
        near.map(|(.., symbol)| *symbol)
    }
}

/// References in an object.
#[derive(Default)]
struct References {
    /// The parts that refer to a part. Those of unique symbols do not count.
    users: BTreeMap<Part, BTreeSet<Part>>,
    /// The parts whose addresses the runtime knows: what offload entries and registrars refer to.
    registered: BTreeSet<Part>,
    /// Indices of the symbols that registrars refer to.
    symbols: BTreeSet<u32>,
}

impl<'o> Object<'o> {
    fn new(
        file: &Elf<'_, &ReadCache>,
        symbols: &'o [ElfSymbol<'o>],
    ) -> Result<Self, ElfWriteError> {
        let mut groups = BTreeMap::new();
        for (number, group) in file.comdat_groups()?.into_iter().enumerate() {
            groups.extend(group.members.into_iter().map(|member| (member, number)));
        }
        let mut places: BTreeMap<u32, Places> = BTreeMap::new();
        let mut registrars = BTreeSet::new();
        for (index, symbol) in (0..).zip(symbols) {
            if REGISTRARS.iter().any(|part| contains(symbol.name, part)) {
                registrars.insert(index);
            }
            if let (SymbolPlace::Section(section), 1..) = (symbol.place, symbol.size) {
                let end = symbol.value.saturating_add(symbol.size);
                let places = places.entry(section).or_default();
                places.0.push((symbol.value, end, end, index));
            }
        }
        for places in places.values_mut() {
            places.0.sort_unstable();
            let mut largest = 0;
            for (_, end, up_to, _) in &mut places.0 {
                largest = largest.max(*end);
                *up_to = largest;
            }
        }
        Ok(Self {
            symbols,
            sections: file.sections().collect(),
            groups,
            places,
            registrars,
        })
    }

    fn section(&self, index: u32) -> Option<&ElfSection> {
        self.sections.get(usize::try_from(index).ok()?)
    }

    fn symbol(&self, index: u32) -> Option<&'o ElfSymbol<'o>> {
        self.symbols.get(usize::try_from(index).ok()?)
    }

    fn is_executable(&self, section: u32) -> bool {
        self.section(section).is_some_and(ElfSection::executable)
    }

    /// Returns the part that a defined symbol is in.
    fn part(&self, index: u32) -> Option<Part> {
        let symbol = self.symbol(index)?;
        let SymbolPlace::Section(section) = symbol.place else {
            return None;
        };
        Some(match self.groups.get(&section) {
            Some(group) => Part::Group(*group),
            None if symbol.binding != Binding::Local => Part::Unique(index),
            None if self.is_executable(section) => Part::Code(section),
            None if symbol.is_section() => Part::Unnamed(section),
            None => Part::Variable(index),
        })
    }

    /// Returns the parts that may contain one of the bytes from `start` to `last` of a section.
    fn parts(&self, section: u32, start: u64, last: u64) -> Vec<Part> {
        if let Some(group) = self.groups.get(&section) {
            return vec![Part::Group(*group)];
        }
        let places = self.places.get(&section);
        let symbols = places.map(|places| places.overlapping(start, last));
        let parts = symbols.into_iter().flatten();
        let parts: Vec<Part> = parts.filter_map(|symbol| self.part(symbol)).collect();
        match (parts.is_empty(), self.is_executable(section)) {
            (false, _) => parts,
            (true, true) => vec![Part::Code(section)],
            (true, false) => vec![Part::Unnamed(section)],
        }
    }

    /// Returns the parts that a relocation may refer to.
    fn targets(&self, relocation: &ElfRelocation) -> Vec<Part> {
        let part = self.part(relocation.symbol);
        let symbol = self.symbol(relocation.symbol);
        let is_section = symbol.is_some_and(ElfSymbol::is_section);
        match (part, relocation.addend) {
            (Some(Part::Unnamed(section)), Some(addend)) if is_section => {
                let last = addend.saturating_add(INSTRUCTION_END);
                let [start, last] = [addend, last].map(|at| u64::try_from(at).unwrap_or(0));
                self.parts(section, start, last)
            }
            (Some(Part::Unnamed(section)), None) => self.parts(section, 0, u64::MAX),
            _ => part.into_iter().collect(),
        }
    }

    /// Reads what refers to what.
    fn references(&self, file: &Elf<'_, &ReadCache>) -> Result<References, ElfWriteError> {
        let names = file.names()?;
        let mut references = References::default();
        for table in &self.sections {
            let Some(section) = self.section(table.info) else {
                continue;
            };
            if !section.allocated() {
                continue;
            }
            let is_entries = EntryLayout::section_named(names.of(section)?).is_some();
            for relocation in file.relocations(table)? {
                let targets = self.targets(&relocation);
                if is_entries {
                    // What others see is known by name. The names of entries are data without symbols.
                    let is_local = |part: &Part| matches!(part, Part::Code(_) | Part::Variable(_));
                    references
                        .registered
                        .extend(targets.into_iter().filter(is_local));
                    continue;
                }
                let at = relocation.offset;
                if self.is_registrar(section.index, at) {
                    // Code that is registered launches kernels, which its name tells; the rest is the registrar's own.
                    let is_registered =
                        |part: &&Part| !matches!(part, Part::Unnamed(_) | Part::Code(_));
                    references
                        .registered
                        .extend(targets.iter().filter(is_registered));
                    references.symbols.insert(relocation.symbol);
                }
                let sources = self.parts(section.index, at, at);
                let is_reached = |part: &&Part| !matches!(part, Part::Unique(_));
                for target in targets {
                    let users = references.users.entry(target).or_default();
                    users.extend(sources.iter().filter(is_reached));
                }
            }
        }
        Ok(references)
    }

    /// Returns true for a place in a function that registers kernels.
    fn is_registrar(&self, section: u32, offset: u64) -> bool {
        let places = self.places.get(&section);
        let places = places.filter(|_| !self.registrars.is_empty());
        let symbols = places.map(|places| places.overlapping(offset, offset));
        let mut symbols = symbols.into_iter().flatten();
        symbols.any(|symbol| self.registrars.contains(&symbol))
    }

    /// Returns true for a variable with a value in the file that no function sets when it first runs, such as a virtual
    /// table. `names` are those of all symbols.
    fn is_constant(&self, symbol: &ElfSymbol<'_>, names: &BTreeSet<&[u8]>) -> bool {
        let SymbolPlace::Section(section) = symbol.place else {
            return false;
        };
        let name = symbol.name.strip_prefix(b"_Z");
        let guard = name.map(|name| [b"_ZGV", name].concat());
        symbol.is_object()
            && self
                .section(section)
                .is_some_and(|section| !section.zeroed())
            && !guard.is_some_and(|guard| names.contains(&guard[..]))
    }
}
