//! Demangles kernel names: names in source form, and argument kinds.
//!
//! Mangling: Itanium C++ ABI, <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>, which clang and nvcc use for
//! device code of every host.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use super::ArgumentKind;

/// Maximum size of a demangled name in bytes: substitutions can double a name with every few bytes of the symbol.
const LONGEST: usize = 4096;
/// Maximum depth of nested types; real names have a few dozen.
const DEEPEST: u32 = 128;

/// Marks of clang between the name of a `static` kernel or variable and a hash, which makes the symbol unique in the program.
/// LLVM: `CodeGenModule::printPostfixForExternalizedDecl`; the first two are HIP's, the others CUDA's.
const UNIQUE_MARKS: [&str; 4] = [".intern.", ".static.", "__intern__", "__static__"];

/// Returns the name of a kernel with its namespaces and template arguments, without its parameters: `scale` for
/// `_Z5scalePff`, `ns::scale<float, 256>` for `_ZN2ns5scaleIfLi256EEEvPf`. What makes the symbol of a `static` kernel unique is left out:
/// `scale` for `_ZL5scalePff.intern.65aebf8a67a01698`.
///
/// A symbol that is not a mangled name, or whose name is longer than 4096 bytes, is returned as it is.
#[must_use]
pub fn source_name(symbol: &str) -> String {
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    demangle(symbol, options).unwrap_or_else(|| symbol_in_file(symbol).to_owned())
}

/// Returns the name of a kernel as its declaration spells it, with its parameters, and with the return type if the kernel
/// is of a template: `void f<int>(float*)` for `_Z1fIiEvPf`, `scale(float*, float)` for `_Z5scalePff`. What makes the
/// symbol of a `static` kernel unique is left out.
///
/// A symbol that is not a mangled name, or whose name is longer than 4096 bytes, is returned as it is.
#[must_use]
pub fn signature(symbol: &str) -> String {
    let options = DemangleOptions::new().hide_expression_literal_types();
    demangle(symbol, options).unwrap_or_else(|| symbol_in_file(symbol).to_owned())
}

/// Returns what is before the length of the component that begins at `start` of a mangled name, and that length: `_ZN2v1` and 16 for
/// the component `__device_stub__k` of `_ZN2v116__device_stub__kEPi`. The component before it may end with digits, so the
/// length is one of those for which the name can be demangled. It is more than `shortest`.
#[must_use]
pub fn component_at(symbol: &str, start: usize, shortest: usize) -> Option<(&str, usize)> {
    let (before, component) = symbol.split_at_checked(start)?;
    let name = before.trim_end_matches(|char: char| char.is_ascii_digit());
    let splits = (name.len()..before.len()).filter_map(|place| {
        let (prefix, digits) = before.split_at_checked(place)?;
        let length: usize = digits.parse().ok()?;
        let is_length = !digits.starts_with('0') && length > shortest;
        let after = component.get(length..).filter(|_| is_length)?;
        Some((prefix, length, after))
    });
    let splits: Vec<(&str, usize, &str)> = splits.collect();
    let is_whole = |(prefix, _, after): &&(&str, usize, &str)| {
        demangle(&format!("{prefix}1x{after}"), DemangleOptions::new()).is_some()
    };
    let found = match splits.as_slice() {
        [only] => Some(only),
        several => several.iter().find(is_whole).or(several.first()),
    };
    found.map(|(prefix, length, _)| (*prefix, *length))
}

/// Returns the kind of each parameter of a mangled function name; `None` if `symbol` is not one.
pub(super) fn parameter_kinds(symbol: &str) -> Option<Vec<ArgumentKind>> {
    let name = demangle(symbol, DemangleOptions::new())?;
    let list = name.strip_suffix(')')?;
    let mut types = Vec::new();
    let (mut depth, mut end) = (0_usize, list.len());
    // From the end: the list of parameters is the last pair of parentheses, and types nest in every kind of bracket.
    for (index, byte) in list.bytes().enumerate().rev() {
        match byte {
            b')' | b'>' | b']' | b'}' => depth += 1,
            b'(' if depth == 0 => {
                types.push(list.get(index + 1..end)?.trim());
                types.reverse();
                let is_empty = types == [""] || types == ["void"];
                return Some(match is_empty {
                    true => Vec::new(),
                    false => types.into_iter().map(kind).collect(),
                });
            }
            b'(' | b'<' | b'[' | b'{' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                types.push(list.get(index + 1..end)?.trim());
                end = index;
            }
            _ => {}
        }
    }
    None
}

