//! Contents of declared files: images of prebuilt sources, libraries of device code, kernels of sources and LLVM IR, a crate
//! that forbids unsafe code.

pub(crate) mod ir_scan;
pub(crate) mod libraries;
pub(crate) mod prebuilt;
pub(crate) mod rust_scan;
pub(crate) mod source_scan;
pub(crate) mod unsafe_code;
pub(crate) mod without_sdk;
