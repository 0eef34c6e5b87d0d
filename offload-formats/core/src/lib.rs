//! A part of `offload-formats`, compiled apart so that a build compiles it beside the crate `object`; use `offload-formats`.

pub mod by_name;
pub mod escape;
pub mod format;
pub mod md5;
pub mod names;
pub mod settings;
