//! Parts that the replacements of LLVM's tools share: command lines, errors, and files that are read and written as
//! pieces.

pub(crate) mod bundle_settings;
pub(crate) mod compression;
mod distinct_names;
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
use crate::{files, platform, say};

pub(crate) use distinct_names::DistinctNames;
pub(crate) use error::LlvmToolError;
pub(crate) use output::{Output, Style};
pub(crate) use sources::Sources;

/// Request of a parsed command line.
#[derive(Debug)]
pub(crate) enum CommandLine<Id> {
    /// Information about the tool itself.
    Answer(Answer),
    /// Nothing: the command line is wrong, and the mistakes have been printed.
    Mistaken,
    /// Work with these options and positional arguments.
    Work(Vec<(Id, Value)>, Vec<OsString>),
}

/// Runs a tool under the name with which it was started, and returns the exit status.
pub(crate) fn run(
    name: &OsStr,
    args: Vec<OsString>,
    work: impl FnOnce(&Started<'_>, Vec<OsString>) -> Result<u8, LlvmToolError>,
) -> u8 {
    let path = name.to_string_lossy();
    let base = Path::new(name).file_name().unwrap_or(name);
    let base = base.to_string_lossy();
    let started = Started {
        path: &path,
        base: &base,
    };
    platform::raise_file_limit();
    // After a failed read, a parser reports a damaged file or finds nothing.
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

/// Parses the command line and expands response files.
pub(crate) fn read_line<Id: Copy + PartialEq>(
    table: &Table<Id>,
    args: &[OsString],
    started: &Started<'_>,
) -> Result<CommandLine<Id>, LlvmToolError> {
    let mut expanded = Vec::new();
    for arg in args {
        let these = response_file::expand(arg, Quoting::Gnu)
            .map_err(|error| LlvmToolError::new(error.to_string()))?;
        // As LLVM does, empty words of a file are dropped.
        expanded.extend(
            these
                .into_iter()
                .filter(|word| word == arg || !word.is_empty()),
        );
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

/// Prints to standard output. A reader that stops early is not an error.
pub(crate) fn print(text: &str) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say::error(
                "",
                &format_args!("cannot write to standard output: {error}"),
            );
            1
        }
        _ => 0,
    }
}

/// Returns the warning about an archive member that cannot be read: linkers will not find its symbols.
pub(crate) fn without_symbols(member: &str, problem: &dyn std::fmt::Display) -> String {
    let member = terminal(member);
    format!("member `{member}` is not in the archive's symbol index: {problem}")
}
