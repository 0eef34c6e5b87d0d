//! Command lines that compile one source with clang, nvcc and ptxas, and of lld and LLVM's tools in place of clang.

pub mod architectures;
pub mod clang;
pub mod critical_lock;
pub mod device;
pub mod host;
pub mod lld;
pub mod llvm_tools;
pub mod nvcc;
pub mod ptxas;
pub mod rust;
mod sdk;
