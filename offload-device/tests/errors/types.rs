//! Types that an argument cannot have. The compiler checks them.
#![allow(unused)]
use offload_device::{Global, Item, kernel};

#[kernel]
fn boolean(item: &Item, x: bool) {} //~ `bool` cannot be an argument of a kernel

#[kernel]
fn several(
    item: &Item,
    a: f32,
    b: char, //~ `char` cannot be an argument of a kernel
    c: &[f32],
    d: &mut [f32], //~ `&mut [f32]` cannot be an argument of a kernel
    e: String, //~ `String` cannot be an argument of a kernel
) {
}

#[kernel]
fn booleans(item: &Item, x: &[bool]) {} //~ `bool` cannot be an element of a kernel's slice or `Global`

#[kernel]
fn pointers(item: &Item, x: Global<&u32>) {} //~ cannot be an element of a kernel's slice or `Global`

#[kernel]
fn not_an_item(item: &Vec<u32>, x: f32) {} //~ `&Vec<u32>` is not the first argument of a kernel //~ mismatched types

fn main() {}
