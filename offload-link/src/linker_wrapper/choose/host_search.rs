//! Goes through the files of the host link as its linker does, and tells which archive members that loads.
//!
//! | linker | a member is loaded |
//! |---|---|
//! | GNU ld, gold | if it defines what is undefined when its archive is searched: in the order of the files, a group until nothing is found |
//! | lld, and unknown linkers | as soon as both a reference and the first archive with a definition were read |
//! | lld for Windows | after all files were read: it is in the first archive, among those with a definition, that was there when the symbol was first needed, or came later |
//! | mold | if nothing defines the symbol but archives: the first strong definition, else the first weak one |
//!
//! Shared libraries define symbols, too: a member that defines one of these later is not loaded for it.
//!
//! GNU ld, lld with `--fortran-common` (the default up to LLVM 14), and mold also load a member that gives common storage a value. GNU ld goes through the archives again after LTO.
//! Random links compared these rules with each linker. Only names that archives have are kept: others decide nothing.

mod coff;
mod in_order;
mod lld;
mod mold;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

use crate::linker_wrapper::choose::host_units::UnitReader;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::symbols::Symbols;
use crate::linker_wrapper::line::elf_linker::ElfLinker;

/// A file of the host link, in the order of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchedFile {
    pub content: SearchedContent,
    /// Number of its group; files that are in none have numbers of their own.
    pub group: usize,
}

impl SearchedFile {
    /// Keeps a shared library's definitions whatever `--as-needed` says, as gold does.
    fn kept(mut self) -> Self {
        if let SearchedContent::Library { as_needed, .. } = &mut self.content {
            *as_needed = false;
        }
        self
    }
}

/// Use that a linker makes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchedContent {
    /// Loads all units.
    Loaded(Range<usize>),
    /// Loads the units that are needed.
    Searched(Range<usize>),
    /// Looks for the undefined symbols of the shared library with that number, and takes its definitions.
    Library {
        number: usize,
        /// Set if the library is dropped unless it defines what is undefined before it.
        as_needed: bool,
    },
}

/// Standing of a symbol in the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SymbolState {
    Unknown,
    Undefined,
    /// Defined by that unit of an archive, which nobody needs yet.
    Lazy(usize),
    /// Undefined, and a unit that will be loaded was chosen for it.
    Queued,
    /// Defined weakly, which common storage replaces.
    Weak,
    Common,
    Defined,
}

impl SymbolState {
    /// Returns the rank of a definition; those with a higher one replace it.
    fn rank(self) -> u8 {
        match self {
            Self::Unknown | Self::Undefined | Self::Lazy(_) | Self::Queued => 0,
            Self::Weak => 1,
            Self::Common => 2,
            Self::Defined => 3,
        }
    }
}

/// Origin of the references to a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ReferredBy {
    #[default]
    Nothing,
    /// Options: `--as-needed` counts no library for them.
    Options,
    Files,
    /// A hidden reference, which no shared library satisfies.
    Hidden,
}

/// The state of a link.
pub(super) struct HostSearch<'a> {
    /// Numbers of the symbols that archives have.
    numbers: HashMap<&'a [u8], usize>,
    /// Symbols of each unit that is loaded on demand.
    listed: Vec<Vec<usize>>,
    /// Units that define each symbol, in order.
    providers: Vec<Vec<usize>>,
    states: Vec<SymbolState>,
    referred: Vec<ReferredBy>,
    /// Symbols that are undefined or common.
    wanted: BTreeSet<usize>,
    loaded: Vec<bool>,
    /// Symbols with a strong definition, of each unit that was read for common storage.
    strong: HashMap<usize, Vec<usize>>,
    /// State of a symbol with a weak definition.
    weak: SymbolState,
    /// Set when a loaded unit is LTO code.
    has_lto: bool,
}

/// Rules by which a linker searches archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchRules {
    Elf {
        linker: ElfLinker,
        /// lld gives common storage a value from archives: by its option of that name, or by default up to LLVM 14.
        fortran_common: bool,
    },
    /// lld's for Windows. GNU ld for MinGW also gives common storage its value.
    Coff(CommonStorage),
}

impl SearchRules {
    /// Tells whether `--wrap` changes references after all files were read.
    pub(super) fn wrap_last(self) -> bool {
        use ElfLinker::{Gnu, Gold, Mold};
        let Self::Elf { linker, .. } = self else {
            return true;
        };
        !matches!(linker, Gnu | Gold | Mold)
    }
}

/// Symbols that must be defined.
#[derive(Clone, Debug)]
pub(super) struct Roots<'r> {
    /// Before the first file is read.
    pub first: Vec<&'r [u8]>,
    /// After the last file was read, each if a file has another symbol, for linkers that change references then.
    pub last: Vec<(&'r [u8], &'r [u8])>,
}

