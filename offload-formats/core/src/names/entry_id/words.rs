//! Words of an entry ID.

use crate::names::Triple;

/// Number of fields of a triple that LLVM 22 accepts and writes.
pub(super) const FIELDS: usize = 4;

/// Tells whether the word, in a position for an environment or a processor, is an environment.
pub(super) fn is_environment(word: &str) -> bool {
    // A triple of one word has an environment only if that word is a known one.
    let known = |word| Triple::parse(word).is_ok_and(|triple| !triple.environment().is_empty());
    matches!(word, "" | "unknown") || known(word)
}
