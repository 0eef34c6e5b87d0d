//! Names and formats: bytes in, values out, and back; beside LLVM's tools.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod bitcode;
mod bundle;
mod found_bundles;
mod hostile_writers;
mod names;
mod offload_binary;
mod offload_yaml;
