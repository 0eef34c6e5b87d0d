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
//! [`Build`] is all that a build script needs. The modules are for tools that compile and link device code as well:
//! compilers ([`toolchain`]) and device links ([`link`]). The formats are the crate `offload-formats`.
//!
//! Every user compiles this crate before the first kernel, so no feature is on by default:
//!
//! | feature | what it adds |
//! |---------|---------------|
//! | `zlib`, `zstd` | compressed bundles and offload binaries; without them only their headers can be read |
//! | `tools` | what no build script needs: the feature `tools` of `offload-formats`, and device links of SPIR-V and of LLVM IR as text |

pub mod link;
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
mod readable;
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
