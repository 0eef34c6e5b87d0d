//! Kernels for a C++ program that CMake builds. Programs in Rust could call them, too.

/// Device images of this package, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
