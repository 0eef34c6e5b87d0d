//! The tools: each understands its command line, does its work through `offload-build`, and says
//! what went wrong. This crate is its binaries; nothing here is meant for other crates.

mod linker_wrapper;
mod options;

use std::process::ExitCode;

/// Runs the linker wrapper, by the name that it was started under.
pub fn linker_wrapper() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "offload-link".into());
    ExitCode::from(linker_wrapper::run(&name, args.collect()))
}
