//! The kernels in the file that Rust includes: constants for each.

use crate::generate::file::{Described, HostFile, Number, Stub};
use offload_formats::container::kernels::{Argument, Kernel, source_name};
use offload_formats::escape::terminal;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

impl HostFile {
    /// A constant for each kernel, under its symbol and under its plain name, and all of them.
    pub(crate) fn write_kernels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n/// The kernels that the program starts.\n\
             #[allow(dead_code, unreachable_pub, non_upper_case_globals)]\npub mod kernel {{\n    \
             #[allow(unused_imports)]\n    use super::{{Argument, ArgumentKind, Kernel, KernelImage}};"
        )?;
        let mut constants = Vec::new();
        for (index, kernel) in self.described.iter().enumerate() {
            let (public, constant) = match constant_name(&kernel.name) {
                Some(constant) => ("pub ", constant),
                None => ("", format!("KERNEL_{index}")),
            };
            let stub = match kernel.stub {
                Some(_) => format!("stub_{index}"),
                None => "no_stub".to_owned(),
            };
            kernel.write(f, public, &constant, &stub)?;
            constants.push(constant);
        }
        for (index, plain) in plain_names(&self.described) {
            if let (Some(constant), Some(kernel)) =
                (constants.get(index), self.described.get(index))
            {
                writeln!(
                    f,
                    "\n    /// `{}`.\n    pub const {plain}: Kernel = {constant};",
                    terminal(&source_name(&kernel.name))
                )?;
            }
        }
        writeln!(
            f,
            "\n    /// All of them.\n    pub static ALL: &[Kernel] = &[{}];\n}}",
            constants.join(", ")
        )
    }
}

impl Described {
    /// Writes the constant. Whatever an image says is written as a literal, or escaped in a comment: names of symbols may
    /// hold any character.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        public: &str,
        constant: &str,
        stub: &str,
    ) -> fmt::Result {
        let name = &self.name;
        let source_name = source_name(name);
        writeln!(
            f,
            "\n    /// `{}`.\n    {public}const {constant}: Kernel = Kernel {{\n        name: {name:?},\n        \
             source_name: {source_name:?},\n        arguments: &[",
            terminal(&source_name)
        )?;
        for Argument { offset, size, kind } in &self.arguments {
            let kind = match kind {
                Some(kind) => format!("Some(ArgumentKind::{kind:?})"),
                None => "None".to_owned(),
            };
            let (offset, size) = (Number::from(*offset), Number::from(*size));
            writeln!(
                f,
                "            Argument {{ offset: {offset}, size: {size}, kind: {kind} }},"
            )?;
        }
        writeln!(f, "        ],\n        images: &[")?;
        for (target, image) in &self.images {
            let Kernel {
                arguments_size,
                max_threads,
                required_threads,
                shared_size,
                private_size,
                registers,
                scalar_registers,
                wavefront,
                ..
            } = image;
            let (arguments_size, shared_size, private_size) = (
                Number::from(*arguments_size),
                Number::from(*shared_size),
                Number::from(*private_size),
            );
            writeln!(
                f,
                "            KernelImage {{ target: {target:?}, arguments_size: {arguments_size}, \
                 max_threads: {max_threads:?}, required_threads: {required_threads:?}, \
                 shared_size: {shared_size}, private_size: {private_size}, registers: {registers:?}, \
                 scalar_registers: {scalar_registers:?}, wavefront: {wavefront:?} }},"
            )?;
        }
        writeln!(
            f,
            "        ],\n        stub: super::linked::{stub},\n    }};"
        )
    }
}

/// Constants beside those of the symbols: the last part of the name in the source, without template arguments, for each
/// kernel that alone has it.
fn plain_names(described: &[Described]) -> Vec<(usize, String)> {
    let plain = |kernel: &Described| {
        let name = source_name(&kernel.name);
        let name = name.split('<').next().unwrap_or_default();
        let last = name.rsplit("::").next().unwrap_or_default();
        constant_name(last)
    };
    let names: Vec<Option<String>> = described.iter().map(plain).collect();
    let symbols: BTreeSet<String> = described
        .iter()
        .filter_map(|kernel| constant_name(&kernel.name))
        .collect();
    let is_unique = |name: &String| {
        !symbols.contains(name)
            && names
                .iter()
                .flatten()
                .filter(|other| *other == name)
                .count()
                == 1
    };
    let unique = names.iter().enumerate();
    let unique = unique.filter_map(|(index, name)| Some((index, name.clone()?)));
    unique.filter(|(_, name)| is_unique(name)).collect()
}

/// The constant of a kernel: its name, where that is an identifier and no word of Rust's or ours.
fn constant_name(name: &str) -> Option<String> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_word = name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit());
    let taken = [
        "_",
        "self",
        "Self",
        "super",
        "crate",
        "ALL",
        "Argument",
        "ArgumentKind",
        "Kernel",
        "KernelImage",
    ];
    let is_ours = taken.contains(&name) || name.starts_with("KERNEL_");
    (is_word && !is_ours).then(|| match KEYWORDS.contains(&name) {
        true => format!("r#{name}"),
        false => name.to_owned(),
    })
}

/// Words of Rust, of all editions, that `r#` makes names of.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while",
];

/// What reads the address that stands for each kernel on the host.
pub(crate) fn write_stubs(described: &[Described], out: &mut String) -> fmt::Result {
    let stubs = described.iter().enumerate();
    let stubs = stubs.filter_map(|(index, kernel)| Some((index, kernel.stub.as_ref()?)));
    writeln!(
        out,
        "type Address = *const ::core::ffi::c_void;\n\npub(crate) fn no_stub() -> Option<Address> {{\n    None\n}}\n"
    )?;
    for (index, stub) in stubs {
        let (item, symbol, address) = match stub {
            Stub::Entry {
                symbol,
                words,
                address,
            } => (
                format!("static ENTRY_{index}: [usize; {words}]"),
                symbol,
                format!("unsafe {{ ENTRY_{index}[{address}] }}"),
            ),
            Stub::Function { symbol } => (
                format!("fn function_{index}()"),
                symbol,
                format!("function_{index}"),
            ),
        };
        writeln!(
            out,
            "unsafe extern \"C\" {{\n    #[link_name = {symbol:?}]\n    {item};\n}}\n\n\
             #[inline(never)]\npub(crate) fn stub_{index}() -> Option<Address> {{\n    Some({address} as Address)\n}}\n"
        )?;
    }
    Ok(())
}
