//! `cargo offload run`, `test` and `install`: Cargo with our linker.

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_command::{CargoCommand, CargoOptions};

/// Runs a program with Cargo, linked by offload-link.
///
/// Shows the progress of device compiles. The exit status is Cargo's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload run --release
  cargo offload run -p app -- --size 1000")]
pub(crate) struct RunLine {
    #[command(flatten)]
    cargo: CargoOptions,
}

/// Runs tests with Cargo, linked by offload-link.
///
/// Shows the progress of device compiles. The exit status is Cargo's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload test
  cargo offload test --release -- --nocapture")]
pub(crate) struct TestLine {
    #[command(flatten)]
    cargo: CargoOptions,
}

/// Installs programs with Cargo, linked by offload-link.
///
/// Shows the progress of device compiles. The exit status is Cargo's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo offload install --path .")]
pub(crate) struct InstallLine {
    #[command(flatten)]
    cargo: CargoOptions,
}

pub(crate) fn run(line: &RunLine) -> Result<u8, CargoOffloadError> {
    CargoCommand::new("run", &line.cargo.options)?.run()
}

pub(crate) fn test(line: &TestLine) -> Result<u8, CargoOffloadError> {
    CargoCommand::new("test", &line.cargo.options)?.run()
}

pub(crate) fn install(line: &InstallLine) -> Result<u8, CargoOffloadError> {
    CargoCommand::new("install", &line.cargo.options)?.run()
}
