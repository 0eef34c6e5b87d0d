//! The linker wrapper, beside LLVM's and in the driver's place.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/linker_hip.rs"]
mod linker_hip_support;
#[path = "../support/linker.rs"]
mod linker_support;
#[path = "../support/runtimes.rs"]
mod runtimes;
#[path = "../support/mod.rs"]
mod support;

mod archive_bad_input;
mod device_links;
mod host_members;
mod linker_bad_input;
mod linker_behaviours;
mod linker_bundles;
mod linker_differential;
mod linker_gpu;
mod linker_large;
mod linker_process;
mod linker_programs;
mod linker_registration;
mod linker_scripts;
mod linker_surroundings;
mod linker_texts;
mod linker_workspace;
mod linker_wrapper;
mod loaded_members;
mod offload_wrapper;
mod release_folder;
mod replace;
mod rustc_links;
