//! What is planned for each kind of module, and what comes out.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/mod.rs"]
mod support;

mod any_folder;
mod archives_key;
mod artifacts;
mod code_options;
mod compressed_fatbins;
mod device_only;
mod gpu_header;
mod host_code;
mod host_libraries;
mod large_images;
mod linked_images;
mod machine_code;
mod nvcc_registration;
mod openmp_libraries;
mod optional_kernels;
mod prebuilt;
mod ptx_targets;
mod rust_kernels;
mod rust_kernels_without_clang;
mod source_images;
