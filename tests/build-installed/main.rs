//! What the machine has: compilers, SDKs and GPUs.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod compilers;
mod cuda;
mod fitting_clangs;
mod native;
mod nvcc;
mod path_variables;
mod rocm;
mod rustc;
mod target_words;
