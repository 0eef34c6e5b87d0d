//! `cargo offload plan`: what builds of device code would run.
//!
//! Build scripts write their own plans, so methods of `Build` and the folders of this build count. With
//! `OFFLOAD_DRY_RUN` each writes its plan to a file and fails, so nothing is compiled that needs its result.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_command::{CargoOptions, unstarted};
use crate::cargo_offload::project::rust_programs::cargo_program;

/// Prints the commands that builds of device code would run.
///
/// Compiles and starts the build scripts, but starts no device compiler. The output can be pasted into a shell
/// after a build, which writes the headers and other files that comments name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload plan
  OFFLOAD_TARGETS=gfx90a cargo offload plan --release -p kernels")]
pub(crate) struct PlanLine {
    #[command(flatten)]
    cargo: CargoOptions,
}

/// Text with which a build script of a dry run ends (`offload-build/src/run/mod.rs`).
const DRY_RUN: &str = "Error: OFFLOAD_DRY_RUN is set";

pub(crate) fn run(line: &PlanLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let failed = |problem| CargoOffloadError::new(format_args!("no temporary folder: {problem}"));
    let folder = TempDir::with_prefix("cargo-offload-").map_err(failed)?;
    let output = Command::new(cargo_program())
        .args(["check", "--quiet", "--keep-going"])
        .args(&line.cargo.options)
        .env("OFFLOAD_DRY_RUN", folder.path())
        .stdin(Stdio::null())
        .output()
        .map_err(unstarted)?;
    let mut names = Vec::new();
    for file in fs::read_dir(folder.path()).map_err(failed)? {
        names.push(file.map_err(failed)?.file_name());
    }
    names.sort();
    for name in &names {
        let plan = fs::read_to_string(folder.path().join(name)).map_err(failed)?;
        let title = name.to_string_lossy();
        write!(out, "# {title}\n{plan}").map_err(CargoOffloadError::unwritten)?;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let problems = other_problems(&said);
    if !problems.is_empty() {
        return Err(CargoOffloadError::new(format_args!(
            "Cargo failed:\n{}",
            problems.join("\n").trim_end()
        )));
    }
    match names.is_empty() {
        false => Ok(()),
        true => Err(CargoOffloadError::new(
            "no build script uses offload-build here\n\
             hint: `cargo add --build offload-build`, and `offload_build::Build::from_manifest()?.run()` in build.rs",
        )),
    }
}

/// Returns Cargo's errors except those of dry runs and the summary `error: build failed`.
fn other_problems(said: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = said.match_indices("error").map(|(at, _)| at).collect();
    starts.retain(|at| *at == 0 || said[..*at].ends_with('\n'));
    let ends = starts.iter().skip(1).copied().chain([said.len()]);
    let parts = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &said[*start..end]);
    let is_other =
        |part: &&str| !part.contains(DRY_RUN) && !part.starts_with("error: build failed");
    parts.filter(is_other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_dry_runs_from_failures() {
        // Cargo 1.95, shortened.
        let dry = "error: failed to run custom build command for `a v0.1.0 (/a)`\n\nCaused by:\n  --- stderr\n  Error: \
                   OFFLOAD_DRY_RUN is set: the plan was written to `/t/a 0.1.0`, and nothing was built\n";
        let other = "error[E0425]: cannot find value\n --> build.rs:1:1\n";
        assert_eq!(other_problems(dry), [""; 0]);
        assert_eq!(other_problems(&format!("{dry}{other}{dry}")), [other]);
        assert_eq!(other_problems("warning: unused\n"), [""; 0]);
    }
}
