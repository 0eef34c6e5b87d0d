//! `cargo offload` in the folder of a test.

use std::process::Output;

use crate::support::folder::Folder;

pub(crate) fn cargo_offload(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = folder.command(env!("CARGO_BIN_EXE_cargo-offload"));
    command.arg("offload").args(arguments).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Returns what a command prints that must succeed.
pub(crate) fn done(folder: &Folder, arguments: &[&str]) -> String {
    let output = cargo_offload(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
