//! GPU kernels in a Rust or C project, from `Cargo.toml` to a registered image.
//!
//! A build script is one line; what it builds is declared in `[package.metadata.offload]`:
//!
//! ```no_run
//! fn main() -> Result<(), offload_build::Error> {
//!     offload_build::Build::from_manifest()?.run()
//! }
//! ```
//!
//! [`Build`] is all that a build script needs. The modules are the floors below it, for tools that read or
//! write the same files: names ([`target`]), bytes ([`mod@format`]), the files that hold them
//! ([`container`]), compilers ([`toolchain`]), device links ([`link`]) and what gives images to a runtime
//! ([`registration`]). Formats read any bytes without a panic, and of large files only the headers.
//!
//! Every user compiles this crate before the first kernel, so no feature is on by default:
//!
//! | feature | what is added |
//! |---------|---------------|
//! | `zlib`, `zstd` | compressed bundles and offload binaries; without them their headers can be read |
//! | `tools` | what no build script needs: images found in Mach-O files, offload binaries as YAML, text bundles written, bundles found in object files, objects that embed images, registrations in C, as LLVM IR and for SYCL, device links of SPIR-V and of LLVM IR as text |

pub mod container;
pub mod escape;
pub mod format;
pub mod link;
pub mod registration;
pub mod target;
pub mod toolchain;

mod aliases;
mod artifacts;
mod builder;
mod compiler;
mod context;
mod device_link;
mod device_only;
mod effect;
mod environment;
mod error;
mod host;
mod host_file;
mod hosted;
mod images;
mod language;
mod layers;
mod libraries;
mod machine_code;
mod manifest;
mod messages;
mod module;
mod native;
mod plan;
mod planned_image;
mod prebuilt;
mod record;
mod run;
mod runtimes;
mod sdk;
mod settings;
mod skipped;
mod source_scan;
mod stub;

pub use builder::{Build, TargetBuild};
pub use error::Error;
pub use plan::Plan;
