//! Writes what is linked into a crate of kernels in Rust: functions that Rust does not have, and limits of kernels.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_formats::format::bitcode::{self, BitcodeError};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Start of the names of functions that kernels with a limit of work-items call: `__offload_threads$<kernel>$<limit>$`
/// (`offload-device/macros`).
const LIMIT: &str = "__offload_threads$";

/// Names of LLVM's trap, and of the function of `amdgpu.ll` that has one. No function of Rust has such a name.
const TRAP: &[u8; 9] = b"llvm.trap";
const TRAP_FUNCTION: &[u8; 9] = b"offl.trap";

/// Writes the functions as LLVM IR or bitcode, and a table of attributes as LLVM's `-forceattrs-csv-path` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelFunctions {
    /// Bitcode of the crate.
    pub(crate) bitcode: PathBuf,
    /// The target as the manifest spells it.
    pub(crate) target: String,
    pub(crate) is_amdgpu: bool,
    /// File for bitcode of the crate that calls a function in place of each trap, if LLVM fails at traps.
    pub(crate) with_trap_calls: Option<PathBuf>,
    /// Functions that every crate may call, as LLVM IR.
    pub(crate) text: &'static str,
    pub(crate) files: FunctionFiles,
    pub(crate) attributes: PathBuf,
}

/// Files of functions, for the program that reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FunctionFiles {
    /// LLVM IR: all functions.
    Text(PathBuf),
    /// Bitcode: a file with these bytes, functions that every crate may call, and one with those that mark limits.
    Bitcode {
        bytes: &'static [u8],
        functions: PathBuf,
        limits: PathBuf,
    },
}

impl FunctionFiles {
    /// Returns the paths.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Text(path) => vec![path],
            Self::Bitcode {
                functions, limits, ..
            } => vec![functions, limits],
        }
    }
}

/// A kernel with a limit of work-items in a workgroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Limit {
    kernel: String,
    items: u32,
}

impl Limit {
    /// Reads the name of a function.
    fn parse(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?.strip_prefix(LIMIT)?;
        let (kernel, items) = name.strip_suffix('$')?.rsplit_once('$')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        kernel.chars().all(is_plain).then_some(())?;
        let items = items.parse().ok()?;
        Some(Self {
            kernel: kernel.to_owned(),
            items,
        })
    }

    /// Returns the name of the function that marks it.
    fn function(&self) -> String {
        let Self { kernel, items } = self;
        format!("{LIMIT}{kernel}${items}$")
    }

    /// Returns the row of the table.
    fn row(&self, is_amdgpu: bool) -> String {
        let Self { kernel, items } = self;
        match is_amdgpu {
            true => format!("{kernel},amdgpu-flat-work-group-size=1,{items}\n"),
            false => format!("{kernel},nvvm.maxntid={items}\n"),
        }
    }
}

impl KernelFunctions {
    fn problem_of_bitcode(&self) -> impl Fn(BitcodeError) -> Error + '_ {
        |problem| Error::new(format_args!("{}: {problem}", self.bitcode.display()))
    }

    /// Lists the limits, sorted.
    fn limits(&self, bytes: &[u8]) -> Result<Vec<Limit>, Error> {
        let range = 0..bytes.len() as u64;
        let symbols = bitcode::symbols(bytes, range).map_err(self.problem_of_bitcode())?;
        let mut limits = Vec::new();
        for symbol in symbols.iter().filter(|symbol| !symbol.defined) {
            let Some(limit) = Limit::parse(symbol.name) else {
                continue;
            };
            if let Err(place) = limits.binary_search(&limit) {
                limits.insert(place, limit);
            }
        }
        Ok(limits)
    }

    /// Returns the files of functions and their content.
    fn functions(&self, limits: &[Limit]) -> Vec<(&Path, Vec<u8>)> {
        let names = limits.iter().map(Limit::function);
        match &self.files {
            FunctionFiles::Text(path) => {
                let empty = names.map(|name| {
                    format!("define hidden void @\"{name}\"() alwaysinline nounwind {{\n  ret void\n}}\n")
                });
                let text = empty.fold(self.text.to_owned(), |text, function| text + &function);
                vec![(path, text.into_bytes())]
            }
            FunctionFiles::Bitcode {
                bytes,
                functions,
                limits,
            } => {
                let names: Vec<String> = names.collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let [triple, layout] =
                    ["triple", "datalayout"].map(|name| of_target(self.text, name));
                let empty = bitcode::empty_functions(triple, layout, &names);
                vec![(functions, bytes.to_vec()), (limits, empty)]
            }
        }
    }

    fn outputs(&self) -> Vec<&Path> {
        let mut outputs = self.files.paths();
        outputs.push(&self.attributes);
        outputs.extend(self.with_trap_calls.as_deref());
        outputs
    }
}

/// Returns what LLVM IR says of its target: `triple` or `datalayout`.
fn of_target<'t>(text: &'t str, name: &str) -> &'t str {
    let start = format!("target {name} = \"");
    let value = text.lines().find_map(|line| line.strip_prefix(&start));
    let value = value.and_then(|value| value.strip_suffix('"'));
    value.expect("our own text has it")
}

impl Step for KernelFunctions {
    fn title(&self) -> String {
        format!("functions of kernels for {}", self.target)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "# {}, in this process:", self.title())?;
        for path in self.outputs() {
            write!(f, " {}", path.display())?;
        }
        writeln!(f)
    }

    fn execute(&self, digests: &Digests) -> Result<Done, Failure> {
        let mut bytes = fs::read(&self.bitcode).map_err(error::io(&self.bitcode))?;
        let limits = self.limits(&bytes)?;
        let rows: String = limits
            .iter()
            .map(|limit| limit.row(self.is_amdgpu))
            .collect();
        let mut made = self.functions(&limits);
        made.push((&self.attributes, rows.into_bytes()));
        if let Some(path) = &self.with_trap_calls {
            let renamed = bitcode::rename_function(&mut bytes, TRAP, TRAP_FUNCTION);
            renamed.map_err(self.problem_of_bitcode())?;
            made.push((path, bytes));
        }
        for (path, bytes) in made {
            files::write(path, &bytes).map_err(error::io(path))?;
            digests.forget(path);
        }
        Ok(Done::default())
    }

    fn made(&self) -> Made {
        let outputs = self.outputs().into_iter().map(Path::to_owned).collect();
        Made::in_process(self.title(), outputs, vec![self.bitcode.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_limits_of_kernels() {
        let row = |name: &str, is_amdgpu| Some(Limit::parse(name.as_bytes())?.row(is_amdgpu));
        let name = "__offload_threads$sum_of$256$";
        assert_eq!(
            row(name, true).unwrap(),
            "sum_of,amdgpu-flat-work-group-size=1,256\n"
        );
        assert_eq!(row(name, false).unwrap(), "sum_of,nvvm.maxntid=256\n");
        for wrong in [
            "__offload_threads$sum$256",
            "__offload_threads$sum$x$",
            "__offload_threads$a,b$1$",
            "__offload_barrier",
        ] {
            assert_eq!(row(wrong, true), None, "{wrong}");
        }
    }
}
