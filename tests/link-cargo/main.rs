//! Whole builds: Cargo with examples, packages and workspaces.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod build_script_command;
mod cargo_offload;
mod cmake;
mod command_line;
mod commands;
mod compress;
mod console_blocks;
mod cross_builds;
mod examples;
mod extract;
mod gpu_kit;
mod images;
mod inspect;
mod linked_images;
mod project;
mod prune;
mod prune_large_data;
mod prune_objects;
mod prune_openmp;
#[cfg(unix)]
mod prune_outputs;
mod prune_wheels;
mod readme;
mod registration_matrix;
mod search_data;
mod shared_build;
mod size;
mod small_examples;
mod verify;
mod windows_hosts;
mod zip_files;
