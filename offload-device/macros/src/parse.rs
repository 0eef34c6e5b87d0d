//! Parses the attribute's arguments and the function.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::syntax_error::SyntaxError;

/// A function that can be a kernel.
pub(crate) struct Kernel {
    /// Tokens of the function, complete.
    pub(crate) function: TokenStream,
    pub(crate) attributes: TokenStream,
    pub(crate) visibility: TokenStream,
    pub(crate) name: Ident,
    /// Arguments with their parentheses.
    pub(crate) parameters: Group,
    pub(crate) item: TokenStream,
    pub(crate) others: Vec<Parameter>,
    pub(crate) body: Group,
}

/// An argument after the first.
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) kind: TokenStream,
}

const ITEM: &str = "expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel";

/// Parses the arguments of the attribute: nothing, or `threads = N`.
pub(crate) fn threads(arguments: TokenStream) -> Result<Option<u32>, SyntaxError> {
    let tokens = flatten(arguments);
    let Some(first) = tokens.first() else {
        return Ok(None);
    };
    if first.to_string() != "threads" {
        return Err(SyntaxError::new(
            format!("expected `threads = N`, found `{first}`"),
            first.span(),
        ));
    }
    let expected = "expected `threads = N` with an integer literal from 1 to 1024";
    match tokens.get(1) {
        Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {}
        Some(other) => {
            return Err(SyntaxError::new(
                format!("{expected}, found `{other}`"),
                other.span(),
            ));
        }
        None => {
            return Err(SyntaxError::new(
                format!("{expected}, found `threads`"),
                first.span(),
            ));
        }
    }
    let Some(value) = tokens.get(2) else {
        return Err(SyntaxError::new(
            format!("{expected}, found no value"),
            tokens[1].span(),
        ));
    };
    let number = match value {
        TokenTree::Literal(literal) => integer(&literal.to_string()),
        _ => None,
    };
    let number = number
        .filter(|number| (1..=1024).contains(number))
        .ok_or_else(|| {
            let found: TokenStream = tokens[2..].iter().cloned().collect();
            SyntaxError {
                last: last_span(&tokens[2..]),
                ..SyntaxError::new(format!("{expected}, found `{found}`"), value.span())
            }
        })?;
    match &tokens[3..] {
        [] => Ok(Some(number)),
        [TokenTree::Punct(comma)] if comma.as_char() == ',' => Ok(Some(number)),
        [TokenTree::Punct(comma), other, ..] if comma.as_char() == ',' => Err(SyntaxError::new(
            format!("expected only `threads = N`, found `{other}`"),
            other.span(),
        )),
        [other, ..] => {
            let found: TokenStream = tokens[2..].iter().cloned().collect();
            Err(SyntaxError::new(
                format!("{expected}, found `{found}`"),
                other.span(),
            ))
        }
    }
}

/// Parses an integer literal: `256`, `0x100`, `1_024` or `256u32`.
fn integer(literal: &str) -> Option<u32> {
    let literal = literal.replace('_', "");
    let (digits, radix) = match literal.get(..2) {
        Some("0x") => (&literal[2..], 16),
        Some("0o") => (&literal[2..], 8),
        Some("0b") => (&literal[2..], 2),
        _ => (&literal[..], 10),
    };
    let suffixes = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    ];
    let digits = suffixes
        .iter()
        .find_map(|suffix| digits.strip_suffix(suffix))
        .unwrap_or(digits);
    u32::from_str_radix(digits, radix).ok()
}

