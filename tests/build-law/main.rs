//! The law of the tree, what it refers to, and the cost of the build-dependency.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod book;
mod booleans;
mod build_dependency;
mod environment;
mod exact_versions;
mod floors;
mod functions;
mod ignored;
mod measured;
mod pictures;
mod references;
mod requirements;
mod summaries;
mod third_parties;
mod troubleshooting;
mod type_names;
