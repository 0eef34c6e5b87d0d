//! Command line of `cargo offload archive`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cargo_offload::limit_option::LimitOption;

/// Lists, checks, splits and merges archives of bundles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo offload archive list libkernels.a
  cargo offload archive split --out device libkernels.a
  cargo offload archive merge --out libkernels.a hip-amdgcn-amd-amdhsa--gfx90a=libkernels-gfx90a.a")]
pub(crate) struct ArchiveLine {
    #[command(subcommand)]
    pub(super) command: ArchiveCommand,
}

/// A command of `cargo offload archive`.
#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Lists the images in an archive of bundles, by member and target.
    List(ArchivesLine),
    /// Checks entries, the entries of each member together, and the symbol index.
    Check(ArchivesLine),
    /// Splits an archive of bundles into one archive for each target.
    Split(SplitLine),
    /// Merges archives of single targets into one archive of bundles.
    Merge(MergeLine),
}

/// Arguments of a command that reads archives.
#[derive(Debug, Args)]
pub(super) struct ArchivesLine {
    #[command(flatten)]
    pub(super) limit: LimitOption,
    /// Archives.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

/// Arguments of `split`.
#[derive(Debug, Args)]
pub(super) struct SplitLine {
    /// Folder of the new archives; it is created if it is missing.
    #[arg(long, short, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Target of an archive, such as gfx90a, hip-amdgcn-amd-amdhsa--gfx90a or host [default: all targets].
    #[arg(long = "target", value_name = "TARGET")]
    pub(super) targets: Vec<String>,
    #[command(flatten)]
    pub(super) limit: LimitOption,
    /// An archive of bundles.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(super) struct MergeLine {
    /// The new archive.
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Archive of host objects that receive the images.
    #[arg(long, value_name = "FILE")]
    pub(super) host: Option<PathBuf>,
    /// Archives of single targets, such as hip-amdgcn-amd-amdhsa--gfx90a=libk.a.
    #[arg(value_name = "TARGET=FILE", required_unless_present = "host")]
    pub(super) archives: Vec<String>,
}
