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

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

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

/// Reads symbols, with the names that references lead to.
pub(super) trait SymbolReader<E> {
    /// Passes the symbols of a unit.
    fn unit(&mut self, unit: usize, pass: &mut dyn FnMut(&Symbols<'_>)) -> Result<(), E>;

    /// Passes the symbols of a shared library.
    fn library(&mut self, library: usize, pass: &mut dyn FnMut(&Symbols<'_>));
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
    pub(super) fn run<E>(
        mut self,
        rules: SearchRules,
        files: &[SearchedFile],
        roots: Roots<'a>,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<Vec<bool>, E> {
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

    fn run_elf<E>(
        &mut self,
        linker: ElfLinker,
        fortran_common: bool,
        files: &[SearchedFile],
        roots: &Roots<'_>,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
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
    fn load<E>(&mut self, unit: usize, reader: &mut impl SymbolReader<E>) -> Result<Vec<usize>, E> {
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

    /// Takes the definitions of a shared library that `takes` chooses, and returns the symbols that it needs.
    fn want_for_library<E>(
        &mut self,
        library: usize,
        takes: impl Fn(&Self, usize, DefinitionRank) -> bool,
        reader: &mut impl SymbolReader<E>,
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

/// GNU ld and gold.
impl HostSearch<'_> {
    fn go_through<E>(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        let groups = files.chunk_by(|one, two| one.group == two.group);
        for group in groups {
            let mut is_first = true;
            loop {
                let mut has_loaded = false;
                for file in group {
                    match file.content.clone() {
                        SearchedContent::Searched(units) => {
                            has_loaded |= self.search(units, common, reader)?;
                        }
                        SearchedContent::Loaded(units) if is_first => {
                            has_loaded = true;
                            for unit in units {
                                self.load(unit, reader)?;
                            }
                        }
                        SearchedContent::Library { number, as_needed } if is_first => {
                            has_loaded = true;
                            let takes = |search: &Self, symbol, _| match as_needed {
                                true => search.is_undefined(symbol),
                                false => search.may_define(symbol),
                            };
                            self.want_for_library(number, takes, reader);
                        }
                        _ => {}
                    }
                }
                is_first = false;
                if !has_loaded || group.len() == 1 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Searches the archives once more.
    fn go_through_again<E>(
        &mut self,
        files: &[SearchedFile],
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        let archives = files
            .iter()
            .filter(|file| matches!(file.content, SearchedContent::Searched(_)));
        let archives: Vec<SearchedFile> = archives.cloned().collect();
        self.go_through(&archives, CommonStorage::IsDefined, reader)
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
    fn is_wanted<E>(
        &mut self,
        unit: usize,
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<bool, E> {
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

    /// Searches an archive until nothing is found, and tells whether a unit was loaded.
    fn search<E>(
        &mut self,
        units: Range<usize>,
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<bool, E> {
        let mut possible: BTreeSet<usize> = BTreeSet::new();
        for symbol in &self.wanted {
            possible.extend(within(&self.providers[*symbol], &units));
        }
        let (mut next, mut has_loaded) = (units.start, false);
        while !possible.is_empty() {
            let Some(unit) = possible.range(next..).next().copied() else {
                next = units.start;
                continue;
            };
            possible.remove(&unit);
            next = unit + 1;
            if !self.loaded[unit] && self.is_wanted(unit, common, reader)? {
                has_loaded = true;
                let symbols = self.listed[unit].iter().copied();
                let symbols = symbols.filter(|symbol| self.states[*symbol] != SymbolState::Common);
                let symbols: Vec<usize> = symbols.collect();
                let needed = self.load(unit, reader)?;
                // Its common storage may get a value from a member of the same archive.
                let is_new = |symbol: &&usize| {
                    self.states[**symbol] == SymbolState::Common
                        && common == CommonStorage::NeedsValue
                };
                let is_undefined =
                    |symbol: &&usize| self.states[**symbol] == SymbolState::Undefined;
                let needed = needed.iter().filter(is_undefined);
                for symbol in needed.chain(symbols.iter().filter(is_new)) {
                    possible.extend(within(&self.providers[*symbol], &units));
                }
            }
        }
        Ok(has_loaded)
    }
}

/// Returns the units in a range.
fn within(sorted: &[usize], units: &Range<usize>) -> impl Iterator<Item = usize> {
    let start = sorted.partition_point(|unit| *unit < units.start);
    let end = sorted.partition_point(|unit| *unit < units.end);
    sorted[start..end].iter().copied()
}

/// lld.
impl HostSearch<'_> {
    fn match_up<E>(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        self.load_all(unit, reader)?;
                    }
                }
                SearchedContent::Searched(units) => {
                    for unit in units {
                        self.offer(unit, common, reader)?;
                    }
                }
                SearchedContent::Library { number, .. } => {
                    // It comes before archives whose members nobody needed yet.
                    let takes = |search: &Self, symbol: usize, _| match search.states[symbol] {
                        SymbolState::Unknown | SymbolState::Lazy(_) => true,
                        _ => search.is_undefined(symbol),
                    };
                    let needed = self.want_for_library(number, takes, reader);
                    self.load_needed(needed, reader)?;
                }
            }
        }
        Ok(())
    }

    /// Loads a unit if one of its symbols is needed already.
    fn offer<E>(
        &mut self,
        unit: usize,
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        if self.loaded[unit] {
            return Ok(());
        }
        if self.is_wanted(unit, common, reader)? {
            return self.load_all(unit, reader);
        }
        for place in 0..self.listed[unit].len() {
            let symbol = self.listed[unit][place];
            if self.states[symbol] == SymbolState::Unknown {
                self.set(symbol, SymbolState::Lazy(unit));
            }
        }
        Ok(())
    }

    /// Loads a unit, and what it needs of earlier archives.
    fn load_all<E>(&mut self, unit: usize, reader: &mut impl SymbolReader<E>) -> Result<(), E> {
        let needed = self.load(unit, reader)?;
        self.load_needed(needed, reader)
    }

    fn load_needed<E>(
        &mut self,
        needed: Vec<usize>,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        // What a unit needs comes before what others still need.
        let mut left = vec![needed.into_iter()];
        while let Some(symbols) = left.last_mut() {
            let Some(symbol) = symbols.next() else {
                left.pop();
                continue;
            };
            if let SymbolState::Lazy(unit) = self.states[symbol] {
                self.set(symbol, SymbolState::Undefined);
                if !self.loaded[unit] {
                    left.push(self.load(unit, reader)?.into_iter());
                }
            }
        }
        Ok(())
    }
}

/// lld for Windows.
impl HostSearch<'_> {
    /// Goes through all files, and returns the units that it found.
    fn queue_up<E>(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<VecDeque<usize>, E> {
        let mut queue = VecDeque::new();
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        let needed = self.load(unit, reader)?;
                        self.queue(needed, &mut queue);
                    }
                }
                SearchedContent::Searched(units) => {
                    for unit in units {
                        self.offer_to_queue(unit, common, &mut queue);
                    }
                }
                SearchedContent::Library { number, .. } => {
                    let takes = |search: &Self, symbol, _| search.is_undefined(symbol);
                    let needed = self.want_for_library(number, takes, reader);
                    self.queue(needed, &mut queue);
                }
            }
        }
        Ok(queue)
    }

    /// Loads units, and what they need.
    fn load_queued<E>(
        &mut self,
        mut queue: VecDeque<usize>,
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        while let Some(unit) = queue.pop_front() {
            if !self.loaded[unit] {
                let needed = self.load(unit, reader)?;
                self.queue(needed, &mut queue);
            }
        }
        Ok(())
    }

    /// Queues the units that archives had for these symbols.
    fn queue(&mut self, needed: Vec<usize>, queue: &mut VecDeque<usize>) {
        for symbol in needed {
            if let SymbolState::Lazy(unit) = self.states[symbol] {
                self.set(symbol, SymbolState::Queued);
                queue.push_back(unit);
            }
        }
    }

    /// Queues a unit if one of its symbols is needed already.
    fn offer_to_queue(&mut self, unit: usize, common: CommonStorage, queue: &mut VecDeque<usize>) {
        let wanted: Vec<usize> = self.wanted_of(unit, common).copied().collect();
        for symbol in wanted {
            self.set(symbol, SymbolState::Queued);
            queue.push_back(unit);
        }
        for place in 0..self.listed[unit].len() {
            let symbol = self.listed[unit][place];
            if self.states[symbol] == SymbolState::Unknown {
                self.set(symbol, SymbolState::Lazy(unit));
            }
        }
    }
}

/// Rank of a definition in an archive, to mold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DefinitionRank {
    Strong,
    Weak,
    Common,
}

/// A unit of an archive that defines a symbol. The least is the best.
type Definition = (DefinitionRank, usize);

/// mold.
impl HostSearch<'_> {
    /// Returns for each symbol the unit of an archive with the first of its best definitions. An only definition is not read, and
    /// counts as a strong one.
    fn best<E>(&self, reader: &mut impl SymbolReader<E>) -> Result<Vec<Option<Definition>>, E> {
        let only = |units: &Vec<usize>| match units.as_slice() {
            [unit] => Some((DefinitionRank::Strong, *unit)),
            _ => None,
        };
        let mut best: Vec<Option<Definition>> = self.providers.iter().map(only).collect();
        let is_only = |symbol: &usize| self.providers[*symbol].len() == 1;
        for (unit, symbols) in self.listed.iter().enumerate() {
            if symbols.iter().all(is_only) {
                continue;
            }
            let mut ranks = HashMap::new();
            reader.unit(unit, &mut |symbols| {
                let weak = symbols.weak.iter().map(|name| (name, DefinitionRank::Weak));
                let common = symbols.common.iter();
                let common = common.map(|name| (name, DefinitionRank::Common));
                for (name, rank) in weak.chain(common) {
                    let numbers = referred_as(name).filter_map(|name| self.numbers.get(name));
                    ranks.extend(numbers.map(|symbol| (*symbol, rank)));
                }
            })?;
            for symbol in symbols.iter().filter(|symbol| !is_only(symbol)) {
                let rank = ranks.get(symbol).copied();
                let found = (rank.unwrap_or(DefinitionRank::Strong), unit);
                let other = best[*symbol].unwrap_or(found);
                best[*symbol] = Some(found.min(other));
            }
        }
        Ok(best)
    }

    fn choose<E>(
        &mut self,
        files: &[SearchedFile],
        reader: &mut impl SymbolReader<E>,
    ) -> Result<(), E> {
        let best = self.best(reader)?;
        let mut end = 0;
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        self.load(unit, reader)?;
                    }
                }
                SearchedContent::Library { number, .. } => {
                    // The first file with a strong definition counts, an archive or a shared library. A weak definition of a
                    // library counts less than one of an archive.
                    let takes = |search: &Self, symbol: usize, rank| {
                        let first =
                            best[symbol].filter(|(rank, _)| *rank == DefinitionRank::Strong);
                        rank == DefinitionRank::Strong
                            && first.is_none_or(|(_, first)| first >= end)
                            && search.referred[symbol] < ReferredBy::Hidden
                    };
                    self.want_for_library(number, takes, reader);
                }
                SearchedContent::Searched(units) => end = end.max(units.end),
            }
        }
        // Objects come before archives wherever they are, but their common storage. Among archives the best definition is chosen,
        // whatever else is loaded.
        let mut needed: Vec<usize> = self.wanted.iter().copied().collect();
        let of_objects = self.states.clone();
        while let Some(symbol) = needed.pop() {
            let first = best[symbol].filter(|(rank, _)| match of_objects[symbol] {
                SymbolState::Defined => false,
                SymbolState::Common => *rank != DefinitionRank::Common,
                _ => true,
            });
            if let Some((_, unit)) = first.filter(|(_, unit)| !self.loaded[*unit]) {
                needed.extend(self.load(unit, reader)?);
                // Its common storage may get a value.
                let symbols = self.listed[unit].iter().copied();
                let common = symbols.filter(|symbol| {
                    let is_better =
                        best[*symbol].is_some_and(|(rank, _)| rank < DefinitionRank::Common);
                    is_better && self.states[*symbol] == SymbolState::Common
                });
                needed.extend(common);
            }
        }
        Ok(())
    }
}
