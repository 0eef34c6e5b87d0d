//! `cargo offload …`: the commands for people.

mod archive;
mod build;
mod inspect;

use std::ffi::OsString;
use std::fmt;
use std::io::Write;

use crate::files::ReadFailure;

const USAGE: &str = "usage: cargo offload inspect [--max-decompressed-size=SIZE] FILE...
       cargo offload archive list|check|split|merge ...
       cargo offload build [--out DIR] [OPTIONS OF CARGO BUILD]

inspect  the device images in objects, archives, programs and offload binaries
archive  archives of bundles: listed, checked, split for their targets, made of such parts
build    `cargo build`, and the libraries of device code that it makes";

/// Runs the command that `args` name, and writes what it has to say to `out`.
///
/// # Errors
///
/// When there is no such command, or it fails.
pub(crate) fn run(args: impl Iterator<Item = OsString>, out: &mut impl Write) -> Result<(), Error> {
    // Cargo puts the name of the subcommand first.
    let mut args = args.skip(1).peekable();
    args.next_if(|word| word == "offload");
    let command = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    let help = |word: &OsString| word == "--help" || word == "-h";
    if help(&command) || rest.iter().any(help) {
        return writeln!(out, "{USAGE}").map_err(Error::new);
    }
    match command.to_str() {
        Some("inspect") => inspect::run(&rest, out),
        Some("archive") => archive::run(&rest, out),
        Some("build") => build::run(&rest, out),
        _ => {
            let command = command.to_string_lossy();
            Err(Error::new(format_args!(
                "`{command}` is no command\n{USAGE}"
            )))
        }
    }
}

/// Prints a table; the column `right` has numbers.
fn print_columns(
    header: &[String; 5],
    rows: &[[String; 5]],
    right: usize,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let all = || std::iter::once(header).chain(rows);
    let mut widths = [0; 5];
    for row in all() {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.len().max(*width);
        }
    }
    for row in all() {
        let mut line = String::new();
        for ((column, text), width) in row.iter().enumerate().zip(widths) {
            line += &match column == right {
                true => format!("  {text:>width$}"),
                false => format!("  {text:<width$}"),
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }

    /// An input that could not be read, which parsers call damaged or empty.
    pub(crate) fn unread(problem: ReadFailure) -> Self {
        Self::new(problem)
    }

    /// What was to be said, and could not be.
    pub(crate) fn unwritten(problem: std::io::Error) -> Self {
        Self::new(format_args!("cannot write: {problem}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
