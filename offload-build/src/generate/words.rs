//! Words of Rust that the generated file writes as raw identifiers.

/// Returns `name` as an identifier: `r#match` for a word of Rust.
pub(crate) fn raw(name: &str) -> String {
    match KEYWORDS.contains(&name) {
        true => format!("r#{name}"),
        false => name.to_owned(),
    }
}

/// Words of Rust, of all editions, that `r#` makes names of.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while",
];
