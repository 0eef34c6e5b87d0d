//! How steps are executed: again only if needed, and through launchers.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod interrupted;
mod launchers;
mod rebuilds;
mod unlisted_inputs;
