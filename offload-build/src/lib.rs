//! Device code from `Cargo.toml`.

pub mod container;
pub mod format;
pub mod link;
pub mod registration;
pub mod target;
pub mod toolchain;

mod environment;
mod error;
mod manifest;
mod settings;

pub use error::Error;
