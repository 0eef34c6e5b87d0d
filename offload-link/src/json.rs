//! JSON, as every tool here prints it.

use serde::Serialize;

/// Indented, with a line feed at the end.
pub(crate) fn text(value: &impl Serialize) -> String {
    // What fails are maps with keys that are no texts, and `Serialize` by hand: neither is here.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text + "\n"
}
