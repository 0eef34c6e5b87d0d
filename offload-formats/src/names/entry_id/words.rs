//! Words of an entry ID.

use crate::names::Triple;

/// How many fields a triple has in what LLVM 22 takes and writes.
pub(super) const FIELDS: usize = 4;

/// What stands before the features.
pub(super) fn processor(target_id: &str) -> &str {
    target_id.split(':').next().unwrap_or_default()
}

/// Whether the word, where the environment or a processor may be, is no processor.
pub(super) fn is_environment(word: &str) -> bool {
    // A triple of one word has an environment only when that word is known as one.
    let known = |word| Triple::parse(word).is_ok_and(|triple| !triple.environment().is_empty());
    matches!(word, "" | "unknown") || known(word)
}
