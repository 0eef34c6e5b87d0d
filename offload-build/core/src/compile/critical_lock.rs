//! The lock of `omp critical`, which LLVM 19's device runtime for NVIDIA GPUs declares and does not define.

/// LLVM IR that defines the functions.
pub const SOURCE: &str = include_str!("critical_lock.ll");

/// Functions that enter and leave a critical region.
pub const FUNCTIONS: &[&str] = &["__kmpc_critical", "__kmpc_end_critical"];
