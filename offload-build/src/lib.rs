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

mod builder;
mod check;
mod compile;
mod declare;
mod device_link;
mod environment;
mod error;
mod files;
mod generate;
mod inputs;
mod installed;
mod messages;
mod plan;
mod process;
mod readable;
mod run;
mod steps;

pub use builder::{Build, TargetBuild};
pub use error::Error;
pub use plan::Plan;

/// Device links, for `offload-link`.
#[doc(hidden)]
pub mod link {
    pub use crate::check::{CheckError, check, check_header, check_ptx, processor_of};
    pub use crate::device_link::{
        DeviceInput, DeviceLinker, LinkJob, LinkOptions, PlannedLink, Way, fatbinary,
    };
    #[cfg(feature = "tools")]
    pub use crate::device_link::{SourceText, spirv};
}

/// Compilers and commands, for `offload-link`.
#[doc(hidden)]
pub mod toolchain {
    pub use crate::installed::llvm::Llvm;
    pub use crate::process::command::{Command, CommandError, Quoted};
    pub use crate::process::search::{NotFound, Search};
    pub use crate::process::{command, jobserver};
}
