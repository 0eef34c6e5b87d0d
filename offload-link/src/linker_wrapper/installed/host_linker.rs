//! Finds the host linker.

use std::cell::OnceCell;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offload_build::tools::{Command, GUARD};
use offload_formats::container::elf::Machine;

use crate::environment::variable;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::elf_linker::ElfLinker;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::tool::{TOOL_NAMES, tool_name};

/// MinGW's compiler, under the name that rustc uses.
const MINGW: &str = "x86_64-w64-mingw32-gcc";

/// Tells whether this tool is, directly or indirectly, a child of itself.
pub(crate) fn is_nested() -> bool {
    variable(GUARD).is_some()
}

/// Finds the program, and returns it with the arguments that precede all others.
pub(crate) fn find(arguments: &Arguments, host: Option<Machine>) -> Result<Command, LinkError> {
    let driver = arguments.position == Position::Driver;
    if let Some(path) = &arguments.options.linker {
        return Ok(Command::new(path));
    }
    let answers = arguments.position == (Position::Linker { answers: true });
    if answers && !arguments.options.emit_fatbin_only {
        return Err(LinkError::NoLinkerPath);
    }
    if let Some(next) = (!driver).then(next_ld).flatten() {
        return Ok(Command::new(next));
    }
    if is_nested() {
        return Err(LinkError::Recursion);
    }
    if !driver {
        return Ok(Command::new("ld"));
    }
    let foreign = || {
        if arguments.family == Family::MinGw {
            return in_path(MINGW).then(|| OsString::from(MINGW));
        }
        let gcc = host::foreign_compiler(host?)?;
        in_path(gcc).then(|| OsString::from(gcc))
    };
    let declared = host::target(arguments, host)
        .map(|target| format!("OFFLOAD_CC_{}", target.replace(['-', '.'], "_")))
        .and_then(variable);
    let named = declared
        .or_else(|| variable("OFFLOAD_CC"))
        .or_else(foreign)
        .or_else(|| variable("CC"))
        .filter(|value| !is_ourselves(value))
        .unwrap_or_else(|| "cc".into());
    // Like CC in make and cargo: a program, and arguments separated by spaces.
    if Path::new(&named).is_file() {
        return Ok(Command::new(named));
    }
    let text = named.to_string_lossy().into_owned();
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or("cc");
    Ok(Command::new(program).args(words))
}

fn in_path(name: &str) -> bool {
    programs(name).next().is_some()
}

/// Returns the programs called `name` in `PATH`.
fn programs(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let programs = folders.into_iter().map(move |dir| dir.join(name));
    programs.filter(|program| program.is_file())
}

/// Returns the next `ld` in `PATH` if the first one is this tool.
fn next_ld() -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let this = env::current_exe().ok().as_deref().and_then(real)?;
    let is_this = |path: &PathBuf| real(path).is_some_and(|real| real == this);
    let mut programs = programs("ld");
    programs.next().filter(is_this)?;
    programs.find(|program| !is_this(program))
}

/// Tells whether `program` has a name of this tool and is this file.
fn is_ourselves(program: &OsStr) -> bool {
    if !TOOL_NAMES.contains(&&*tool_name(program)) {
        return false;
    }
    let path = Path::new(program);
    let real = |path: &Path| path.canonicalize().ok();
    match real(path) {
        Some(found) => env::current_exe().ok().as_deref().and_then(real) == Some(found),
        None => true, // a name of ours, to be found in PATH
    }
}

/// The host linker of a link with device code, which is asked on demand.
pub(crate) struct HostLinker {
    pub command: Command,
    elf: OnceCell<ElfLinker>,
}

impl HostLinker {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            elf: OnceCell::new(),
        }
    }

    /// Returns the linker for an ELF host.
    pub(crate) fn elf(&self, arguments: &Arguments) -> ElfLinker {
        let find = || elf_linker(arguments, &self.command);
        *self.elf.get_or_init(find)
    }

    /// Returns the release if it is lld, and tells.
    pub(crate) fn lld_release(&self, arguments: &Arguments) -> Option<u32> {
        ElfLinker::release_of_lld(&version(arguments, &self.command))
    }
}

/// Finds the linker that links the program for an ELF host; a driver starts it. Asks for its version if no name tells.
fn elf_linker(arguments: &Arguments, linker: &Command) -> ElfLinker {
    let driver = arguments.position == Position::Driver;
    let program = linker.program().as_os_str();
    // `ld` is a link to the installed linker, and reading that is faster than starting it.
    let installed = || Path::new(program).canonicalize().ok();
    let named = match (driver, arguments.chosen_linker.as_deref()) {
        (true, chosen) => chosen.and_then(ElfLinker::of_name),
        (false, _) => {
            ElfLinker::of_name(program).or_else(|| ElfLinker::of_name(installed()?.as_os_str()))
        }
    };
    named.unwrap_or_else(|| ElfLinker::of_version(&version(arguments, linker)))
}

/// Returns the answer of the linker to `--version`.
fn version(arguments: &Arguments, linker: &Command) -> String {
    let question = match arguments.position {
        Position::Driver => linker
            .clone()
            .args(arguments.linker_flags())
            .arg("-Wl,--version"),
        Position::Linker { .. } => linker.clone().arg("--version"),
    };
    let asked = process(&question).output();
    let answer = asked.map(|asked| asked.stdout).unwrap_or_default();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the process of a host linker. It keeps the environment: variables that are hidden from device compilers are
/// for the host linker.
pub(crate) fn process(command: &Command) -> std::process::Command {
    let mut process = std::process::Command::new(command.program());
    process.args(command.arguments()).env(GUARD, "1");
    process
}
