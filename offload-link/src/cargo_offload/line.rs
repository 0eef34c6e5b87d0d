//! Command line of `cargo offload`.

use clap::{Parser, Subcommand, ValueEnum};

use super::archive::ArchiveLine;
use super::compress::{CompressLine, DecompressLine};
use super::explain::ExplainLine;
use super::extract::ExtractLine;
use super::inspect::InspectLine;
use super::pages::{CompletionsLine, ManLine};
use super::project::{
    BuildLine, BuildScriptLine, CargoOptions, ConfigLine, DoctorLine, InitLine, NewLine, PlanLine,
    SchemaLine, TargetsLine,
};
use super::prune::PruneLine;
use super::size::{DiffLine, SizeLine};
use super::verify::VerifyLine;

/// Inspects, measures, checks and builds GPU device code, for GPUs of any vendor.
#[derive(Debug, Parser)]
#[command(
    name = "cargo-offload",
    bin_name = "cargo offload",
    version,
    after_help = EXIT_STATUS
)]
pub(super) struct CargoOffloadLine {
    /// When to use color; `auto` uses it on terminals, unless `NO_COLOR` is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        display_order = 900
    )]
    pub(super) color: Option<When>,
    #[command(subcommand)]
    pub(super) command: Option<CargoOffloadCommand>,
}

const EXIT_STATUS: &str = "\
Exit status: 0 success; 1 failure, or an input that could not be read; 2 invalid command line.";

/// A value of `--color`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum When {
    Auto,
    Always,
    Never,
}

/// A command of `cargo offload`.
#[derive(Debug, Subcommand)]
pub(super) enum CargoOffloadCommand {
    Inspect(InspectLine),
    Size(SizeLine),
    Diff(DiffLine),
    Extract(ExtractLine),
    Prune(PruneLine),
    Compress(CompressLine),
    Decompress(DecompressLine),
    Verify(VerifyLine),
    Explain(ExplainLine),
    Archive(ArchiveLine),
    New(NewLine),
    Init(InitLine),
    Build(BuildLine),
    /// Runs a program with Cargo, linked by offload-link.
    ///
    /// Shows the progress of device compiles. The exit status is Cargo's.
    #[command(after_help = "\
Examples:
  cargo offload run --release
  cargo offload run -p app -- --size 1000")]
    Run(CargoOptions),
    /// Runs tests with Cargo, linked by offload-link.
    ///
    /// Shows the progress of device compiles. The exit status is Cargo's.
    #[command(after_help = "\
Examples:
  cargo offload test
  cargo offload test --release -- --nocapture")]
    Test(CargoOptions),
    /// Installs programs with Cargo, linked by offload-link.
    ///
    /// Shows the progress of device compiles. The exit status is Cargo's.
    #[command(after_help = "\
Example:
  cargo offload install --path .")]
    Install(CargoOptions),
    BuildScript(BuildScriptLine),
    Plan(PlanLine),
    Doctor(DoctorLine),
    Targets(TargetsLine),
    Config(ConfigLine),
    Schema(SchemaLine),
    Completions(CompletionsLine),
    Man(ManLine),
}
