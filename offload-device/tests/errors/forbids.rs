//! Kernels that compile in a crate that forbids lints.
#![forbid(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, unused_imports, unused_variables)]
#![forbid(unused_results, nonstandard_style, improper_ctypes_definitions, single_use_lifetimes, unnameable_types)]
#![deny(warnings, unused)]

use offload_device::{Global, Item, kernel};

/// Doubles.
#[kernel(threads = 64)]
pub fn twice(item: &Item, x: &[f32], y: Global<'_, f32>) {
    y.set(item, 2.0 * x[0]);
}

#[kernel]
fn private(_item: &Item<[u32; 4], 1>, _a: u8, _b: u8, _c: u8, _d: u8, _e: u8, _f: u8) {}

fn main() {
    private::run(offload_device::Grid::new(1, 1), 1, 2, 3, 4, 5, 6);
}
