//! Kernels for programs in C, which link the archives that the build makes.

/// What `build.rs` made: the device images of this package, for programs in Rust.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
