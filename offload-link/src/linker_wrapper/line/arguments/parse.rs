//! Parses the words of the command line into [`Arguments`].

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{Arguments, Edit, Item, Position, Token, is_driver, rustc_target, walk};
use crate::environment::variable;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::options::{CC, Host, LinkerOptions, OWN, Own};
use crate::linker_wrapper::tool::{LLVM_NAME, PLAIN_NAME};
use crate::options::linker::{Dashes, FoundOption, find};
use crate::options::response_file::{self, Quoting};

/// Facts that parsing of the first argument needs.
#[derive(Clone, Debug, Default)]
struct Told {
    linker: Option<OsString>,
    /// Triple of the host.
    triple: Option<OsString>,
    /// Family of the last emulation, the value of `-m`, that tells one.
    emulation: Option<Family>,
}

impl Told {
    fn by(tokens: &[Token], dashes: Dashes) -> Self {
        let mut told = Self::default();
        let all = tokens;
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            let mut value = || tokens.next().map(|token| token.text.clone());
            if let Some(name) = token.text.as_encoded_bytes().strip_prefix(b"-m") {
                let found = match name {
                    b"" => value().and_then(|name| Family::of_emulation(name.as_encoded_bytes())),
                    name => Family::of_emulation(name),
                };
                told.emulation = found.or(told.emulation);
                continue;
            }
            match find(OWN, &token.text, dashes) {
                Some(FoundOption::Value(Own::LinkerPath, value)) => told.linker = Some(value),
                Some(FoundOption::Next(Own::LinkerPath)) => told.linker = value(),
                Some(FoundOption::Value(Own::HostTriple, value)) => told.triple = Some(value),
                Some(FoundOption::Next(Own::HostTriple)) => told.triple = value(),
                _ => {}
            }
            if dashes == Dashes::Two && told.triple.is_none() {
                told.triple = behind_a_driver(&token.text);
                match find(CC, &token.text, Dashes::One) {
                    Some(FoundOption::Value(Host::Target, value)) => told.triple = Some(value),
                    Some(FoundOption::Next(Host::Target)) => told.triple = value(),
                    _ => {}
                }
            }
        }
        if dashes == Dashes::Two && told.triple.is_none() {
            told.triple = all.iter().find_map(|token| rustc_target(&token.text));
        }
        told
    }

    /// Returns the family of the host linker.
    fn family(&self, position: Position) -> Family {
        let compiler = match (position, &self.linker) {
            (Position::Driver, None) => named_compiler(),
            _ => None,
        };
        let name = self.linker.as_deref().or(compiler.as_deref());
        let family = Family::of(self.triple.as_deref(), name);
        match (position, &self.triple, self.emulation) {
            (Position::Linker { .. }, None, Some(of_emulation)) if family == Family::Gnu => {
                of_emulation
            }
            _ => family,
        }
    }
}

/// Returns the compiler of `OFFLOAD_CC`, without its arguments. It may not count if a variable names that of one host
/// (`host_linker.rs`).
fn named_compiler() -> Option<OsString> {
    let named = variable("OFFLOAD_CC")?;
    let is_for_a_host = |(name, value): (OsString, OsString)| {
        name.as_encoded_bytes().starts_with(b"OFFLOAD_CC_") && !value.is_empty()
    };
    if env::vars_os().any(is_for_a_host) {
        return None;
    }
    let mut words = named.to_str()?.split_whitespace();
    words.next().map(OsString::from)
}

/// Returns `<triple>` of `-Wl,--host-triple=<triple>`.
fn behind_a_driver(text: &OsStr) -> Option<OsString> {
    let mut parts = text.to_str()?.strip_prefix("-Wl,")?.split(',');
    let triple = parts.find_map(|part| part.strip_prefix("--host-triple="));
    triple.map(OsString::from)
}

/// Tells whether `tool` always takes the arguments of a linker.
fn is_linker(tool: &str) -> bool {
    [LLVM_NAME, PLAIN_NAME, "offload-ld", "ld.offload"].contains(&tool)
}

