//! Finds targets that exclude each other in a bundle, because a runtime could not choose between
//! them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::EntryId;
use crate::names::Processor;
use crate::names::target_id::{self, FEATURES, Features};

/// Scope of the comparison of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictScope {
    /// Targets with the same kind and the same triple as written: the targets of a command line.
    KindAndTriple,
    /// All targets: the entries of an archive member.
    All,
}

/// Finds two targets for the same processor of which only one sets a feature.
///
/// Returns the indices of the first target of that processor and of the conflicting one. The order
/// is by kind and triple, then by target ID, bytewise. The result is the conflict that LLVM 22
/// reports, if any. LLVM 22 misses a feature that only the first target sets; the main branch
/// reports it, and here such conflicts come last.
///
/// Invalid target IDs conflict with nothing.
#[must_use]
pub fn conflict(targets: &[EntryId], scope: ConflictScope) -> Option<(usize, usize)> {
    let rows = targets.iter().enumerate();
    let mut rows: Vec<Row<'_>> = rows
        .filter_map(|(index, id)| Row::new(index, id, scope))
        .collect();
    rows.sort_by_key(|row| (row.group, row.target_id, row.index));
    let missed = |first: &Row<'_>, later: &Row<'_>| {
        later
            .features
            .keys()
            .any(|name| !first.features.contains_key(name))
    };
    let differ = |first: &Row<'_>, later: &Row<'_>| {
        let valid = |row: &Row<'_>| row.features.keys().all(|name| FEATURES.contains(name));
        valid(first) && valid(later) && !first.features.keys().eq(later.features.keys())
    };
    find(&rows, missed).or_else(|| find(&rows, differ))
}

/// A target with the compared parts.
struct Row<'a> {
    group: &'a str,
    target_id: &'a str,
    index: usize,
    processor: &'a str,
    features: Features<'a>,
}

impl<'a> Row<'a> {
    fn new(index: usize, id: &'a EntryId, scope: ConflictScope) -> Option<Self> {
        let (processor, features) = target_id::split(&id.target_id).ok()?;
        Some(Self {
            group: match scope {
                ConflictScope::KindAndTriple => id.kind_and_triple(),
                ConflictScope::All => "",
            },
            target_id: &id.target_id,
            index,
            processor: Processor::find(processor).map_or(processor, |known| known.name()),
            features,
        })
    }
}

fn find(rows: &[Row<'_>], conflict: impl Fn(&Row<'_>, &Row<'_>) -> bool) -> Option<(usize, usize)> {
    let mut firsts = BTreeMap::new();
    for later in rows {
        match firsts.entry((later.group, later.processor)) {
            Entry::Vacant(place) => {
                place.insert(later);
            }
            Entry::Occupied(first) if conflict(first.get(), later) => {
                return Some((first.get().index, later.index));
            }
            Entry::Occupied(_) => {}
        }
    }
    None
}
