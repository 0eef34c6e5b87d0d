//! A package and this machine as `cargo offload` shows them: what is declared, and whether it can be built here.
//!
//! No build script runs: what one adds by methods of `Build` is not seen.

mod config;
mod found;
mod gpu_compilers;
mod key_descriptions;
mod outlook;

pub use config::{EffectiveKey, ModuleConfig, config};
pub use found::{FoundTool, ToolGroup, found_tools};
pub use gpu_compilers::{GpuCompiler, gpu_compilers};
pub use key_descriptions::{KeyDescription, KeyForm, keys};
pub use outlook::{ModuleOutlook, TargetOutlook, outlook};