/// Parses a function.
pub(crate) fn kernel(function: TokenStream) -> Result<Kernel, SyntaxError> {
    let tokens: Vec<TokenTree> = function.clone().into_iter().collect();
    let mut at = 0;
    while is_punct(tokens.get(at), '#') {
        at += 2;
    }
    refuse_symbols(&tokens[..at])?;
    let attributes = tokens[..at].iter().cloned().collect();

    let start = at;
    if is_word(tokens.get(at), "pub") {
        at += 1;
        at += usize::from(is_group(tokens.get(at), Delimiter::Parenthesis));
    } else if is_group(tokens.get(at), Delimiter::None) {
        // A `$visibility:vis` of a macro.
        at += 1;
    }
    let visibility = tokens[start..at].iter().cloned().collect();

    let word = function_word(&tokens[at..])?;
    let name = symbol_name(tokens.get(at + 1), word)?;
    at += 2;

    if is_punct(tokens.get(at), '<') {
        let end = tokens[at..]
            .iter()
            .position(|token| is_group(Some(token), Delimiter::Parenthesis));
        let generics = &tokens[at..end.map_or(tokens.len(), |end| at + end)];
        let message = "a kernel cannot have type parameters or lifetimes: an image contains no generic code\n\
            hint: write a generic function, and a kernel for each type that calls it";
        return Err(SyntaxError {
            last: last_span(generics),
            ..SyntaxError::new(message, tokens[at].span())
        });
    }
    let Some(TokenTree::Group(parameters)) = tokens.get(at) else {
        return Err(SyntaxError::new(
            "expected the arguments of a kernel",
            name.span(),
        ));
    };
    at += 1;

    // After a result or `where`, everything to the body belongs to it.
    refuse_result(&tokens[at..tokens.len().saturating_sub(1).max(at)])?;
    let Some(TokenTree::Group(body)) = tokens.get(at) else {
        return Err(SyntaxError::new(
            "expected the body of a kernel",
            name.span(),
        ));
    };

    let mut all = split_arguments(parameters.stream()).into_iter();
    let first = all
        .next()
        .ok_or_else(|| SyntaxError::new(ITEM, parameters.span()))?;
    let item = item_type(&first)?;
    let others = all
        .map(|tokens| parameter(&tokens))
        .collect::<Result<_, _>>()?;
    Ok(Kernel {
        function,
        attributes,
        visibility,
        name: name.clone(),
        parameters: parameters.clone(),
        item,
        others,
        body: body.clone(),
    })
}

/// Refuses attributes that name the symbol of a function, also in `unsafe(…)`.
///
/// The name of a kernel is that of its entry. The function with these attributes is inside the entry.
fn refuse_symbols(attributes: &[TokenTree]) -> Result<(), SyntaxError> {
    for token in flatten(attributes.iter().cloned().collect()) {
        let TokenTree::Group(attribute) = token else {
            continue;
        };
        let mut words = flatten(attribute.stream());
        if let [TokenTree::Ident(word), TokenTree::Group(inner)] = &words[..] {
            if word.to_string() == "unsafe" {
                words = flatten(inner.stream());
            }
        }
        let names_symbol = |word: &&TokenTree| {
            let word = word.to_string();
            word == "no_mangle" || word == "export_name"
        };
        if let Some(word) = words.first().filter(names_symbol) {
            let message = format!("unexpected `{word}`: the name of a kernel is its symbol");
            return Err(SyntaxError::new(message, word.span()));
        }
    }
    Ok(())
}

/// Returns the name of a kernel, which follows a word.
fn symbol_name<'t>(
    token: Option<&'t TokenTree>,
    word: &TokenTree,
) -> Result<&'t Ident, SyntaxError> {
    let Some(TokenTree::Ident(name)) = token else {
        return Err(SyntaxError::new(
            "expected the name of a kernel",
            word.span(),
        ));
    };
    let text = name.to_string();
    let message = if !text.is_ascii() {
        // rustc reports it only in builds for GPUs.
        "expected an ASCII name of a kernel: it is the name of a symbol"
    } else if CALLED_BY_COMPILERS.contains(&text.as_str()) {
        "expected another name of a kernel: compilers call a function of this name"
    } else if text == "WARP_SZ" {
        "expected another name of a kernel: `WARP_SZ` is a word of PTX"
    } else {
        return Ok(name);
    };
    Err(SyntaxError::new(message, name.span()))
}

/// Functions of `core` that compilers call. A kernel of such a name would be missing from the image.
const CALLED_BY_COMPILERS: [&str; 6] = ["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"];

/// Returns the `fn` with which the tokens begin.
fn function_word(tokens: &[TokenTree]) -> Result<&TokenTree, SyntaxError> {
    let Some(word) = tokens.first() else {
        return Err(SyntaxError::new("expected a function", Span::call_site()));
    };
    match word.to_string().as_str() {
        "fn" => Ok(word),
        qualifier @ ("async" | "unsafe" | "const" | "extern" | "safe" | "gen")
            if has_function(tokens) =>
        {
            Err(SyntaxError::new(
                format!("expected a function without qualifiers as a kernel, found `{qualifier}`"),
                word.span(),
            ))
        }
        _ => {
            let message = format!("expected a function as a kernel, found `{word}`");
            Err(SyntaxError::new(message, word.span()))
        }
    }
}

/// Refuses a result type and a `where` clause, the tokens between the arguments and the body of a function.
fn refuse_result(after: &[TokenTree]) -> Result<(), SyntaxError> {
    if is_punct(after.first(), '-') {
        let message = "a kernel cannot return a value\nhint: write results through an argument of type `Global<T>`";
        let end = after
            .iter()
            .position(|token| is_word(Some(token), "where"))
            .unwrap_or(after.len());
        return Err(SyntaxError {
            last: last_span(&after[..end]),
            ..SyntaxError::new(message, after[0].span())
        });
    }
    if is_word(after.first(), "where") {
        let message = "a kernel cannot have a `where` clause: it has no type parameters";
        return Err(SyntaxError {
            last: last_span(after),
            ..SyntaxError::new(message, after[0].span())
        });
    }
    Ok(())
}

