//! The kernels in the file that Rust includes: constants for each.

use crate::generate::file::{Described, Number, SourceFile, Stub};
use crate::generate::template::fill;
use crate::generate::words::raw;
use offload_formats::by_name::ByName;
use offload_formats::container::kernels::{Argument, Kernel, source_name};
use offload_formats::escape::terminal;
use std::collections::BTreeSet;

/// Returns a constant for each kernel, under its symbol and under its plain name, and the names of the former. Those whose
/// symbol is not a name in Rust have this `visibility`.
pub(crate) fn constants(described: &[Described], visibility: &str) -> (String, Vec<String>) {
    let mut text = String::new();
    let arguments = Lists::new(described.iter().map(arguments), "Argument", "ARGUMENTS_");
    let images = Lists::new(described.iter().map(images), "KernelImage", "IMAGES_");
    text += &(arguments.constants() + &images.constants());
    let names = source_names(described);
    let constants = symbol_names(described);
    let mut stubs = 0;
    for (index, (kernel, constant)) in described.iter().zip(&constants).enumerate() {
        let public = match constant_name(&kernel.name) {
            Some(_) => "pub ",
            None => visibility,
        };
        let stub = match kernel.stub {
            Some(_) => format!("stub, {stubs}"),
            None => "no_stub, 0".to_owned(),
        };
        stubs += usize::from(kernel.stub.is_some());
        let lists = [arguments.of(index), images.of(index)];
        text += &kernel.constant(public, constant, &names[index], lists, &stub);
    }
    for (index, plain) in plain_names(described, &names) {
        text += &alias("pub ", &plain, &names[index], &constants[index]);
    }
    (text, constants)
}

/// Returns the same for kernels whose constants are in the Rust modules of `sources`.
pub(crate) fn forwarded(described: &[Described], sources: &[SourceFile]) -> (String, Vec<String>) {
    let mut places = ByName::default();
    for source in sources {
        let constants = symbol_names(&source.described);
        for (kernel, constant) in source.described.iter().zip(constants) {
            let place = format!("super::{}::kernel::{constant}", source.name.module);
            places.or_insert(&kernel.name, place);
        }
    }
    let mut text = String::new();
    let names = source_names(described);
    let constants = symbol_names(described);
    for (index, (kernel, constant)) in described.iter().zip(&constants).enumerate() {
        let public = match constant_name(&kernel.name) {
            Some(_) => "pub ",
            None => "",
        };
        let place = places.get(&kernel.name);
        let place = place.expect("each kernel is one of a source");
        text += &alias(public, constant, &names[index], place);
    }
    for (index, plain) in plain_names(described, &names) {
        text += &alias("pub ", &plain, &names[index], &constants[index]);
    }
    (text, constants)
}

/// Returns the name of each kernel in the source. Build scripts, which are not optimized, take long to read a symbol.
fn source_names(described: &[Described]) -> Vec<String> {
    let names = described.iter().map(|kernel| source_name(&kernel.name));
    names.collect()
}

/// Returns the constant `name` that is another one, of a kernel that the source calls `source_name`.
fn alias(public: &str, name: &str, source_name: &str, other: &str) -> String {
    let title = terminal(source_name).to_string();
    format!("\n    /// `{title}`.\n    {public}const {name}: Kernel = {other};\n")
}

/// Returns the name of each kernel's constant.
fn symbol_names(described: &[Described]) -> Vec<String> {
    let numbered = described.iter().enumerate();
    let name = |(index, kernel): (usize, &Described)| {
        constant_name(&kernel.name).unwrap_or_else(|| format!("KERNEL_{index}"))
    };
    numbered.map(name).collect()
}

impl Described {
    /// Returns the constant. Whatever an image says is written as a literal, or escaped in a comment: names of symbols may
    /// hold any character.
    fn constant(
        &self,
        public: &str,
        constant: &str,
        source_name: &str,
        [arguments, images]: [String; 2],
        stub: &str,
    ) -> String {
        fill(
            include_str!("templates/kernel.rs.in"),
            &[
                ("title", &terminal(source_name).to_string()),
                ("public", public),
                ("constant", constant),
                ("name", &format!("{:?}", self.name)),
                ("source_name", &format!("{source_name:?}")),
                ("arguments", &arguments),
                ("images", &images),
                ("stub", stub),
            ],
        )
    }
}

/// Lists of rows, one of each kernel. Those that several kernels have are constants: templates make thousands of kernels, which
/// have some hundred lists, and rustc spends more time on the rows than on all else.
struct Lists {
    rows: Vec<String>,
    /// Type of a row.
    of: &'static str,
    /// Constants of shared lists, by their rows.
    shared: ByName<String>,
}

impl Lists {
    fn new(rows: impl Iterator<Item = String>, of: &'static str, prefix: &str) -> Self {
        let rows: Vec<String> = rows.collect();
        let counted = ByName::counted(rows.iter().filter(|list| !list.is_empty()));
        let several = counted.iter().filter(|(_, count)| **count > 1);
        let named = several.enumerate();
        let named = named.map(|(index, (list, _))| (list.to_owned(), format!("{prefix}{index}")));
        let shared = named.collect();
        Self { rows, of, shared }
    }

