//! What the tools share that stand in for LLVM's: their command lines, how they fail, and files that
//! are read and written as pieces.

pub(crate) mod compression;
pub(crate) mod error;
pub(crate) mod installation;
pub(crate) mod output;
pub(crate) mod outputs;
pub(crate) mod sources;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use offload_formats::escape::{terminal, terminal_lines};

use crate::options::llvm::{Answer, Started, Table, Value};
use crate::options::response_file::{self, Quoting};
use crate::{files, say};

pub(crate) use error::Error;
pub(crate) use output::{Output, Style};
pub(crate) use sources::Sources;

/// What a tool has to do.
#[derive(Debug)]
pub(crate) enum CommandLine<Id> {
    /// Say something about itself.
    Answer(Answer),
    /// Nothing: the command line is wrong, which has been said.
    Mistaken,
    /// Work, as these options and positional arguments say.
    Work(Vec<(Id, Value)>, Vec<OsString>),
}

/// Runs a tool under the name that it was started with; the result is the exit status.
pub(crate) fn run(
    name: &OsStr,
    args: Vec<OsString>,
    work: impl FnOnce(&Started<'_>, Vec<OsString>) -> Result<u8, Error>,
) -> u8 {
    let path = name.to_string_lossy();
    let base = Path::new(name).file_name().unwrap_or(name);
    let base = base.to_string_lossy();
    let started = Started {
        path: &path,
        base: &base,
    };
    // Parsers call a file damaged that could not be read, or found nothing in it.
    let worked = work(&started, args);
    let worked = match files::check() {
        Ok(()) => worked,
        Err(failure) => Err(failure.into()),
    };
    worked.unwrap_or_else(|error| {
        say::error(&path, &error);
        1
    })
}

/// Reads the command line, response files expanded.
pub(crate) fn read_line<Id: Copy + PartialEq>(
    table: &Table<Id>,
    args: &[OsString],
    started: &Started<'_>,
) -> Result<CommandLine<Id>, Error> {
    let mut expanded = Vec::new();
    for arg in args {
        let these = response_file::expand(arg, Quoting::Gnu)
            .map_err(|error| Error::new(error.to_string()))?;
        expanded.extend(these);
    }
    let parsed = table.parse(&expanded, started);
    for line in &parsed.mistakes {
        eprintln!("{}", terminal_lines(line));
    }
    Ok(match parsed.answer {
        Some(answer) => CommandLine::Answer(answer),
        None if !parsed.mistakes.is_empty() => CommandLine::Mistaken,
        None => CommandLine::Work(parsed.values, parsed.positional),
    })
}

/// Prints to standard output; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> u8 {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(_) => 1,
    }
}

/// Said of a member of an archive that cannot be read: linkers will not find what it defines.
pub(crate) fn without_symbols(member: &str, problem: &dyn std::fmt::Display) -> String {
    let member = terminal(member);
    format!("member `{member}` is not in the archive's index of symbols: {problem}")
}
