//! No function is too long to read at once.
//!
//! The test parses the sources. Functions under `#[cfg(test)]` are exempt.

use std::path::Path;

use syn::spanned::Spanned;

use crate::floors::{CRATES, Module, attributes, is_test, source_folder, sources};

/// Number of lines, from the line with `fn` to that of the last brace, that is too large.
const LIMIT: usize = 80;

/// A function and its number of lines.
type Length = (String, usize);

fn lengths(src: &Path) -> Vec<Length> {
    let mut found = Vec::new();
    for (module, text) in sources(src) {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        collect(&file.items, &module, &mut found);
    }
    found
}

/// `here` is the module of the items.
fn collect(items: &[syn::Item], here: &Module, found: &mut Vec<Length>) {
    for item in items {
        if attributes(item).iter().any(is_test) {
            continue;
        }
        match item {
            syn::Item::Fn(function) => add(&function.sig, &function.block, here, found),
            syn::Item::Impl(item) => {
                for item in &item.items {
                    if let syn::ImplItem::Fn(function) = item {
                        add(&function.sig, &function.block, here, found);
                    }
                }
            }
            syn::Item::Trait(item) => {
                for item in &item.items {
                    if let syn::TraitItem::Fn(function) = item {
                        let block = function.default.as_ref();
                        block
                            .into_iter()
                            .for_each(|block| add(&function.sig, block, here, found));
                    }
                }
            }
            syn::Item::Mod(item) => {
                let mut inner = here.clone();
                inner.push(item.ident.to_string());
                let items = item.content.as_ref().map(|(_, items)| items);
                collect(items.map_or(&[], Vec::as_slice), &inner, found);
            }
            _ => {}
        }
    }
}

fn add(signature: &syn::Signature, block: &syn::Block, here: &Module, found: &mut Vec<Length>) {
    let first = signature.fn_token.span().start().line;
    let last = block.brace_token.span.close().end().line;
    let name = format!("{}::{}", here.join("::"), signature.ident);
    found.push((name, last - first + 1));
}

#[test]
fn has_no_function_of_80_lines() {
    let mut problems = Vec::new();
    for name in CRATES {
        let found = lengths(&source_folder(name));
        assert!(found.len() > 20, "{name}: {} functions", found.len());
        let long = found.into_iter().filter(|(_, lines)| *lines >= LIMIT);
        problems.extend(long.map(|(path, lines)| format!("{name}: `{path}`: {lines} lines")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
