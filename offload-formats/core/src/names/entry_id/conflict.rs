//! Finds targets that exclude each other in a bundle, because a runtime could not choose between
//! them.

use std::collections::BTreeMap;

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
    rows.sort_unstable_by_key(|row| (row.group, row.target_id, row.index));
    let missed = |first: &Row<'_>, later: &Row<'_>| {
        let mut later = later.names();
        later.any(|name| first.names().all(|known| known != name))
    };
    let differ = |first: &Row<'_>, later: &Row<'_>| {
        let valid = |row: &Row<'_>| row.names().all(|name| FEATURES.contains(&name));
        valid(first) && valid(later) && !first.names().eq(later.names())
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

    /// Lists the names of its features.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.features.iter().map(|(name, _)| *name)
    }
}

fn find(rows: &[Row<'_>], conflict: fn(&Row<'_>, &Row<'_>) -> bool) -> Option<(usize, usize)> {
    for group in rows.chunk_by(|one, next| one.group == next.group) {
        // The first row of each processor.
        let mut firsts = BTreeMap::new();
        for later in group {
            let first: &Row<'_> = firsts.entry(later.processor).or_insert(later);
            if first.index != later.index && conflict(first, later) {
                return Some((first.index, later.index));
            }
        }
    }
    None
}
