//! A part of `offload-build`: what a package declares, what the machine has, and command lines of compilers. Use that
//! crate; no version keeps this one as it is.
//!
//! It is apart because it needs no containers: Cargo compiles it beside `offload-formats`, and a first build of a build
//! script is shorter.
#![allow(missing_docs, reason = "the API is that of `offload-build`")]

pub mod compile;
pub mod declare;
pub mod environment;
pub mod error;
pub mod files;
pub mod installed;
pub mod process;
pub mod readable;
