//! Errors that a macro reports to the compiler.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// An error at a place of the source.
pub(crate) struct SyntaxError {
    pub(crate) message: String,
    pub(crate) first: Span,
    pub(crate) last: Span,
    /// True if the compiler would report an error of its own.
    pub(crate) invalid_function: bool,
}

impl SyntaxError {
    pub(crate) fn new(message: impl Into<String>, at: Span) -> Self {
        Self {
            message: message.into(),
            first: at,
            last: at,
            invalid_function: false,
        }
    }

    /// Returns `compile_error! { "message" }` at the place.
    pub(crate) fn to_tokens(&self) -> TokenStream {
        let mut message = Literal::string(&self.message);
        message.set_span(self.last);
        let mut block = Group::new(Delimiter::Brace, TokenTree::from(message).into());
        block.set_span(self.last);
        let punct = |character, spacing| {
            let mut punct = Punct::new(character, spacing);
            punct.set_span(self.first);
            TokenTree::from(punct)
        };
        let path = |name: &str| {
            let place = self.first;
            [
                punct(':', Spacing::Joint),
                punct(':', Spacing::Alone),
                TokenTree::from(Ident::new(name, place)),
            ]
        };
        path("core")
            .into_iter()
            .chain(path("compile_error"))
            .chain([punct('!', Spacing::Alone), TokenTree::from(block)])
            .collect()
    }
}