/// Returns true if qualifiers are those of a function, rather than of a `const` or `extern` item.
fn has_function(tokens: &[TokenTree]) -> bool {
    let qualifiers = tokens.iter().take_while(|token| match token {
        TokenTree::Ident(word) => ["async", "unsafe", "const", "extern", "safe", "gen"]
            .contains(&word.to_string().as_str()),
        // The ABI.
        TokenTree::Literal(_) => true,
        _ => false,
    });
    is_word(tokens.get(qualifiers.count()), "fn")
}

/// Returns the type of the first argument.
fn item_type(tokens: &[TokenTree]) -> Result<TokenStream, SyntaxError> {
    let all = SyntaxError {
        last: last_span(tokens),
        ..SyntaxError::new(ITEM, tokens[0].span())
    };
    let without_self = tokens.iter().find(|token| is_word(Some(token), "self"));
    if let Some(word) = without_self.filter(|_| {
        !tokens.iter().any(|token| is_punct(Some(token), ':')) || is_word(tokens.first(), "self")
    }) {
        return Err(SyntaxError {
            invalid_function: true,
            ..SyntaxError::new(
                format!("{ITEM}, found `self`: a kernel cannot be a method"),
                word.span(),
            )
        });
    }
    let Parameter { kind, .. } = parameter(tokens)?;
    let tokens = flatten(kind.clone());
    // The type after `&`, whose name can be any: `use offload_device::Item as WorkItem`. The compiler checks the type.
    let is_reference = is_punct(tokens.first(), '&')
        && matches!(
            tokens.get(1),
            Some(TokenTree::Ident(_) | TokenTree::Punct(_))
        );
    let is_shared = !is_word(tokens.get(1), "mut") && !is_punct(tokens.get(1), '\'');
    if is_reference && is_shared {
        Ok(kind)
    } else {
        Err(all)
    }
}

/// Parses `name: Type` or `mut name: Type`.
fn parameter(tokens: &[TokenTree]) -> Result<Parameter, SyntaxError> {
    let error = |message: &str, tokens: &[TokenTree]| {
        let first = tokens[0].span();
        SyntaxError {
            last: last_span(tokens),
            ..SyntaxError::new(message, first)
        }
    };
    if is_punct(tokens.first(), '#') {
        return Err(error(
            "an argument of a kernel cannot have attributes",
            &tokens[..2.min(tokens.len())],
        ));
    }
    let colon = tokens.iter().enumerate().position(|(index, token)| {
        // A `::` in a pattern has its colons side by side.
        let beside = |other: Option<&TokenTree>| is_punct(other, ':');
        is_punct(Some(token), ':')
            && !beside(tokens.get(index + 1))
            && (index == 0 || !beside(tokens.get(index - 1)))
    });
    let pattern = &tokens[..colon.unwrap_or(tokens.len())];
    let without_mut = if is_word(pattern.first(), "mut") {
        &pattern[1..]
    } else {
        pattern
    };
    match (without_mut, colon) {
        ([TokenTree::Ident(name)], Some(colon)) if name.to_string() != "_" => Ok(Parameter {
            name: name.clone(),
            kind: tokens[colon + 1..].iter().cloned().collect(),
        }),
        _ => {
            let pattern = if pattern.is_empty() { tokens } else { pattern };
            Err(error(
                "expected a name for an argument of a kernel, found a pattern",
                pattern,
            ))
        }
    }
}

/// Splits arguments at the commas that are not within `<…>`.
fn split_arguments(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut all = Vec::new();
    let mut current = Vec::new();
    let mut depth = 0_usize;
    for token in tokens {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                '<' => depth += 1,
                // The end of `->` is not that of a list.
                '>' if !is_punct(current.last(), '-') => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    all.push(std::mem::take(&mut current));
                    continue;
                }
                _ => {}
            }
        }
        current.push(token);
    }
    if !current.is_empty() {
        all.push(current);
    }
    all
}

/// Replaces groups without delimiters, in which the fragments of a `macro_rules!` come, by their tokens.
fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let flat = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flatten(group.stream()),
        token => vec![token],
    });
    flat.collect()
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident.to_string() == word)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

fn last_span(tokens: &[TokenTree]) -> Span {
    tokens.last().map_or_else(Span::call_site, TokenTree::span)
}
