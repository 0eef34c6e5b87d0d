//! Kernels whose results on a GPU must be those on the CPU, to the bit.
#![no_std]

mod numbers;
mod speeds;
mod workgroups;

pub use numbers::*;
pub use speeds::*;
pub use workgroups::*;
