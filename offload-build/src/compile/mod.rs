//! Command lines that compile one source with clang, nvcc and ptxas, and of lld and LLVM's tools in place of clang.

pub(crate) mod clang;
pub(crate) mod critical_lock;
pub(crate) mod device;
pub(crate) mod host;
pub(crate) mod lld;
pub(crate) mod llvm_tools;
pub(crate) mod nvcc;
pub(crate) mod ptxas;
pub(crate) mod rust;
mod sdk;
