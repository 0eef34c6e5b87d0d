//! Kernels for a C program on another machine, which links the archives that the build makes.
#![no_std]

/// Device images of this package, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
