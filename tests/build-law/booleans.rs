//! No call passes `true` or `false` to a function of ours: a reader of `f(x, true)` does not see what is true.
//!
//! A parameter may be a `bool` if calls name the property: `f(x, is_linked)`, `f(x, id == Host::WholeArchive)`.
//! Methods that set a key of the manifest are for build scripts, where the method names the property: `.rdc(true)`.

use std::collections::BTreeMap;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::floors::{CRATES, sources};

/// Functions with parameters of the type `bool`, by name: for each function of that name, which of its parameters are
/// (without `self`).
type Functions = BTreeMap<String, Vec<Vec<bool>>>;

/// Collects the functions.
#[derive(Default)]
struct Declared(Functions);

/// Collects the calls of `functions` with a literal in the place of such a parameter.
struct Calls<'a> {
    functions: &'a Functions,
    found: Vec<String>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        let path = attribute.path();
        let is_cfg = || {
            attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|of| of.is_ident("test"))
        };
        path.is_ident("test") || path.is_ident("cfg") && is_cfg()
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let types = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Receiver(_) => None,
            syn::FnArg::Typed(typed) => Some(&*typed.ty),
        });
        let is_bool =
            |ty: &syn::Type| matches!(ty, syn::Type::Path(path) if path.path.is_ident("bool"));
        let which: Vec<bool> = types.map(is_bool).collect();
        if which.contains(&true) {
            self.0
                .entry(signature.ident.to_string())
                .or_default()
                .push(which);
        }
    }
}

impl Calls<'_> {
    fn check<'e>(&mut self, name: &syn::Ident, args: impl Iterator<Item = &'e syn::Expr>) {
        let is_literal = |arg: &syn::Expr| {
            matches!(
                arg,
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Bool(_),
                    ..
                })
            )
        };
        let args: Vec<bool> = args.map(is_literal).collect();
        let Some(functions) = self.functions.get(&name.to_string()) else {
            return;
        };
        let matches = |which: &&Vec<bool>| {
            which.len() == args.len() && which.iter().zip(&args).any(|(is, arg)| *is && *arg)
        };
        if functions.iter().any(|which| matches(&which)) {
            self.found.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let last = path.path.segments.last().expect("a path has a segment");
            self.check(&last.ident, call.args.iter());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        // The standard library's: `OpenOptions::new().write(true)`.
        self.check(&call.method, call.args.iter());
        visit::visit_expr_method_call(self, call);
    }
}

/// The calls with a literal in the sources of one crate, each as file and function.
fn calls(files: &[(Vec<String>, syn::File)]) -> Vec<String> {
    let mut declared = Declared::default();
    files.iter().for_each(|(_, file)| declared.visit_file(file));
    let mut all = Vec::new();
    for (module, file) in files {
        let mut calls = Calls {
            functions: &declared.0,
            found: Vec::new(),
        };
        calls.visit_file(file);
        let module = module.join("::");
        all.extend(calls.found.iter().map(|name| format!("{module}: {name}")));
    }
    all
}

#[test]
fn passes_no_literal_to_a_boolean_parameter() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for name in CRATES {
        let files = sources(&root.join(name).join("src")).into_iter();
        let files = files.map(|(module, text)| (module, syn::parse_file(&text).unwrap()));
        let files: Vec<_> = files.collect();
        found.extend(
            calls(&files)
                .into_iter()
                .map(|call| format!("{name}: {call}")),
        );
    }
    assert_eq!(
        found,
        Vec::<String>::new(),
        "pass an enum, or write two functions"
    );
}

#[test]
fn finds_literals() {
    let text = "fn f(text: &str, is_dry: bool) {}\n\
                impl A { fn g(&self, on: bool) {} }\n\
                fn h(on: bool, off: bool) { f(\"\", on); a.g(on); f(\"\", true); a.g(false); a.g(true, 1); k(true) }\n\
                #[cfg(test)] mod tests { fn t() { f(\"\", true) } }";
    let file = (vec!["m".to_owned()], syn::parse_file(text).unwrap());
    assert_eq!(calls(&[file]), ["m: f", "m: g"]);
}
