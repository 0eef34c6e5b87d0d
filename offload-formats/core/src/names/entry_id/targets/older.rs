//! Parses a target as LLVM 17 to 20 did. Observed with release 19.1.

use crate::names::entry_id::words::FIELDS;
use crate::names::target_id::processor;
use crate::names::{LlvmRelease, Processor};

/// Splits a target into kind, triple of four fields, and target ID.
///
/// The processor is the word after the last dash before the features, if the release knows it. The
/// empty word counts as known. The target ID starts at the first occurrence of that word; an empty
/// word occurs at the start of the text. If the processor is unknown, there is no target ID, and
/// the features are lost.
pub(super) fn split(text: &str, release: LlvmRelease) -> (&str, String, &str) {
    let named = processor(text);
    let (before, last) = named.rsplit_once('-').unwrap_or((named, ""));
    let known = |processor: &Processor| processor.name() == last && processor.known_to(release);
    let (rest, target_id) = if last.is_empty() || Processor::find(last).is_some_and(known) {
        let first = text.find(last).expect("the word is a part of the text");
        (before, text.split_at(first).1)
    } else {
        (named, "")
    };
    let (kind, triple) = rest.split_once('-').unwrap_or((rest, ""));
    let mut fields = triple.splitn(FIELDS, '-');
    let fields = [(); FIELDS].map(|()| fields.next().unwrap_or_default());
    (kind, fields.join("-"), target_id)
}
