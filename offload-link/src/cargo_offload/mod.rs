//! `cargo offload …`: commands for people.

mod archive;
mod build;
mod error;
mod inspect;
mod table;
mod usage;

use std::ffi::OsString;
use std::io::Write;

pub(crate) use error::CargoOffloadError;

use usage::USAGE;

/// Runs the command that `args` name, and writes its answer to `out`.
///
/// # Errors
///
/// Fails if the command does not exist or fails.
pub(crate) fn run(
    args: impl Iterator<Item = OsString>,
    out: &mut impl Write,
) -> Result<(), CargoOffloadError> {
    // Cargo passes the name of the subcommand first.
    let mut args = args.skip(1).peekable();
    args.next_if(|word| word == "offload");
    let command = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    let help = |word: &OsString| word == "--help" || word == "-h";
    if help(&command) || rest.iter().any(help) {
        return writeln!(out, "{USAGE}").map_err(CargoOffloadError::new);
    }
    match command.to_str() {
        Some("inspect") => inspect::run(&rest, out),
        Some("archive") => archive::run(&rest, out),
        Some("build") => build::run(&rest, out),
        _ => {
            let command = command.to_string_lossy();
            Err(CargoOffloadError::new(format_args!(
                "`{command}` is not a command\n{USAGE}"
            )))
        }
    }
}
