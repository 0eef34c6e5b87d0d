//! A test is ignored for one of two reasons: `make test-all` runs it, or something else does, and `.ci/test` leaves it out by
//! its name.

use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::support;

/// Collects names and reasons of ignored tests.
#[derive(Default)]
struct Ignored(Vec<(String, String)>);

impl<'ast> Visit<'ast> for Ignored {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let ignores = function
            .attrs
            .iter()
            .filter(|it| it.path().is_ident("ignore"));
        self.0.extend(ignores.map(|attribute| {
            let reason = match attribute.meta.require_name_value().map(|it| &it.value) {
                Ok(syn::Expr::Lit(literal)) => match &literal.lit {
                    syn::Lit::Str(text) => text.value(),
                    _ => String::new(),
                },
                _ => String::new(),
            };
            (function.sig.ident.to_string(), reason)
        }));
        visit::visit_item_fn(self, function);
    }
}

#[test]
fn runs_every_ignored_test_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = support::run(
        std::process::Command::new("git")
            .args(["ls-files", "*.rs"])
            .current_dir(&root),
    );
    let script = fs::read_to_string(root.join(".ci/test")).unwrap();
    let mut ignored = Ignored::default();
    for file in listed.lines() {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        if text.contains("#[ignore") {
            ignored.visit_file(&syn::parse_file(&text).unwrap());
        }
    }
    let is_left_out = |name: &str| {
        script
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .any(|word| word == name)
    };
    for (name, reason) in &ignored.0 {
        let is_long = reason.starts_with("`make test-all`: ");
        assert!(
            is_long != is_left_out(name),
            "{name} is ignored: expected the reason \"`make test-all`: …\" or its name in .ci/test, found {reason:?}"
        );
    }
    assert!(ignored.0.len() > 2, "{:?}", ignored.0);
}
