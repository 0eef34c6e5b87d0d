//! Which archive members the host link takes.
//!
//! An archive member is linked when it defines a symbol that something linked leaves undefined.
//! Linkers differ in how often they go back to an archive; here order does not matter, so a member
//! that any of them would take is taken.

use std::collections::HashMap;

use offload_formats::format::global_symbol::GlobalSymbol;

/// The symbols of one object or archive member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols<'d> {
    /// Defined for others.
    pub defined: Vec<&'d [u8]>,
    /// Those of them that are seen outside of the linked file.
    pub visible: Vec<&'d [u8]>,
    /// Undefined, and not weak: an archive is searched for it.
    pub undefined: Vec<&'d [u8]>,
}

/// The names of these symbols, when nothing else of the object stays in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// One behind the other.
    bytes: Vec<u8>,
    /// Where each ends, and what it is.
    ends: Vec<(usize, Standing)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Visible,
    Hidden,
    Undefined,
}

impl Names {
    pub(crate) fn of(symbols: &[GlobalSymbol<'_>]) -> Self {
        let mut names = Self::default();
        for symbol in symbols {
            let standing = match symbol {
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
            let name = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            if *standing == Standing::Undefined {
                symbols.undefined.push(name);
                continue;
            }
            symbols.defined.push(name);
            if *standing == Standing::Visible {
                symbols.visible.push(name);
            }
        }
        symbols
    }
}

/// Something that the host link takes as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub symbols: &'a Symbols<'a>,
    /// Linked whatever its symbols.
    pub always: bool,
}

/// Which of `candidates` are linked, when `roots` must be defined.
#[must_use]
pub(crate) fn linked<'a>(
    candidates: &[Candidate<'a>],
    roots: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<bool> {
    let mut providers: HashMap<&[u8], usize> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for name in &candidate.symbols.defined {
            // One that is linked anyway comes before the first in the order of the command line.
            let first = providers.entry(name).or_insert(index);
            if candidate.always && !candidates[*first].always {
                *first = index;
            }
        }
    }
    let mut taken = vec![false; candidates.len()];
    let mut wanted: Vec<&[u8]> = roots.into_iter().collect();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.always {
            taken[index] = true;
            wanted.extend(&candidate.symbols.undefined);
        }
    }
    while let Some(name) = wanted.pop() {
        // Taken out: a second wish for the same name changes nothing.
        if let Some(index) = providers.remove(name) {
            if !taken[index] {
                taken[index] = true;
                let symbols = candidates[index].symbols;
                wanted.extend(&symbols.undefined);
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols<'d>(defined: &[&'d str], undefined: &[&'d str]) -> Symbols<'d> {
        let names = |list: &[&'d str]| list.iter().map(|name| name.as_bytes()).collect();
        Symbols {
            defined: names(defined),
            visible: Vec::new(),
            undefined: names(undefined),
        }
    }

    fn taken(list: &[(bool, Symbols<'_>)], roots: &[&str]) -> Vec<usize> {
        let candidates: Vec<_> = list
            .iter()
            .map(|(always, symbols)| Candidate {
                symbols,
                always: *always,
            })
            .collect();
        let taken = linked(&candidates, roots.iter().map(|root| root.as_bytes()));
        (0..list.len()).filter(|index| taken[*index]).collect()
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
    fn takes_no_member_for_a_name_that_an_object_defines() {
        let list = [
            (false, symbols(&["a"], &[])),
            (true, symbols(&["a"], &["a"])),
        ];
        assert_eq!(taken(&list, &["a"]), [1]);
    }
}
