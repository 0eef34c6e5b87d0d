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
//! ```toml
//! [package.metadata.offload]
//! language = "openmp"
//! sources = ["kernels/*.c"]
//! targets = ["x86_64-pc-linux-gnu", "gfx90a"]
//! ```
//!
//! For each module the build script writes a Rust file, `$OUT_DIR/<name>.rs`, with the images and descriptions of the
//! kernels. The name is `kernels` without the key `name`. Include the file:
//!
//! ```ignore
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//! ```
//!
//! | item | content |
//! |---|---|
//! | `kernels::image()` | the container of all images; pass it to a runtime as it is |
//! | `kernels::images()` | each image with its target |
//! | `kernels::KERNELS` | the names of the kernels, with OpenMP's globals |
//! | `kernels::kernel` | a constant for each kernel (HIP, CUDA, bitcode, Rust, prebuilt) |
//! | `kernels::find_kernel(name)` | any kernel by name |
//! | `kernels::SKIPPED` | each target that `missing = "skip"` left out, with the reason |
//!
//! Each key of the manifest has a method of [`Build`] with its name. The guide in the repository (`docs/manifest.md`,
//! `docs/generated-file.md`) describes all keys and the file.
//!
//! A build script needs only [`Build`]; [`Build::plan`] returns its steps as a [`Plan`]. The crate `offload-formats` has the
//! formats of images and containers.
//!
//! Every user compiles this crate before the first kernel, so no feature is enabled by default:
//!
//! | feature | what it adds |
//! |---------|---------------|
//! | `zlib`, `zstd` | compressed bundles, offload binaries and images of CUDA (`zstd`; LZ4 needs no feature); without the feature only their headers are readable |
//! | `tools` | parts for `offload-link` alone: the feature `tools` of `offload-formats`, device links of SPIR-V, of SYCL and of LLVM IR as text, packages examined without their build scripts |
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod check;
mod device_link;
mod generate;
mod inputs;
mod messages;
mod out_dir;
mod plan;
#[cfg(feature = "tools")]
mod project;
mod run;
mod steps;
mod unpacking;

pub use builder::{Build, TargetBuild};
#[doc(inline)]
pub use offload_build_core::error::Error;
pub use plan::Plan;

/// Commands, programs and device links, for `offload-link` alone: no version keeps it as it is.
#[doc(hidden)]
pub mod tools {
    pub use crate::check::{CheckError, check, warning_of_ignored};
    pub use crate::device_link::{
        DeviceInput, DeviceLinker, LinkJob, LinkOptions, PlannedLink, Way,
    };
    #[cfg(feature = "tools")]
    pub use crate::device_link::{SourceText, fatbinary::cuda_fatbinary, spirv};
    #[cfg(feature = "tools")]
    pub use crate::project::{
        EffectiveKey, FoundTool, GpuCompiler, KeyDescription, KeyForm, ModuleConfig, ModuleOutlook,
        TargetOutlook, ToolGroup, config, found_tools, gpu_compilers, keys, outlook,
    };
    #[cfg(feature = "tools")]
    pub use offload_build_core::declare::platform::holds as holds_for_platform;
    #[cfg(feature = "tools")]
    pub use offload_build_core::declare::settings::distance;
    pub use offload_build_core::environment::{CUDA_ROOTS, USUAL_CUDA};
    pub use offload_build_core::error::with_code;
    pub use offload_build_core::files::normalized;
    pub use offload_build_core::installed::device_tools::DeviceTools;
    pub use offload_build_core::installed::llvm::Llvm;
    #[cfg(feature = "tools")]
    pub use offload_build_core::process::command::without_rustc;
    pub use offload_build_core::process::command::{Command, CommandError, GUARD, Quoted};
    pub use offload_build_core::process::jobserver;
    pub use offload_build_core::process::search::{NotFound, Search};
}
