//! Arguments that a kernel cannot have.
#![allow(unused)]
use offload_device::{Global, Item, kernel};

#[kernel]
fn nothing() {} //~ expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel

#[kernel]
fn no_item(x: &[f32], y: Global<f32>) {} //~ expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel

#[kernel]
fn item_by_value(item: Item) {} //~ expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel

#[kernel]
fn mutable_item(item: &mut Item) {} //~ expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel

#[kernel]
fn item_of_lifetime(item: &'static Item) {} //~ expected `item: &Item` or `item: &Item<S>` as the first argument of a kernel

#[kernel]
fn tuple(item: &Item, (a, b): (f32, f32)) {} //~ expected a name for an argument of a kernel, found a pattern

#[kernel]
fn unnamed(item: &Item, _: f32) {} //~ expected a name for an argument of a kernel, found a pattern

#[kernel]
fn reference(item: &Item, ref x: f32) {} //~ expected a name for an argument of a kernel, found a pattern

struct Pair<T>(T, T);

#[kernel]
fn path(item: &Item, Pair::<f32>(a, b): Pair<f32>) {} //~ expected a name for an argument of a kernel, found a pattern

#[kernel]
fn attribute(item: &Item, #[allow(unused)] x: f32) {} //~ an argument of a kernel cannot have attributes

fn main() {}
