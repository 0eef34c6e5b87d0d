//! Device code from `Cargo.toml`.

pub mod container;
pub mod format;
pub mod link;
pub mod registration;
pub mod target;
pub mod toolchain;

mod builder;
mod compiler;
mod environment;
mod error;
mod host_file;
mod manifest;
mod module;
mod openmp;
mod plan;
mod run;
mod settings;

pub use builder::{Build, TargetBuild};
pub use error::Error;
pub use plan::Plan;
