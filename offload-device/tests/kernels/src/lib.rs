//! Kernels that the tests run on the CPU, and that a GPU can run.
#![no_std]

mod all;
pub use all::*;
