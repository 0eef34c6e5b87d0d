//! Programs and files that this machine has: compilers, SDKs, runtimes, the host, and GPUs.

pub(crate) mod all_processors;
pub(crate) mod answers;
pub(crate) mod compilers;
pub(crate) mod device_libraries;
pub(crate) mod device_tools;
pub(crate) mod fitting_clangs;
pub(crate) mod host;
pub(crate) mod lld;
pub(crate) mod llvm;
pub(crate) mod llvm_tools;
pub(crate) mod machine;
pub(crate) mod native;
pub(crate) mod path_variables;
pub(crate) mod rocm;
pub(crate) mod runtimes;
pub(crate) mod rustc;
pub(crate) mod sdk;
pub(crate) mod target_folder;
