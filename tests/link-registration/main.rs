//! Objects that register images: each form, runtime and host.
//!
//! Each module is a file of tests: `cargo nextest run -E 'test(/^module::/)'` runs one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../support/linker.rs"]
mod linker_support;
#[path = "../support/registration.rs"]
mod registration_support;
#[path = "../support/mod.rs"]
mod support;

mod registration_forms;
mod registration_hosts;
mod registration_machine;
mod registration_runtimes;
mod registration_sycl;