impl<'a> HostSearch<'a> {
    /// Returns a link in which nothing is loaded. `listed` are the symbols of each unit that is loaded on demand, and nothing of
    /// others.
    pub(super) fn new(listed: Vec<Vec<&'a [u8]>>) -> Self {
        let mut search = Self {
            numbers: HashMap::new(),
            loaded: vec![false; listed.len()],
            listed: Vec::with_capacity(listed.len()),
            providers: Vec::new(),
            states: Vec::new(),
            referred: Vec::new(),
            wanted: BTreeSet::new(),
            strong: HashMap::new(),
            weak: SymbolState::Weak,
            has_lto: false,
        };
        for (unit, names) in listed.into_iter().enumerate() {
            let mut symbols = Vec::with_capacity(names.len());
            for name in names {
                symbols.extend(referred_as(name).map(|name| search.number(name)));
            }
            for symbol in &symbols {
                search.providers[*symbol].push(unit);
            }
            search.listed.push(symbols);
        }
        search
    }

    fn number(&mut self, name: &'a [u8]) -> usize {
        let count = self.numbers.len();
        let symbol = *self.numbers.entry(name).or_insert(count);
        if symbol == count {
            self.providers.push(Vec::new());
            self.states.push(SymbolState::Unknown);
            self.referred.push(ReferredBy::Nothing);
        }
        symbol
    }

    /// Tells whether an archive has one of these symbols.
    pub(super) fn knows(&self, names: &[&[u8]]) -> bool {
        let mut names = names.iter();
        names.any(|name| self.numbers.contains_key(name))
    }

