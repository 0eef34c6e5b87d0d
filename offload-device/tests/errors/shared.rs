//! Types that shared memory cannot have, and dimensions that no grid has. Older compilers report them at the attribute, newer ones at the argument.
#![allow(unused)]
use offload_device::{Item, kernel};

#[kernel] fn dropped(item: &Item<Vec<u32>>) {} //~ the type of shared memory must not need to be dropped

#[kernel] fn four(item: &Item<(), 4>) {} //~ an item has 1, 2 or 3 dimensions

#[repr(align(32))]
struct Aligned([f32; 8]);

#[kernel] fn aligned(item: &Item<Aligned>) {} //~ the type of shared memory must have an alignment of at most 16

fn main() {}
