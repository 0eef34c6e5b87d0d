//! Programs and files that this machine has: compilers, SDKs, runtimes, the host, and GPUs.

pub mod all_processors;
pub mod answers;
pub mod cargo_files;
pub mod compilers;
pub mod cuda;
pub mod device_libraries;
pub mod device_tools;
pub mod fitting_clangs;
pub mod host;
pub mod lld;
pub mod llvm;
pub mod llvm_tools;
pub mod machine;
pub mod native;
pub mod outer_cargo;
pub mod path_variables;
pub mod rocm;
pub mod runtimes;
pub mod rustc;
pub mod sdk;
#[cfg(feature = "tools")]
pub mod spirv_tools;
pub mod target_folder;
