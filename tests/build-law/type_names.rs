//! One name for one type: in a crate each struct, enum, union, trait and type alias has a name of its own.
//!
//! The test parses the sources. Types under `#[cfg(test)]` and in function bodies are exempt; types in the argument of
//! a macro (`record!`) count.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::floors::{CRATES, Module, attributes, is_test, source_folder, sources};

/// Names that stand for several types of a crate, each with the reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// The modules that define each name.
type Definitions = BTreeMap<String, Vec<Module>>;

fn definitions(src: &Path) -> Definitions {
    let mut found = Definitions::new();
    for (module, text) in sources(src) {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        collect(&file.items, &module, &mut found);
    }
    found
}

/// `here` is the module of the items.
fn collect(items: &[syn::Item], here: &Module, found: &mut Definitions) {
    for item in items {
        if attributes(item).iter().any(is_test) {
            continue;
        }
        let names = match item {
            syn::Item::Struct(item) => vec![item.ident.to_string()],
            syn::Item::Enum(item) => vec![item.ident.to_string()],
            syn::Item::Union(item) => vec![item.ident.to_string()],
            syn::Item::Trait(item) => vec![item.ident.to_string()],
            syn::Item::Type(item) => vec![item.ident.to_string()],
            syn::Item::Macro(item) => declared(item.mac.tokens.clone()),
            syn::Item::Mod(item) => {
                let mut inner = here.clone();
                inner.push(item.ident.to_string());
                let items = item.content.as_ref().map(|(_, items)| items);
                collect(items.map_or(&[], Vec::as_slice), &inner, found);
                Vec::new()
            }
            _ => Vec::new(),
        };
        for name in names {
            found.entry(name).or_default().push(here.clone());
        }
    }
}

/// Lists the types that the argument of a macro declares.
fn declared(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut keyword = false;
    for token in tokens {
        let TokenTree::Ident(ident) = token else {
            keyword = false;
            continue;
        };
        if keyword {
            names.push(ident.to_string());
        }
        keyword = ["struct", "enum", "union", "trait"].contains(&ident.to_string().as_str());
    }
    names
}

/// Returns one line for each name with several definitions, and for each exception that is not needed.
fn problems(name: &str, found: &Definitions, exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let excepted = |word: &str| {
        let mut rows = exceptions.iter();
        rows.any(|(of, exception, _)| *of == name && *exception == word)
    };
    let several = |word: &str| found.get(word).is_some_and(|modules| modules.len() > 1);
    let names = found.keys().filter(|word| several(word) && !excepted(word));
    let mut problems: Vec<String> = names
        .map(|word| {
            let modules = found[word].iter().map(|module| module.join("/"));
            let modules: Vec<String> = modules.collect();
            format!("{name}: `{word}` is defined in {}", modules.join(", "))
        })
        .collect();
    let unneeded = exceptions
        .iter()
        .filter(|(of, word, _)| *of == name && !several(word));
    problems.extend(unneeded.map(|(_, word, _)| format!("{name}: remove the exception `{word}`")));
    problems
}

#[test]
fn types_have_names_of_their_own() {
    let mut all = Vec::new();
    for name in CRATES {
        let found = definitions(&source_folder(name));
        assert!(!found.is_empty(), "{name}");
        all.extend(problems(name, &found, &EXCEPTIONS));
    }
    let known = |(of, ..): &(&str, &str, &str)| CRATES.contains(of);
    assert!(EXCEPTIONS.iter().all(known), "exceptions name a crate");
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// The definitions in these modules.
fn definitions_of(sources: &[(&str, &str)]) -> Definitions {
    let mut found = Definitions::new();
    for (module, text) in sources {
        let file = syn::parse_file(text).unwrap();
        collect(&file.items, &vec![(*module).to_owned()], &mut found);
    }
    found
}

#[test]
fn finds_names_of_several_types() {
    let found = |first: &str, second: &str| {
        let found = definitions_of(&[("a", first), ("b", second)]);
        problems("c", &found, &[]).join("; ")
    };
    let twice = "c: `T` is defined in a, b";
    assert_eq!(found("struct T;", "pub enum T {}"), twice);
    assert_eq!(found("trait T {}", "pub(crate) type T = u8;"), twice);
    assert_eq!(found("union T { a: u8 }", "struct T(u8);"), twice);
    let record = "record! { /// A record.\n struct T, \"t\", 8 bytes { 0x0 a: u64 } }";
    assert_eq!(found("struct T;", record), twice);
    let inner = "struct T; mod m { struct T; }";
    assert_eq!(found(inner, ""), "c: `T` is defined in a, a/m");
    for other in [
        "struct U;",
        "#[cfg(test)] mod tests { struct T; }",
        "#[cfg(test)] struct T;",
        "fn f() { struct T; }",
        "impl Iterator for U { type T = u8; }",
        "trait U { type T; }",
        "use a::T;",
        "macro_rules! record { (struct $name:ident) => { struct $name; } }",
        "// struct T;\nconst S: &str = \"struct T;\";",
    ] {
        assert_eq!(found("struct T;", other), "", "{other}");
    }
}

#[test]
fn finds_exceptions_that_are_not_needed() {
    let row = [("c", "T", "a reason")];
    let found = |second: &str| {
        let found = definitions_of(&[("a", "struct T;"), ("b", second)]);
        problems("c", &found, &row).join("; ")
    };
    assert_eq!(found("struct T;"), "");
    assert_eq!(found("struct U;"), "c: remove the exception `T`");
    let elsewhere = definitions_of(&[("a", "struct T;")]);
    assert!(problems("d", &elsewhere, &row).is_empty());
}
