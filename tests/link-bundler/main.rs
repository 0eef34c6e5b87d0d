//! The bundler, beside LLVM's.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/linker_hip.rs"]
mod linker_hip_support;
#[path = "../support/mod.rs"]
mod support;

mod archive_round_trips;
mod bundler;
mod bundler_differential;
