//! Symbols of objects and images, and what a set of them needs, whatever the order.

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
    /// Those undefined symbols that must be defined in the linked file itself.
    pub internal: Vec<&'d [u8]>,
    /// Those defined symbols that are common storage; archives are searched for definitions with a value.
    pub common: Vec<&'d [u8]>,
    /// Those defined symbols that are weak.
    pub weak: Vec<&'d [u8]>,
    /// The object is LTO code, which the host linker compiles and which may then need other symbols.
    pub lto: bool,
}

/// Copied symbols, so that nothing else of the object stays in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// All names, one after the other.
    bytes: Vec<u8>,
    /// End of each name in `bytes`, and the state of the symbol.
    ends: Vec<(usize, Standing)>,
    lto: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Visible,
    Hidden,
    Weak,
    WeakHidden,
    Common,
    Undefined,
    UndefinedHidden,
}

impl Names {
    pub(crate) fn of(symbols: &[GlobalSymbol<'_>]) -> Self {
        let mut names = Self::default();
        for symbol in symbols {
            let standing = match symbol {
                symbol if symbol.common => Standing::Common,
                symbol if symbol.defined => match (symbol.weak, symbol.hidden) {
                    (false, false) => Standing::Visible,
                    (false, true) => Standing::Hidden,
                    (true, false) => Standing::Weak,
                    (true, true) => Standing::WeakHidden,
                },
                symbol if symbol.weak => continue,
                symbol if symbol.hidden => Standing::UndefinedHidden,
                _ => Standing::Undefined,
            };
            names.lto |= symbol.lto;
            names.bytes.extend_from_slice(symbol.name);
            names.ends.push((names.bytes.len(), standing));
        }
        names
    }

    pub(crate) fn symbols(&self) -> Symbols<'_> {
        let mut symbols = Symbols {
            lto: self.lto,
            ..Symbols::default()
        };
        let mut start = 0;
        for (end, standing) in &self.ends {
            let name = &self.bytes[start..*end];
            start = *end;
            if let Standing::Undefined | Standing::UndefinedHidden = standing {
                symbols.undefined.push(name);
                if *standing == Standing::UndefinedHidden {
                    symbols.internal.push(name);
                }
                continue;
            }
            symbols.defined.push(name);
            match standing {
                Standing::Common => symbols.common.push(name),
                Standing::Weak | Standing::WeakHidden => symbols.weak.push(name),
                _ => {}
            }
            if !matches!(standing, Standing::Hidden | Standing::WeakHidden) {
                symbols.visible.push(name);
            }
        }
        symbols
    }
}

/// An object or archive member, which is linked as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'a> {
    /// Symbols that it defines for others.
    pub defined: Vec<&'a [u8]>,
    /// Set if it is linked whatever its symbols.
    pub always: bool,
}

/// Returns which of `candidates` are linked if `roots` must be defined. `undefined` passes the undefined symbols of a
/// linked candidate to its second argument; it is called once for each of them.
///
/// # Errors
///
/// Fails if `undefined` does.
pub(crate) fn linked<'r, E>(
    candidates: &[Candidate<'_>],
    roots: impl IntoIterator<Item = &'r [u8]>,
    mut undefined: impl FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<(), E>,
) -> Result<Vec<bool>, E> {
    let mut providers: HashMap<&[u8], usize> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for name in &candidate.defined {
            // A candidate that is always linked has priority over earlier ones.
            let first = providers.entry(name).or_insert(index);
            if candidate.always && !candidates[*first].always {
                *first = index;
            }
        }
    }
    let always = candidates.iter().enumerate();
    let always = always.filter(|(_, candidate)| candidate.always);
    let mut waiting: Vec<usize> = always.map(|(index, _)| index).collect();
    // Removed, because a second use of the name changes nothing.
    waiting.extend(roots.into_iter().filter_map(|name| providers.remove(name)));
    let mut taken = vec![false; candidates.len()];
    while let Some(index) = waiting.pop() {
        if !std::mem::replace(&mut taken[index], true) {
            undefined(index, &mut |name| waiting.extend(providers.remove(name)))?;
        }
    }
    Ok(taken)
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
            })
            .collect();
        let roots = roots.iter().map(|root| root.as_bytes());
        let mut read = Vec::new();
        let taken = linked(&candidates, roots, |index, want| {
            read.push(index);
            list[index].1.undefined.iter().for_each(|name| want(name));
            Ok::<(), ()>(())
        });
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
    fn takes_no_member_for_a_name_that_an_object_defines() {
        let list = [
            (false, symbols(&["a"], &[])),
            (true, symbols(&["a"], &["a"])),
        ];
        assert_eq!(taken(&list, &["a"]), [1]);
    }
}
