//! Kernels for programs in C, which link the archives that the build makes.

/// Device images of this package, made by `build.rs`, for programs in Rust.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
