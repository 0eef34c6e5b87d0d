//! The tools. Each parses its command line, works through `offload-build`, and reports errors. This crate serves its
//! binaries; it has no API for other crates.

#[macro_use]
mod say;

mod bundler;
mod cargo_offload;
mod decompressed;
mod environment;
mod files;
mod json;
mod linker_wrapper;
mod llvm_tool;
mod offload_wrapper;
mod options;
mod packager;
mod platform;
mod signals;
mod stamp;

use std::process::ExitCode;

/// Runs the linker wrapper or the offload wrapper, depending on the name under which it was started.
pub fn linker_wrapper() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "offload-link".into());
    let base = std::path::Path::new(&name).file_name().unwrap_or(&name);
    if base.to_string_lossy().starts_with(offload_wrapper::NAME) {
        return ExitCode::from(offload_wrapper::run(&name, args.collect()));
    }
    ExitCode::from(linker_wrapper::run(&name, args.collect()))
}

/// Runs the bundler.
pub fn bundler() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "offload-bundler".into());
    ExitCode::from(bundler::run(&name, args.collect()))
}

/// Runs the packager.
pub fn packager() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "offload-packager".into());
    ExitCode::from(packager::run(&name, args.collect()))
}

/// Runs `cargo offload`.
pub fn cargo_offload() -> ExitCode {
    let done = cargo_offload::run(std::env::args_os());
    let read = files::check().map_err(cargo_offload::CargoOffloadError::unread);
    match read.and(done) {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.is_closed_output() => ExitCode::SUCCESS,
        Err(error) if error.is_reported() => ExitCode::FAILURE,
        Err(error) => {
            say::error("", &error);
            match error.is_usage() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}
