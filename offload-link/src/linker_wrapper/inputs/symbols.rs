//! Finds the archive members that the host link loads.
//!
//! An archive member is linked if it defines an undefined symbol of a linked object. If several define it, linkers differ in
//! which they load ([`ArchiveSearch`]); where only one does, order does not matter, so that a member counts that any linker would load.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use offload_formats::format::global_symbol::GlobalSymbol;

/// Symbols of one object or archive member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols<'d> {
    /// Symbols that it defines for others.
    pub defined: Vec<&'d [u8]>,
    /// Defined symbols that are visible outside the linked file.
    pub visible: Vec<&'d [u8]>,
    /// Undefined symbols that are not weak; archives are searched for them.
    pub undefined: Vec<&'d [u8]>,
    /// Those defined symbols that are common storage; archives are searched for definitions with a value.
    pub common: Vec<&'d [u8]>,
}

/// Copied symbols, so that nothing else of the object stays in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// All names, one after the other.
    bytes: Vec<u8>,
    /// End of each name in `bytes`, and the state of the symbol.
    ends: Vec<(usize, Standing)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Visible,
    Hidden,
    Common,
    Undefined,
}

impl Names {
    pub(crate) fn of(symbols: &[GlobalSymbol<'_>]) -> Self {
        let mut names = Self::default();
        for symbol in symbols {
            let standing = match symbol {
                symbol if symbol.common => Standing::Common,
                symbol if symbol.defined && symbol.hidden => Standing::Hidden,
                symbol if symbol.defined => Standing::Visible,
                symbol if symbol.weak => continue,
                _ => Standing::Undefined,
            };
            names.bytes.extend_from_slice(symbol.name);
            names.ends.push((names.bytes.len(), standing));
        }
        names
    }

    pub(crate) fn symbols(&self) -> Symbols<'_> {
        let mut symbols = Symbols::default();
        let mut start = 0;
        for (end, standing) in &self.ends {
            let name = &self.bytes[start..*end];
            start = *end;
            if *standing == Standing::Undefined {
                symbols.undefined.push(name);
                continue;
            }
            symbols.defined.push(name);
            match standing {
                Standing::Visible => symbols.visible.push(name),
                Standing::Common => {
                    symbols.visible.push(name);
                    symbols.common.push(name);
                }
                _ => {}
            }
        }
        symbols
    }
}

/// An object or archive member, which is linked as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate<'a> {
    /// Symbols that it defines for others.
    pub defined: Vec<&'a [u8]>,
    /// Set if it is linked whatever its symbols.
    pub always: bool,
    /// Place of its file on the command line.
    pub place: usize,
    /// Last place at which a linker that goes on from file to file searches it.
    pub last: usize,
}

/// The way in which a linker finds the definition of a symbol that several archive members define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveSearch {
    /// The first on the command line: lld, mold.
    First,
    /// The first in the archives that follow the reference: GNU ld, gold.
    Following,
}

/// The archive members and objects that define a symbol.
struct Providers<'a> {
    first: HashMap<&'a [u8], usize>,
    /// The others in order, of a symbol that several define.
    others: HashMap<&'a [u8], Vec<usize>>,
}

impl<'a> Providers<'a> {
    fn of(candidates: &[Candidate<'a>]) -> Self {
        let mut first: HashMap<&[u8], usize> = HashMap::new();
        let mut others: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            for name in &candidate.defined {
                let known = *first.entry(name).or_insert(index);
                if known == index {
                    continue;
                }
                // A candidate that is always linked has priority over earlier ones.
                match (candidates[known].always, candidate.always) {
                    (true, _) => {}
                    (false, true) => {
                        first.insert(name, index);
                        others.remove(name);
                    }
                    (false, false) => others.entry(name).or_default().push(index),
                }
            }
        }
        Self { first, others }
    }

    /// Removes the symbol, because a second use of the name changes nothing, and returns what is loaded for a reference at the
    /// place `from`.
    fn take(
        &mut self,
        name: &[u8],
        from: usize,
        loads: &Loads<'_, '_>,
        search: &impl Fn() -> ArchiveSearch,
    ) -> Option<usize> {
        let first = self.first.remove(name)?;
        let Some(others) = self.others.remove(name) else {
            return Some(first);
        };
        let follows = |index: &&usize| loads.candidates[**index].last >= from;
        let chosen = match follows(&&first) || search() == ArchiveSearch::First {
            true => first,
            false => others.iter().find(follows).copied().unwrap_or(first),
        };
        // What was loaded before for another symbol defines this one, too.
        let place = loads.place(chosen, from);
        let is_loaded = |index: &usize| loads.places[*index].is_some_and(|at| at < place);
        let mut all = others.iter().chain([&first]);
        match all.any(|index| *index != chosen && is_loaded(index)) {
            true => None,
            false => Some(chosen),
        }
    }
}

/// The candidates, and which of them a linker has loaded.
struct Loads<'c, 'a> {
    candidates: &'c [Candidate<'a>],
    /// Place at which each candidate was loaded.
    places: Vec<Option<usize>>,
}

impl Loads<'_, '_> {
    /// Returns the place at which a candidate is loaded for a reference at the place `from`.
    fn place(&self, index: usize, from: usize) -> usize {
        self.candidates[index].place.max(from)
    }
}

