//! The kernels in the file that Rust includes: a constant for each.

use super::{Described, HostFile, Stub};
use crate::container::kernels::Kernel;
use std::fmt::{self, Write as _};

impl HostFile {
    /// A constant for each kernel whose name Rust takes, and all of them.
    pub(super) fn write_kernels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n/// The kernels that the program starts.\n#[allow(dead_code, non_upper_case_globals)]\npub mod kernel {{\n    \
             #[allow(unused_imports)]\n    use super::{{Argument, Kernel, KernelImage}};"
        )?;
        for (index, kernel) in self.described.iter().enumerate() {
            let name = &kernel.name;
            let (public, constant) = match constant_name(name) {
                Some(constant) => ("pub ", constant),
                None => ("", format!("KERNEL_{index}")),
            };
            writeln!(
                f,
                "\n    /// `{name}`.\n    {public}const {constant}: Kernel = Kernel {{"
            )?;
            writeln!(
                f,
                "        name: {name:?},\n        arguments: &{:?},",
                kernel.arguments
            )?;
            writeln!(f, "        images: &[")?;
            for (target, image) in &kernel.images {
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
                writeln!(
                    f,
                    "            KernelImage {{ target: {target:?}, arguments_size: {arguments_size}, \
                     max_threads: {max_threads:?}, required_threads: {required_threads:?}, \
                     shared_size: {shared_size}, private_size: {private_size}, registers: {registers:?}, \
                     scalar_registers: {scalar_registers:?}, wavefront: {wavefront:?} }},"
                )?;
            }
            let stub = match kernel.stub {
                Some(_) => format!("stub_{index}"),
                None => "no_stub".to_owned(),
            };
            writeln!(
                f,
                "        ],\n        stub: super::linked::{stub},\n    }};"
            )?;
        }
        let all = self.described.iter().enumerate().map(|(index, kernel)| {
            constant_name(&kernel.name).unwrap_or_else(|| format!("KERNEL_{index}"))
        });
        let all: Vec<String> = all.collect();
        writeln!(
            f,
            "\n    /// All of them.\n    pub static ALL: &[Kernel] = &[{}];\n}}",
            all.join(", ")
        )
    }
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
pub(super) fn write_stubs(described: &[Described], out: &mut String) -> fmt::Result {
    let stubs = described.iter().enumerate();
    let stubs = stubs.filter_map(|(index, kernel)| Some((index, kernel.stub.as_ref()?)));
    writeln!(
        out,
        "type Address = *const ::core::ffi::c_void;\n\npub(super) fn no_stub() -> Option<Address> {{\n    None\n}}\n"
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
             #[inline(never)]\npub(super) fn stub_{index}() -> Option<Address> {{\n    Some({address} as Address)\n}}\n"
        )?;
    }
    Ok(())
}