    /// Returns the constants of shared lists.
    fn constants(&self) -> String {
        let constant = |(list, constant): (&str, &String)| {
            format!("    const {constant}: &[{}] = &[\n{list}    ];\n", self.of)
        };
        self.shared.iter().map(constant).collect()
    }

    /// Returns the list of the kernel with that index.
    fn of(&self, index: usize) -> String {
        let list = &self.rows[index];
        match self.shared.get(list) {
            Some(shared) => shared.clone(),
            None => format!("&[\n{list}        ]"),
        }
    }
}

/// Returns the rows of a kernel's arguments.
fn arguments(kernel: &Described) -> String {
    kernel.arguments.iter().map(argument).collect()
}

/// Returns the row of an argument.
fn argument(argument: &Argument) -> String {
    let kind = match argument.kind {
        Some(kind) => format!("Some(ArgumentKind::{kind:?})"),
        None => "None".to_owned(),
    };
    let (offset, size) = (Number::from(argument.offset), Number::from(argument.size));
    format!("            Argument {{ offset: {offset}, size: {size}, kind: {kind} }},\n")
}

/// Returns the rows of a kernel in the images that have it.
fn images(kernel: &Described) -> String {
    let images = kernel.images.iter();
    images
        .map(|(target, image)| in_image(target, image))
        .collect()
}

/// Returns the row of a kernel in the image for `target`.
fn in_image(target: &str, kernel: &Kernel) -> String {
    let Kernel {
        max_threads,
        required_threads,
        registers,
        scalar_registers,
        wavefront,
        ..
    } = kernel;
    let (arguments_size, shared_size, private_size) = (
        Number::from(kernel.arguments_size),
        Number::from(kernel.shared_size),
        Number::from(kernel.private_size),
    );
    format!(
        "            KernelImage {{ target: {target:?}, arguments_size: {arguments_size}, \
         max_threads: {max_threads:?}, required_threads: {required_threads:?}, \
         shared_size: {shared_size}, private_size: {private_size}, registers: {registers:?}, \
         scalar_registers: {scalar_registers:?}, wavefront: {wavefront:?} }},\n"
    )
}

/// Constants beside those of the symbols: the last part of the name in the source, without template arguments, for each
/// kernel that alone has it.
fn plain_names(described: &[Described], source_names: &[String]) -> Vec<(usize, String)> {
    let plain = |name: &String| {
        let name = name
            .split('<')
            .next()
            .expect("a split text has a first part");
        let last = name
            .rsplit("::")
            .next()
            .expect("a split text has a first part");
        constant_name(last)
    };
    let names: Vec<Option<String>> = source_names.iter().map(plain).collect();
    let symbols: BTreeSet<String> = described
        .iter()
        .filter_map(|kernel| constant_name(&kernel.name))
        .collect();
    let counted = ByName::counted(names.iter().flatten());
    let is_unique = |name: &String| !symbols.contains(name) && counted.get(name) == Some(&1);
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
        "None",
        "Some",
        "Argument",
        "ArgumentKind",
        "Kernel",
        "KernelImage",
    ];
    let prefixes = ["KERNEL_", "ARGUMENTS_", "IMAGES_"];
    let mut prefixes = prefixes.iter();
    let is_ours = taken.contains(&name) || prefixes.any(|prefix| name.starts_with(prefix));
    (is_word && !is_ours).then(|| raw(name))
}

/// Returns a table of what stands for each kernel on the host, and the function that reads an address from it. A function for
/// each kernel costs rustc as much time as all that a kernel's constant says.
pub(crate) fn stubs(described: &[Described]) -> String {
    let stubs: Vec<&Stub> = described.iter().filter_map(|it| it.stub.as_ref()).collect();
    // Those of one module are alike.
    let (element, address) = match stubs.first() {
        None => return String::new(),
        Some(Stub::Entry { words, address, .. }) => {
            (format!("&[usize; {words}]"), format!("stub[{address}]"))
        }
        Some(Stub::Function { .. }) => ("unsafe extern \"C\" fn()".to_owned(), "*stub".to_owned()),
    };
    let (mut items, mut rows) = (String::new(), String::new());
    for (index, stub) in stubs.iter().enumerate() {
        let (symbol, item, row) = match stub {
            Stub::Entry { symbol, words, .. } => (
                symbol,
                format!("static ENTRY_{index}: [usize; {words}];"),
                format!("unsafe {{ &ENTRY_{index} }}"),
            ),
            Stub::Function { symbol } => (
                symbol,
                format!("fn function_{index}();"),
                format!("function_{index}"),
            ),
        };
        items += &format!("    #[link_name = {symbol:?}]\n    {item}\n");
        rows += &format!("    {row},\n");
    }
    fill(
        include_str!("templates/stubs.rs.in"),
        &[
            ("items", &items),
            ("element", &element),
            ("count", &stubs.len().to_string()),
            ("rows", &rows),
            ("address", &address),
        ],
    )
}