/// Returns which of `candidates` are linked if `roots` must be defined. `undefined` passes the undefined symbols of a
/// linked candidate to its second argument; it is called once for each of them. `search` is called if the answer depends on it.
///
/// # Errors
///
/// Fails if `undefined` does.
pub(crate) fn linked<'r, E>(
    candidates: &[Candidate<'_>],
    roots: impl IntoIterator<Item = &'r [u8]>,
    search: impl Fn() -> ArchiveSearch,
    mut undefined: impl FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<(), E>,
) -> Result<Vec<bool>, E> {
    let mut providers = Providers::of(candidates);
    let mut loads = Loads {
        candidates,
        places: vec![None; candidates.len()],
    };
    // In the order in which a linker goes through the files.
    let mut waiting: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let always = candidates.iter().enumerate();
    let always = always.filter(|(_, candidate)| candidate.always);
    let always = always.map(|(index, candidate)| (candidate.place, index));
    let roots = roots.into_iter();
    let roots = roots.filter_map(|name| providers.take(name, 0, &loads, &search));
    let roots: Vec<usize> = roots.collect();
    let roots = roots
        .into_iter()
        .map(|index| (loads.place(index, 0), index));
    for (place, index) in always.chain(roots).collect::<Vec<_>>() {
        if loads.places[index].replace(place).is_none() {
            waiting.push(Reverse((place, index)));
        }
    }
    while let Some(Reverse((place, index))) = waiting.pop() {
        undefined(index, &mut |name| {
            let Some(index) = providers.take(name, place, &loads, &search) else {
                return;
            };
            if loads.places[index].is_none() {
                let place = loads.place(index, place);
                loads.places[index] = Some(place);
                waiting.push(Reverse((place, index)));
            }
        })?;
    }
    Ok(loads.places.iter().map(Option::is_some).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols<'d>(defined: &[&'d str], undefined: &[&'d str]) -> Symbols<'d> {
        let names = |list: &[&'d str]| list.iter().map(|name| name.as_bytes()).collect();
        Symbols {
            defined: names(defined),
            undefined: names(undefined),
            ..Symbols::default()
        }
    }

    fn taken(list: &[(bool, Symbols<'_>)], roots: &[&str]) -> Vec<usize> {
        let candidates: Vec<_> = list
            .iter()
            .map(|(always, symbols)| Candidate {
                defined: symbols.defined.clone(),
                always: *always,
                ..Candidate::default()
            })
            .collect();
        let roots = roots.iter().map(|root| root.as_bytes());
        let mut read = Vec::new();
        let taken = linked(
            &candidates,
            roots,
            || ArchiveSearch::First,
            |index, want| {
                read.push(index);
                list[index].1.undefined.iter().for_each(|name| want(name));
                Ok::<(), ()>(())
            },
        );
        let taken = taken.unwrap();
        // The undefined symbols of the others are never read.
        read.sort_unstable();
        let taken: Vec<usize> = (0..list.len()).filter(|index| taken[*index]).collect();
        assert_eq!(read, taken);
        taken
    }

    #[test]
    fn takes_what_is_wanted_through_any_number_of_members() {
        let list = [
            (false, symbols(&["c"], &[])), // before those that want it
            (true, symbols(&["main"], &["a"])),
            (false, symbols(&["a"], &["b"])),
            (false, symbols(&["b"], &["c", "a", "main"])),
            (false, symbols(&["d"], &["e"])),
            (false, symbols(&["e"], &[])),
        ];
        assert_eq!(taken(&list, &[]), [0, 1, 2, 3]);
        assert_eq!(taken(&list, &["d"]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn takes_one_member_for_a_name_that_several_define() {
        let list = [
            (false, symbols(&["a"], &[])),
            (false, symbols(&["a", "z"], &[])),
            (true, symbols(&[], &["a"])),
        ];
        assert_eq!(taken(&list, &[]), [0, 2]);
        assert_eq!(taken(&list, &["z"]), [0, 1, 2]);
    }

    #[test]
    fn takes_the_member_that_follows() {
        let candidate = |place, defined: &[&'static str]| Candidate {
            defined: defined.iter().map(|name| name.as_bytes()).collect(),
            always: defined.is_empty(),
            place,
            last: place,
        };
        // An archive, an object, three archives, of which the second wants `d`.
        let mut list = [
            candidate(0, &["a", "y"]),
            candidate(1, &[]),
            candidate(2, &["z"]),
            candidate(3, &["a"]),
            candidate(4, &["a"]),
        ];
        let taken = |list: &[Candidate<'_>], search, wanted: &[&str]| {
            let taken = linked(
                list,
                [],
                || search,
                |index, want| {
                    match index {
                        1 => wanted.iter().for_each(|name| want(name.as_bytes())),
                        3 => want(b"d"),
                        _ => {}
                    }
                    Ok::<(), ()>(())
                },
            );
            let taken = taken.unwrap().into_iter().enumerate();
            let taken = taken.filter_map(|(index, taken)| taken.then_some(index));
            taken.collect::<Vec<usize>>()
        };
        let (following, first) = (ArchiveSearch::Following, ArchiveSearch::First);
        assert_eq!(taken(&list, following, &["a", "z"]), [1, 2, 3]);
        assert_eq!(taken(&list, first, &["a", "z"]), [0, 1, 2]);
        // Without one that follows, one before it: of a group, or of a linker that looks back.
        assert_eq!(taken(&list, following, &["y"]), [0, 1]);
        // What was loaded for `z` defines `d`, too; nothing else is loaded for it.
        list[2].defined.push(b"d");
        list[4].defined.push(b"d");
        assert_eq!(taken(&list, following, &["a", "z"]), [1, 2, 3]);
        assert_eq!(taken(&list, following, &["a"]), [1, 3, 4]);
        // The first archive is named again, or is in a group with the object.
        list[0].last = 5;
        assert_eq!(taken(&list, following, &["a", "z"]), [0, 1, 2]);
    }

    #[test]
    fn takes_no_member_for_a_name_that_an_object_defines() {
        let list = [
            (false, symbols(&["a"], &[])),
            (true, symbols(&["a"], &["a"])),
        ];
        assert_eq!(taken(&list, &["a"]), [1]);
    }
}
