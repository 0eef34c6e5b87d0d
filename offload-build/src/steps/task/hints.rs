//! Hints for links that fail because of symbols.

use offload_formats::escape::{self, Colors};

/// Hints for links that fail because of symbols; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SymbolHints {
    /// A symbol is undefined.
    pub undefined: &'static str,
    /// An undefined symbol has one of these prefixes: a function of a library that is missing.
    pub library: Option<(&'static [&'static str], String)>,
    /// Two inputs define a symbol.
    pub duplicate: &'static str,
    /// Other words of the output, and what to do.
    pub others: &'static [(&'static str, &'static str)],
}

impl SymbolHints {
    /// Returns the hint for a command that failed with this output. Colors may be in the middle of a message.
    pub(crate) fn of(&self, output: &str) -> String {
        let output = escape::messages(output, Colors::Removed);
        let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
        // Of lld, llvm-link, nvlink and GNU ld.
        if has(&[
            "duplicate symbol",
            "multiply defined",
            "Multiple definition",
            "multiple definition",
        ]) {
            return with_code(self.duplicate, " [OFF702]");
        }
        if let Some((_, hint)) = self.others.iter().find(|(word, _)| has(&[word])) {
            return (*hint).to_owned();
        }
        // The second is of ptxas. A linker that crashes prints its command line.
        let is_undefined = output.replace("--no-undefined", "").contains("undefined");
        if !is_undefined && !has(&["Unresolved extern"]) {
            return String::new();
        }
        let hint = match &self.library {
            Some((prefixes, hint)) if has(prefixes) => hint,
            _ => self.undefined,
        };
        with_code(hint, " [OFF701]")
    }
}

fn with_code(hint: &str, code: &str) -> String {
    // The hint for a missing library has its own.
    match hint.is_empty() || hint.contains("[OFF") {
        true => hint.to_owned(),
        false => format!("{hint}{code}"),
    }
}
