//! Build folders for small examples and for packages from templates: what they depend on is compiled once.
//!
//! Cargo builds one of them at a time. Each is a package of its own, so none replaces what another one has built; programs have
//! the names of their packages.

use crate::support::{self, dependencies};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Folder of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

/// Tells whether the tools for OpenMP on the CPU are installed; says so if not.
pub(crate) fn has_openmp() -> bool {
    support::tool("llvm19", &["clang"]).is_some()
        && support::tool("omptarget19", &["libomptarget.so.19.1"]).is_some()
}

/// Cargo's `subcommand` on an example.
pub(crate) fn cargo(name: &str, subcommand: &str) -> Command {
    command(name, Command::new(env!("CARGO")), subcommand)
}

/// The same through `cargo offload`, whose linker is `offload-link`.
pub(crate) fn cargo_offload(name: &str, subcommand: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    cargo.arg("offload").env("CARGO", env!("CARGO"));
    command(name, cargo, subcommand)
}

/// Makes `cargo` build the new package in `folder` with a target folder that such packages share.
///
/// It gets the newest dependencies with `OFFLOAD_TEST_ALL=1`, as at a user's. Otherwise those that are compiled already.
pub(crate) fn use_template_folder(cargo: &mut Command, folder: &Path) {
    let lock = folder.join("Cargo.lock");
    if !support::tests_all() && !lock.exists() {
        fs::copy(example("hip-launch").join("Cargo.lock"), lock).unwrap();
    }
    cargo.current_dir(folder);
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("template/target");
    dependencies::copy_into(&target_dir, cargo, None, &[]);
    support::sysroots::share_in(&target_dir);
    // As with `--target`.
    cargo.env("CARGO_BUILD_TARGET", TARGET);
}

fn command(name: &str, mut cargo: Command, subcommand: &str) -> Command {
    let is_ours = cargo.get_args().next().is_some();
    let linker = is_ours.then_some(env!("CARGO_BIN_EXE_offload-link"));
    let folder = if is_ours { "offload-link" } else { "stock" };
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("examples/shared")
        .join(folder);
    dependencies::copy_into(&target_dir, &mut cargo, linker, &[]);
    // With `--target`, build-dependencies have a folder of their own.
    cargo
        .args([subcommand, "--locked", "--target", TARGET])
        .current_dir(example(name))
        .env("CARGO_TERM_COLOR", "never")
        .env("OMP_TARGET_OFFLOAD", "MANDATORY")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("OFFLOAD_REQUIRE");
    cargo
}
