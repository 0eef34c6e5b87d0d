//! Finds and runs the host linker.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use offload_build::tools::{Command, GUARD};
use offload_formats::container::elf::Machine;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::elf_linker::ElfLinker;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::temporaries::Temporaries;
use crate::options::response_file::Quoting;
use crate::platform;

/// MinGW's compiler, under the name that rustc uses.
const MINGW: &str = "x86_64-w64-mingw32-gcc";

/// Tells whether this tool is, directly or indirectly, a child of itself.
pub(crate) fn is_nested() -> bool {
    env::var_os(GUARD).is_some()
}

/// Returns the program with the arguments that precede all others.
pub(crate) fn find(arguments: &Arguments, host: Option<Machine>) -> Result<Command, LinkError> {
    let driver = arguments.position == Position::Driver;
    if let Some(path) = &arguments.options.linker {
        return Ok(Command::new(path));
    }
    let answers = arguments.position == (Position::Linker { answers: true });
    if answers && !arguments.options.emit_fatbin_only {
        return Err(LinkError::NoLinkerPath);
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
        .and_then(env::var_os);
    let named = declared
        .or_else(|| env::var_os("OFFLOAD_CC"))
        .or_else(foreign)
        .or_else(|| env::var_os("CC"))
        .filter(|value| !value.is_empty() && !is_ourselves(value))
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
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// Tells whether `program` is this file; called only for names of this tool.
fn is_ourselves(program: &OsStr) -> bool {
    if !crate::linker_wrapper::tool::TOOL_NAMES
        .contains(&&*crate::linker_wrapper::tool::tool_name(program))
    {
        return false;
    }
    let path = Path::new(program);
    let real = |path: &Path| path.canonicalize().ok();
    match real(path) {
        Some(found) => env::current_exe().ok().as_deref().and_then(real) == Some(found),
        None => true, // a name of ours, to be found in PATH
    }
}

/// Execs the host linker, or runs it if its command line is longer than the kernel accepts. Returns the exit status.
pub(crate) fn become_or_run(command: &Command, quoting: Quoting) -> Result<u8, LinkError> {
    let source = match platform::become_program(&mut process(command)) {
        Ok(status) => return Ok(code(status)),
        Err(source) => source,
    };
    if source.kind() != ErrorKind::ArgumentListTooLong {
        return Err(start_error(command, source));
    }
    run(command, quoting, &Temporaries::default()).map(code)
}

/// Runs the host linker. A command line longer than the kernel accepts goes into a response file, which every host
/// linker and compiler driver reads.
pub(crate) fn run(
    command: &Command,
    quoting: Quoting,
    files: &Temporaries,
) -> Result<ExitStatus, LinkError> {
    let mut started = process(command);
    if let Some(folder) = files.existing() {
        started.env("TMPDIR", folder);
    }
    let result = started.status();
    if !matches!(&result, Err(error) if error.kind() == ErrorKind::ArgumentListTooLong) {
        return result.map_err(|source| start_error(command, source));
    }
    let mut file = OsString::from("@");
    file.push(files.response_file(&quoting.quote(command.arguments()))?);
    let short = Command::new(command.program()).arg(file);
    let mut started = process(&short);
    if let Some(folder) = files.existing() {
        started.env("TMPDIR", folder);
    }
    let result = started.status();
    result.map_err(|source| start_error(&short, source))
}

/// Returns the linker that links the program for an ELF host; a driver starts it.
pub(crate) fn elf_linker(arguments: &Arguments, linker: &Command) -> ElfLinker {
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
    named.unwrap_or_else(|| {
        let question = match driver {
            true => linker
                .clone()
                .args(arguments.linker_flags())
                .arg("-Wl,--version"),
            false => linker.clone().arg("--version"),
        };
        let asked = process(&question).output();
        let answer = asked.map(|asked| asked.stdout).unwrap_or_default();
        ElfLinker::of_version(&String::from_utf8_lossy(&answer))
    })
}

/// Returns the exit status like a shell.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| platform::signal(status).map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Keeps the environment: variables that are hidden from device compilers are for the host linker.
fn process(command: &Command) -> std::process::Command {
    let mut process = std::process::Command::new(command.program());
    process.args(command.arguments()).env(GUARD, "1");
    process
}

fn start_error(command: &Command, source: io::Error) -> LinkError {
    LinkError::Start {
        program: PathBuf::from(command.program()),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn writes_a_line_that_the_kernel_does_not_take_into_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let linker = dir.path().join("linker");
        let out = dir.path().join("out");
        let body = format!("#!/bin/sh\ncat \"${{1#@}}\" > '{}'\n", out.display());
        fs::write(&linker, body).unwrap();
        fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).unwrap();
        // Linux limits one argument to 128 KiB.
        let args = ["a b".to_owned(), "x".repeat(200_000)].map(OsString::from);
        let command = Command::new(&linker).args(args.clone());
        let files = Temporaries::default();
        let status = run(&command, Quoting::Gnu, &files).unwrap();
        assert!(status.success());
        assert_eq!(fs::read(out).unwrap(), Quoting::Gnu.quote(&args));
    }
}
