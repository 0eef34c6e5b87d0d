//! Hints for links that fail because of symbols.

use offload_build_core::compile::nvcc::OWN_VARIABLE;
use offload_formats::container::kernels;
use offload_formats::escape::{self, Colors};

/// Words about undefined symbols of lld, GNU ld, nvlink and ptxas. A message of a front end (`identifier "f" is undefined`) and the
/// command line of a linker that crashes (`--no-undefined`) are not among them.
const UNDEFINED: &[&str] = &[
    "undefined symbol",
    "undefined hidden symbol",
    "undefined protected symbol",
    "undefined internal symbol",
    "undefined reference",
    "Undefined reference",
    "Unresolved extern",
];

/// Parts of names of `static` variables and those of anonymous namespaces, mangled by clang and demangled by lld. Only a
/// variable that clang renamed can be undefined: `docs/troubleshooting.md`, OFF701.
const INTERNAL: [&str; 3] = ["_ZL", "12_GLOBAL__N_1", "(anonymous namespace)::"];

const INTERNAL_HINT: &str = "clang renames a `static` variable that the host copies, but not in kernels above the first use by the host: write \
    `static inline const void *address() { return &variable; }` above the kernels, or declare the variable without `static`, in a \
    namespace with a name";

/// Starts of the names of functions that are LLVM's own.
const INTRINSIC: [&str; 2] = ["llvm.amdgcn.", "llvm.nvvm."];

const INTRINSIC_HINT: &str = "the LLVM of this clang has no such intrinsic: headers that name it are for another release. Take the clang that \
    belongs to their SDK, or headers for this clang; `rdc = true` can help, because LLVM replaces old intrinsics when it reads bitcode";

/// Maximum number of declarations in a hint.
const DECLARATIONS: usize = 5;

/// Hints for links that fail because of symbols; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SymbolHints {
    /// A symbol is undefined.
    pub undefined: &'static str,
    /// An undefined symbol has one of these prefixes: a function of a library that is missing.
    pub library: Option<(&'static [&'static str], String)>,
    /// Two inputs define a symbol.
    pub duplicate: &'static str,
    /// A variable that is declared `extern` is one of the source's own.
    pub redeclared: &'static str,
    /// Other words of the output, and what to do.
    pub others: &'static [(&'static str, &'static str)],
}

impl SymbolHints {
    /// Returns the hint for a command that failed with this output. Colors may be in the middle of a message.
    pub(crate) fn of(&self, output: &str) -> String {
        let output = usual_words(&escape::messages(output, Colors::Removed));
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
        // The first error causes others.
        let place = |(words, _): &&(&str, &str)| output.find(words).unwrap_or(usize::MAX);
        let first = self.others.iter().min_by_key(place);
        if let Some((_, hint)) = first.filter(|(words, _)| has(&[words])) {
            let is_beside = output.contains(ANGLED);
            let own = "if the header is your own, include it in quotes; if not: ";
            return if is_beside { own } else { "" }.to_owned() + hint;
        }
        // GCC, of the definition behind the declaration: nvcc writes both as definitions.
        if has(&[OWN_VARIABLE, "previously declared here"]) && !self.redeclared.is_empty() {
            return self.redeclared.to_owned();
        }
        let is_undefined = |line: &&str| UNDEFINED.iter().any(|words| line.contains(words));
        let undefined: Vec<&str> = output.lines().filter(is_undefined).collect();
        if undefined.is_empty() {
            return String::new();
        }
        match self.of_undefined(&undefined.join("\n")) {
            "" => String::new(),
            hint => with_code(&(declarations(&output) + hint), " [OFF701]"),
        }
    }

    /// Returns the hint for functions and variables that PTX uses and does not define, without a code.
    pub(crate) fn of_names(&self, names: &[String]) -> &str {
        let names = names.join("\n");
        match self.others.iter().find(|(word, _)| names.contains(word)) {
            Some((_, hint)) => hint,
            None => self.of_undefined(&names),
        }
    }

    /// Returns the hint for undefined symbols, which `text` names.
    fn of_undefined(&self, text: &str) -> &str {
        if INTERNAL.iter().any(|part| text.contains(part)) {
            return INTERNAL_HINT;
        }
        if INTRINSIC.iter().any(|start| text.contains(start)) {
            return INTRINSIC_HINT;
        }
        match &self.library {
            Some((prefixes, hint)) if prefixes.iter().any(|start| text.contains(start)) => hint,
            _ => self.undefined,
        }
    }
}

/// Words of clang for a missing header if the source's folder has a file of that name.
const ANGLED: &str = "file not found with <angled> include";

/// Returns the output with GCC's words for a missing header: clang quotes its name, and writes others where the source's folder has
/// a file of that name.
fn usual_words(output: &str) -> String {
    let line = |line: &str| {
        let line = match line.contains(ANGLED) {
            true => line.replace(": error: ", ": fatal error: "),
            false => line.to_owned(),
        };
        line.replace("fatal error: '", "fatal error: ") + "\n"
    };
    output.lines().map(line).collect()
}

/// Returns the declarations of the undefined functions that `output` names by their symbols, in front of a hint: ptxas and nvlink do
/// not demangle.
fn declarations(output: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    for line in output.lines() {
        // ptxas names the function in quotes, nvlink then also its file.
        let symbol = line.split('\'').find(|word| word.starts_with("_Z"));
        let is_undefined = UNDEFINED.iter().any(|words| line.contains(words));
        let Some(symbol) = symbol.filter(|_| is_undefined) else {
            continue;
        };
        let declaration = kernels::signature(symbol);
        let text = format!("`{symbol}` is `{declaration}`");
        if declaration != symbol && !found.contains(&text) {
            found.push(text);
        }
    }
    let more = found.len().saturating_sub(DECLARATIONS);
    found.truncate(DECLARATIONS);
    if more > 0 {
        found.push(format!("{more} more"));
    }
    match found.is_empty() {
        true => String::new(),
        false => found.join(", ") + "; ",
    }
}

fn with_code(hint: &str, code: &str) -> String {
    // The hint for a missing library has its own.
    match hint.is_empty() || hint.contains("[OFF") {
        true => hint.to_owned(),
        false => format!("{hint}{code}"),
    }
}
