//! Files that tools read and write: large, damaged, hostile, unreadable.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/linker.rs"]
mod linker;
#[path = "../support/mod.rs"]
mod support;

mod equal_sources;
mod hostile_listings;
mod hostile_names;
mod large_archives;
mod large_images;
mod outputs;
mod read_failures;
mod thin_archives;
mod weak_functions;
mod windows_tools;
