//! Errors in bodies and launches point into the user's code.
#![allow(unused)]
use offload_device::cpu::Grid;
use offload_device::{Global, Item, kernel};

#[kernel]
fn body(item: &Item, x: &[f32], y: Global<f32>) {
    let wrong: u32 = x[0]; //~ mismatched types
    y.atomic_min(0, 1.0); //~ `f32` has no atomic minimum and maximum
    unknown(item); //~ cannot find function `unknown`
}

#[kernel]
fn bytes(item: &Item, y: Global<u8>) {
    y.atomic_add(0, 1); //~ `u8` has no atomic operations
}

#[kernel]
fn keeps(item: &Item<u32>) {
    std::thread::scope(|scope| {
        scope.spawn(|| item.barrier()); //~ cannot be shared between threads safely //~ cannot be shared //~ cannot be shared
    });
}

#[kernel]
fn fine(item: &Item, x: &[f32], y: Global<u32>) {}

fn main() {
    fine::run(Grid::new(1, 1), &[1.0], 2); //~ mismatched types
    fine::run(Grid::new(1, 1), &[1.0]); //~ this function takes 3 arguments but 2 arguments were supplied
}