/// Returns the kind of a parameter from its type. Pointers to members are values: offsets, or a function and an offset.
fn kind(written: &str) -> ArgumentKind {
    let unqualified = written
        .trim_end_matches("const")
        .trim_end_matches("volatile")
        .trim_end_matches("restrict")
        .trim_end();
    let is_pointer = unqualified.ends_with(['*', '&']) && !unqualified.ends_with("::*");
    // `float (&) [4]`, `int (*)(float)`; arguments of templates do not count.
    let is_declarator = |text: &str| text.contains("(*") || text.contains("(&");
    match is_pointer || is_declarator(&without_arguments(unqualified)) {
        true => ArgumentKind::Pointer,
        false => ArgumentKind::Value,
    }
}

/// Returns a type without the arguments of templates.
fn without_arguments(written: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for letter in written.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

/// Returns a symbol without what makes that of a `static` kernel unique: the hash that clang adds, the name of the file that
/// nvcc puts before it.
pub(crate) fn symbol_in_file(symbol: &str) -> &str {
    if let Some(name) = without_file(symbol) {
        return name;
    }
    let is_hash =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut marks = UNIQUE_MARKS.iter();
    let name = marks.find_map(|mark| {
        let (name, hash) = symbol.rsplit_once(mark)?;
        is_hash(hash).then_some(name)
    });
    name.unwrap_or(symbol)
}

/// Returns the symbol of a `static` kernel of nvcc with relocatable device code without the file's name before it: `_Z1kPf` for
/// `__nv_static_7__1_k_cu__Z1kPf`, where 7 is the length of `_1_k_cu`.
fn without_file(symbol: &str) -> Option<&str> {
    let (length, rest) = symbol.strip_prefix("__nv_static_")?.split_once('_')?;
    let symbol = rest.get(length.parse().ok()?..)?.strip_prefix('_')?;
    Some(symbol).filter(|symbol| !symbol.is_empty())
}

fn demangle(symbol: &str, options: DemangleOptions) -> Option<String> {
    let symbol = symbol_in_file(symbol);
    // The bare name of a variable or a C function may be the encoding of a type (`f` is `float`).
    if !symbol.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = BorrowedSymbol::new_with_options(symbol.as_bytes(), &parse).ok()?;
    let mut name = Bounded(String::new());
    let options = options.recursion_limit(DEEPEST);
    symbol.structured_demangle(&mut name, &options).ok()?;
    Some(name.0).filter(|name| !name.is_empty())
}

/// A string of at most [`LONGEST`] bytes.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ArgumentKind::{Pointer, Value};

    /// Checked with c++filt (binutils 2.40).
    #[test]
    fn reads_names_as_sources_spell_them() {
        for (symbol, name) in [
            ("_Z5scalePff", "scale"),
            ("_Z5scaleIfLi256EEvPT_f", "scale<float, 256>"),
            ("_ZN2ns5scaleIdLj4EEEvPT_", "ns::scale<double, 4>"),
            ("_ZN12_GLOBAL__N_15localEPf", "(anonymous namespace)::local"),
            ("_ZL6hiddenPf", "hidden"),
            ("scale", "scale"),
            ("f", "f"),
            ("_Znonsense", "_Znonsense"),
            ("", ""),
        ] {
            assert_eq!(source_name(symbol), name, "{symbol}");
        }
    }

    /// Checked with c++filt (binutils 2.40).
    #[test]
    fn reads_declarations() {
        for (symbol, name) in [
            ("_Z1fIiEvPf", "void f<int>(float*)"),
            ("_Z5scalePff", "scale(float*, float)"),
            (
                "_Z5scaleIfLi256EEvPT_f",
                "void scale<float, 256>(float*, float)",
            ),
            ("_ZN2ns1kEPKd4dim3", "ns::k(double const*, dim3)"),
            (
                "_ZN12_GLOBAL__N_15localEPf",
                "(anonymous namespace)::local(float*)",
            ),
            ("scale", "scale"),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(signature(symbol), name, "{symbol}");
        }
    }

    /// Symbols of clang 22 for `static` kernels, in HIP and in CUDA. A hash may begin with digits or letters.
    #[test]
    fn leaves_out_the_hash_of_static_kernels() {
        for (symbol, name, declaration) in [
            (
                "_ZL5scalePff.intern.65aebf8a67a01698",
                "scale",
                "scale(float*, float)",
            ),
            (
                "_ZL5scalePff.intern.eb370aa796328406",
                "scale",
                "scale(float*, float)",
            ),
            (
                "_ZL5scalePff__intern__65aebf8a67a01698",
                "scale",
                "scale(float*, float)",
            ),
            (
                "_ZL5scaleIfLi256EEvPT_f.intern.65aebf8a67a01698",
                "scale<float, 256>",
                "void scale<float, 256>(float*, float)",
            ),
            ("_ZL6factor.static.65aebf8a67a01698", "factor", "factor"),
            ("_ZL6factor__static__65aebf8a67a01698", "factor", "factor"),
            // nvcc 13.5 with relocatable device code: `static`, in an unnamed namespace.
            (
                "__nv_static_25__38cebf3f_4_s_cu__Z3runPf__Z6hiddenPf",
                "hidden",
                "hidden(float*)",
            ),
            (
                "__nv_static_25__38cebf3f_4_s_cu__Z3runPf__ZN36_GLOBAL__N__38cebf3f_4_s_cu__Z3runPf4tmplIfEEvPT_",
                "(anonymous namespace)::tmpl<float>",
                "void (anonymous namespace)::tmpl<float>(float*)",
            ),
            (
                "__nv_static_99__38cebf3f",
                "__nv_static_99__38cebf3f",
                "__nv_static_99__38cebf3f",
            ),
            ("scale.intern.65aebf8a67a01698", "scale", "scale"),
            ("scale__intern__", "scale__intern__", "scale__intern__"),
            ("an__intern__name", "an__intern__name", "an__intern__name"),
        ] {
            assert_eq!(source_name(symbol), name, "{symbol}");
            assert_eq!(signature(symbol), declaration, "{symbol}");
        }
        let kinds = parameter_kinds("_ZL5scalePff__intern__65aebf8a67a01698");
        assert_eq!(kinds, Some(vec![Pointer, Value]));
    }

    #[test]
    fn tells_pointers_from_values() {
        for (symbol, kinds) in [
            ("_Z5scalePff", Some(vec![Pointer, Value])),
            ("_Z5scaleIfLi256EEvPT_f", Some(vec![Pointer, Value])),
            (
                "_Z1kPKdRK4pairIifE4dim3",
                Some(vec![Pointer, Pointer, Value]),
            ),
            ("_Z1kPFviE", Some(vec![Pointer])),
            ("_Z1kv", Some(vec![])),
            ("_Z1k4pairIPffE", Some(vec![Value])),
            ("_Z1kRA4_fPA4_fOi", Some(vec![Pointer, Pointer, Pointer])),
            ("_Z1kM1SiM1SFivE", Some(vec![Value, Value])),
            ("_Z1k4calcIPFifEEPS1_", Some(vec![Value, Pointer])),
            ("scale", None),
        ] {
            assert_eq!(parameter_kinds(symbol), kinds, "{symbol}");
        }
    }

    #[test]
    fn bounds_names_that_substitutions_double() {
        // `S0_` is `pair`, `S1_` is `pair<int, int>`, and each argument is a pair of the one before, twice.
        let doubled = |times: u32| {
            let mut symbol = "_Z1kI4pairIiiE".to_owned();
            for digit in (1..=times).filter_map(|index| char::from_digit(index, 36)) {
                let digit = digit.to_ascii_uppercase();
                symbol += &format!("S0_IS{digit}_S{digit}_E");
            }
            symbol + "EvT_"
        };
        let short = source_name(&doubled(1));
        assert!(short.starts_with("k<pair<int, int>, pair<"), "{short}");
        let symbol = doubled(30);
        assert_eq!(source_name(&symbol), symbol);
        assert_eq!(parameter_kinds(&symbol), None);
        let deep = format!("_Z1k{}i", "P".repeat(100_000));
        assert_eq!(parameter_kinds(&deep), None);
    }
}
