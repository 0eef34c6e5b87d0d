//! Finds the archive members that the host link loads.
//!
//! An archive member is linked if it defines an undefined symbol of a linked object. Linkers differ in how often they
//! search an archive again; here order does not matter, so every member that any linker would load is included.

use std::collections::HashMap;

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
            let name = &self.bytes[start..*end];
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

/// An object or archive member, which the host link loads as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub symbols: &'a Symbols<'a>,
    /// Set if it is linked whatever its symbols.
    pub always: bool,
}

/// Returns which of `candidates` are linked if `roots` must be defined.
#[must_use]
pub(crate) fn linked<'a>(
    candidates: &[Candidate<'a>],
    roots: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<bool> {
    let mut providers: HashMap<&[u8], usize> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for name in &candidate.symbols.defined {
            // A candidate that is always linked has priority over earlier ones.
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
        // Removed, because a second use of the name changes nothing.
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
