//! `cargo offload completions` and `cargo offload man`: files for shells and for `man`, made from the command line's
//! definition.

use std::io::Write;
use std::path::PathBuf;

use clap_complete::Shell;

use super::error::CargoOffloadError;

/// Prints a completion script for a shell, for command lines that begin with `cargo-offload`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload completions bash > ~/.local/share/bash-completion/completions/cargo-offload
  cargo offload completions fish > ~/.config/fish/completions/cargo-offload.fish")]
pub(super) struct CompletionsLine {
    shell: Shell,
}

/// Writes the manual pages to a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo offload man ~/.local/share/man/man1")]
pub(super) struct ManLine {
    /// Folder of the pages; it is created if it is missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the script for the program `cargo-offload`: shells complete `cargo offload` by Cargo's own script.
pub(super) fn completions(
    line: &CompletionsLine,
    mut command: clap::Command,
    out: &mut impl Write,
) -> Result<(), CargoOffloadError> {
    // The generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(line.shell, &mut command, "cargo-offload", &mut script);
    if line.shell == Shell::Bash {
        // clap_complete 4.6.11 looks for commands of a program with a hyphen under another name than it sets.
        let text = String::from_utf8_lossy(&script);
        script = text
            .replace("cargo__subcmd__offload", "cargo__offload")
            .into_bytes();
    }
    out.write_all(&script).map_err(CargoOffloadError::unwritten)
}

/// Writes a page for `cargo-offload` and one for each command.
pub(super) fn man(line: &ManLine, command: clap::Command) -> Result<(), CargoOffloadError> {
    let folder = &line.folder;
    let failed = |problem: std::io::Error| CargoOffloadError::of(folder, problem);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let command = command
        .bin_name("cargo-offload")
        .disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(failed)
}
