//! Words of Rust that the generated file writes as raw identifiers.

/// Returns `name` as an identifier: `r#match` for a word of Rust.
pub(crate) fn raw(name: &str) -> String {
    match KEYWORDS.contains(&name) {
        true => format!("r#{name}"),
        false => name.to_owned(),
    }
}

/// Words of Rust, of all editions, that `r#` makes names of.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_a_name_of_each_word_that_rust_keeps_for_itself() {
        let sorted = KEYWORDS.is_sorted_by(|one, two| one < two);
        assert!(sorted);
        for word in KEYWORDS {
            // `gen` is a word since edition 2024.
            let is_kept = syn::parse_str::<syn::Ident>(word).is_err();
            assert!(is_kept || word == "gen", "{word}");
            assert!(syn::parse_str::<syn::Ident>(&raw(word)).is_ok(), "{word}");
        }
        for name in ["yield", "dyn", "union", "raw", "safe", "auto", "k"] {
            assert!(syn::parse_str::<syn::Ident>(&raw(name)).is_ok(), "{name}");
        }
    }
}