impl Position {
    fn of(tool: &str, told: &Told, tokens: &[Token]) -> Self {
        // No linker takes these; wrappers of compiler drivers have any name.
        let is_for_driver = |token: &Token| token.text.as_encoded_bytes().starts_with(b"-Wl,");
        let is_driver = |path: &OsStr| is_driver(path) || tokens.iter().any(is_for_driver);
        match (tool, &told.linker) {
            (LLVM_NAME, linker) => Self::Linker {
                answers: linker.is_none(),
            },
            (tool, _) if is_linker(tool) => Self::Linker { answers: false },
            (_, Some(path)) if !is_driver(path) => Self::Linker { answers: false },
            _ => Self::Driver,
        }
    }
}

impl Arguments {
    /// Parses `argv`, which does not contain the program's name `tool`.
    pub(crate) fn parse(argv: Vec<OsString>, tool: &str) -> Result<Self, LinkError> {
        let mut tokens = tokens(&argv, Quoting::Gnu)?;
        let dashes = match is_linker(tool) {
            true => Dashes::Either,
            false => Dashes::Two,
        };
        let told = Told::by(&tokens, dashes);
        let position = Position::of(tool, &told, &tokens);
        let family = told.family(position);
        if family == Family::Coff {
            tokens = self::tokens(&argv, Quoting::Windows)?;
        }
        let arguments = Self {
            position,
            family,
            options: LinkerOptions::default(),
            items: Vec::new(),
            output: None,
            library_dirs: Vec::new(),
            own_library_dirs: 0,
            sysroot: None,
            roots: Vec::new(),
            root_pattern: None,
            prefixes: Vec::new(),
            wrapped: Vec::new(),
            groups: Vec::new(),
            fortran_common: None,
            dependency_file: None,
            as_needed: Vec::new(),
            relocatable: false,
            chosen_linker: None,
            target: None,
            unread_inputs: false,
            no_link: false,
            compiles: false,
            all_static: false,
            no_libraries: false,
            tokens: Vec::new(),
            argv,
            insertion: None,
        };
        let (mut arguments, output) = walk::walk(arguments, &mut tokens)?;
        arguments.insertion = arguments.insertion_point(output, tokens.len());
        arguments.tokens = tokens;
        Ok(arguments)
    }

    /// Returns the position before the first input after `-o`, or before the first of all; never after the libraries,
    /// before objects that must be first or last, or where an object is taken for data or loaded on demand. For
    /// Windows, order does not matter for archive members, so
    /// objects follow the output like in LLVM.
    fn insertion_point(&self, output: Option<usize>, end: usize) -> Option<usize> {
        let inputs = || {
            self.items.iter().filter_map(|item| match item {
                Item::File {
                    token,
                    path,
                    takes_objects: true,
                    ..
                } if !is_frame(path) => Some(*token),
                _ => None,
            })
        };
        let has_files = self
            .items
            .iter()
            .any(|item| matches!(item, Item::File { .. }));
        if let (Family::Coff, Some(output)) = (self.family, output) {
            return Some(output + 1);
        }
        let after = output.filter(|_| !self.relocatable).unwrap_or(0);
        inputs()
            .find(|token| *token > after)
            .or_else(|| inputs().next())
            .or(Some(if has_files { 0 } else { end }))
    }
}

/// Tells whether an object belongs to the C runtime, which puts it after all others, or to Rust's frame for MinGW.
fn is_frame(path: &Path) -> bool {
    let frame = ["crtend.o", "crtendS.o", "crtn.o", "rsbegin.o", "rsend.o"];
    let name = path.file_name().unwrap_or_default();
    frame.iter().any(|frame| name == *frame)
}

/// Returns the arguments with response files expanded.
fn tokens(argv: &[OsString], quoting: Quoting) -> Result<Vec<Token>, LinkError> {
    let mut tokens = Vec::with_capacity(argv.len());
    for (origin, text) in argv.iter().enumerate() {
        let token = |text| Token {
            text,
            origin,
            edit: Edit::Keep,
        };
        if !text.as_encoded_bytes().starts_with(b"@") {
            tokens.push(token(text.clone()));
            continue;
        }
        let expanded = response_file::expand(text, quoting)
            .map_err(|error| LinkError::Option(error.to_string()))?;
        tokens.extend(expanded.into_iter().map(token));
    }
    Ok(tokens)
}