    /// Tells whether linkers may load different units: if several define a symbol, or a unit that
    /// is always loaded does: `defined` are the symbols of these.
    pub(super) fn depends_on_linker<'s>(
        &self,
        mut defined: impl Iterator<Item = &'s [u8]>,
    ) -> bool {
        let mut providers = self.providers.iter();
        providers.any(|units| units.len() > 1)
            || defined.any(|name| referred_as(name).any(|name| self.numbers.contains_key(name)))
    }

    /// Returns which units a linker loads if `roots` must be defined.
    ///
    /// # Errors
    ///
    /// Fails if a unit cannot be read.
    pub(super) fn run(
        mut self,
        rules: SearchRules,
        files: &[SearchedFile],
        roots: Roots<'a>,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<Vec<bool>, LinkError> {
        for (_, other) in &roots.last {
            self.number(other);
        }
        for root in &roots.first {
            self.want(root, ReferredBy::Options);
        }
        match rules {
            SearchRules::Elf {
                linker,
                fortran_common,
            } => self.run_elf(linker, fortran_common, files, &roots, reader)?,
            SearchRules::Coff(common) => {
                self.weak = SymbolState::Defined;
                let queue = self.queue_up(files, common, reader)?;
                self.load_queued(queue, reader)?;
                let needed = self.want_last(&roots);
                let mut queue = VecDeque::new();
                self.queue(needed, &mut queue);
                self.load_queued(queue, reader)?;
            }
        }
        Ok(self.loaded)
    }

    fn run_elf(
        &mut self,
        linker: ElfLinker,
        fortran_common: bool,
        files: &[SearchedFile],
        roots: &Roots<'_>,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        match linker {
            ElfLinker::Gnu => {
                self.go_through(files, CommonStorage::NeedsValue, reader)?;
                if self.has_lto {
                    self.go_through_again(files, reader)?;
                }
                Ok(())
            }
            ElfLinker::Gold => {
                let files: Vec<_> = files.iter().cloned().map(SearchedFile::kept).collect();
                self.go_through(&files, CommonStorage::IsDefined, reader)
            }
            ElfLinker::Mold => {
                self.weak = SymbolState::Defined;
                self.choose(files, reader)
            }
            ElfLinker::Lld | ElfLinker::Unknown => {
                let common = match fortran_common || linker == ElfLinker::Unknown {
                    true => CommonStorage::NeedsValue,
                    false => CommonStorage::IsDefined,
                };
                self.match_up(files, common, reader)?;
                let needed = self.want_last(roots);
                self.load_needed(needed, reader)
            }
        }
    }

    fn set(&mut self, symbol: usize, state: SymbolState) {
        self.states[symbol] = state;
        match state {
            SymbolState::Undefined | SymbolState::Common => self.wanted.insert(symbol),
            _ => self.wanted.remove(&symbol),
        };
    }

    /// Notes a reference, and returns the symbol if an archive has it.
    fn want(&mut self, name: &[u8], by: ReferredBy) -> Option<usize> {
        let symbol = *self.numbers.get(name)?;
        self.referred[symbol] = self.referred[symbol].max(by);
        if self.states[symbol] == SymbolState::Unknown {
            self.set(symbol, SymbolState::Undefined);
        }
        Some(symbol)
    }

    /// Notes references of options, and returns the symbols that archives have.
    fn want_last(&mut self, roots: &Roots<'_>) -> Vec<usize> {
        let is_known = |search: &Self, name: &[u8]| {
            let symbol = search.numbers.get(name);
            symbol.is_some_and(|symbol| search.states[*symbol] != SymbolState::Unknown)
        };
        let mut found = Vec::new();
        for (name, other) in &roots.last {
            if is_known(self, other) {
                found.extend(self.want(name, ReferredBy::Options));
            }
        }
        found
    }

    fn define(&mut self, symbols: &Symbols<'_>) {
        let mut weak = symbols.weak.iter().peekable();
        for defined in &symbols.defined {
            let is_weak = weak.next_if_eq(&defined).is_some();
            for name in referred_as(defined) {
                let Some(symbol) = self.numbers.get(name).copied() else {
                    continue;
                };
                let state = match is_weak {
                    true => self.weak,
                    false if symbols.common.contains(defined) => SymbolState::Common,
                    false => SymbolState::Defined,
                };
                if state.rank() >= self.states[symbol].rank() {
                    self.set(symbol, state);
                }
            }
        }
    }

    /// Tells whether a shared library that is read now defines the symbol: `--as-needed` drops one that defines nothing
    /// which was needed before.
    fn is_undefined(&self, symbol: usize) -> bool {
        self.states[symbol] == SymbolState::Undefined && self.referred[symbol] == ReferredBy::Files
    }

    /// Tells whether a shared library that stays in the link defines the symbol, needed or not.
    fn may_define(&self, symbol: usize) -> bool {
        let is_open = [SymbolState::Unknown, SymbolState::Undefined].contains(&self.states[symbol]);
        is_open && self.referred[symbol] < ReferredBy::Hidden
    }

    /// Loads a unit, and returns the symbols that it needs.
    fn load(
        &mut self,
        unit: usize,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<Vec<usize>, LinkError> {
        self.loaded[unit] = true;
        let mut needed = Vec::new();
        reader.unit(unit, &mut |symbols| {
            self.has_lto |= symbols.lto;
            self.define(symbols);
            for name in &symbols.internal {
                self.want(name, ReferredBy::Hidden);
            }
            let undefined = symbols.undefined.iter();
            needed.extend(undefined.filter_map(|name| self.want(name, ReferredBy::Files)));
        })?;
        Ok(needed)
    }

    /// Returns the symbols of a unit for which archives are searched.
    fn wanted_of(&self, unit: usize, common: CommonStorage) -> impl Iterator<Item = &usize> {
        let symbols = self.listed[unit].iter();
        symbols.filter(move |symbol| match self.states[**symbol] {
            SymbolState::Undefined => true,
            SymbolState::Common => common == CommonStorage::NeedsValue,
            _ => false,
        })
    }

    /// Tells whether an archive is searched for a unit. Only a strong definition gives common storage its value.
    fn is_wanted(
        &mut self,
        unit: usize,
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<bool, LinkError> {
        let mut has_common = false;
        for symbol in self.wanted_of(unit, common) {
            if self.states[*symbol] != SymbolState::Common {
                return Ok(true);
            }
            has_common = true;
        }
        if !has_common {
            return Ok(false);
        }
        if !self.strong.contains_key(&unit) {
            let mut strong = Vec::new();
            reader.unit(unit, &mut |symbols| {
                let others: HashSet<&[u8]> = symbols
                    .weak
                    .iter()
                    .chain(&symbols.common)
                    .copied()
                    .collect();
                let names = symbols
                    .defined
                    .iter()
                    .filter(|name| !others.contains(**name));
                let names = names.flat_map(|name| referred_as(name));
                strong.extend(names.filter_map(|name| self.numbers.get(name)));
            })?;
            self.strong.insert(unit, strong);
        }
        let mut strong = self.strong[&unit].iter();
        Ok(strong.any(|symbol| self.states[*symbol] == SymbolState::Common))
    }

    /// Takes the definitions of a shared library that `takes` chooses, and returns the symbols that it needs.
    fn want_for_library(
        &mut self,
        library: usize,
        takes: impl Fn(&Self, usize, DefinitionRank) -> bool,
        reader: &mut UnitReader<'_, '_>,
    ) -> Vec<usize> {
        let mut needed = Vec::new();
        reader.library(library, &mut |symbols| {
            let mut weak = symbols.weak.iter().peekable();
            for name in &symbols.defined {
                let rank = match weak.next_if_eq(&name) {
                    Some(_) => DefinitionRank::Weak,
                    None => DefinitionRank::Strong,
                };
                let symbol = self.numbers.get(name).copied();
                if let Some(symbol) = symbol.filter(|symbol| takes(self, *symbol, rank)) {
                    self.set(symbol, SymbolState::Defined);
                }
            }
            let undefined = symbols.undefined.iter();
            needed.extend(undefined.filter_map(|name| self.want(name, ReferredBy::Files)));
        });
        needed
    }
}

/// Returns the names by which references lead to a definition: a default version satisfies those without one.
fn referred_as(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let plain = name.windows(2).position(|at| at == b"@@");
    let plain = plain.and_then(|end| name.get(..end));
    plain.into_iter().chain([name])
}

/// Role of common storage when an archive is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommonStorage {
    /// A member that gives it a value is loaded.
    NeedsValue,
    IsDefined,
}

/// Rank of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DefinitionRank {
    Strong,
    Weak,
    Common,
}
