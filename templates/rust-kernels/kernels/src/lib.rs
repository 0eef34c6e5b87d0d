//! Kernels for AMD GPUs, NVIDIA GPUs and the CPU.
#![no_std]

use offload_device::{Global, Item, kernel};

/// `y = a x + y`. Each work-item has an element.
#[kernel]
pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, a * x[i] + y.get(item));
    }
}
