//! Templates of Rust code.

use proc_macro::{Group, Span, TokenStream, TokenTree};

/// Parses a template and replaces each `$name` by tokens.
///
/// Local names of the template do not conflict with the user's. Lints of the user's crate, `unsafe_code` too, do not apply to
/// code of the template.
pub(crate) fn fill(template: &str, values: &[(&str, TokenStream)]) -> TokenStream {
    fill_at(Span::mixed_site(), template, values)
}

/// Fills a template whose errors the compiler reports at a place of the user's source.
pub(crate) fn fill_at(place: Span, template: &str, values: &[(&str, TokenStream)]) -> TokenStream {
    let tokens = template
        .parse()
        .expect("a template is a list of Rust tokens");
    replace(tokens, values, Span::mixed_site().located_at(place))
}

/// Fills a template whose first token is at one place of the user's source, and the others at another: the compiler reports an
/// error of all of it from the one to the other.
pub(crate) fn fill_across(
    (first, last): (Span, Span),
    template: &str,
    values: &[(&str, TokenStream)],
) -> TokenStream {
    let mut tokens = fill_at(last, template, values).into_iter();
    let mut start = tokens.next().expect("a template has tokens");
    start.set_span(Span::mixed_site().located_at(first));
    TokenStream::from_iter([start])
        .into_iter()
        .chain(tokens)
        .collect()
}

fn replace(tokens: TokenStream, values: &[(&str, TokenStream)], span: Span) -> TokenStream {
    let mut filled = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(mut token) = tokens.next() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => {
                let name = tokens.next().expect("a name follows `$`").to_string();
                let value = values.iter().find(|(key, _)| *key == name);
                filled.extend(value.expect("a template names its values").1.clone());
                continue;
            }
            TokenTree::Group(group) => {
                token = Group::new(group.delimiter(), replace(group.stream(), values, span)).into();
            }
            _ => {}
        }
        token.set_span(span);
        filled.extend([token]);
    }
    filled
}
