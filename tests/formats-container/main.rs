//! Containers: objects and archives, and the kernels of the images in them.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod archives;
mod containers;
mod embedding;
mod fatbins;
mod kernels;
mod kernels_cuda;
mod objects;
mod ptx;
mod separate;
mod symbols;
