//! `cargo offload build-script`: what `offload-build` does, for build scripts that do not depend on it.

use offload_build::Build;

use crate::cargo_offload::error::CargoOffloadError;

/// Builds the device code of a package; for its build script, which then needs no build-dependency.
///
/// Does what `offload_build::Build::from_manifest()?.run()` does, with the variables that Cargo sets for build scripts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, a whole build.rs:
  fn main() {
      let mut tool = std::process::Command::new(\"cargo-offload\");
      let status = tool.arg(\"build-script\").status();
      let status = status.expect(\"`cargo install cargo-offload` installs what this build needs\");
      std::process::exit(i32::from(!status.success()));
  }")]
pub(crate) struct BuildScriptLine {}

pub(crate) fn run(_: &BuildScriptLine) -> Result<(), CargoOffloadError> {
    // As `main` of a build script reports what it returns.
    Build::from_manifest()
        .and_then(Build::run)
        .map_err(|error| {
            eprintln!("Error: {error:?}");
            CargoOffloadError::reported()
        })?;
    // A build script changes with its build-dependencies; this one with the program that it runs.
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(std::path::Path::to_str);
    if let Some(program) = program.filter(|program| !program.contains('\n')) {
        println!("cargo::rerun-if-changed={program}");
    }
    Ok(())
}
