//! Arguments of the attribute.
#![allow(unused)]
use offload_device::{Item, kernel};

#[kernel(threads = 0)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `0`
fn zero(item: &Item) {}

#[kernel(threads = 1025)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `1025`
fn too_many(item: &Item) {}

#[kernel(threads = GROUP)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `GROUP`
fn constant(item: &Item) {}

#[kernel(threads = -1)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `- 1`
fn negative(item: &Item) {}

#[kernel(threads = "256")] //~ expected `threads = N` with an integer literal from 1 to 1024, found `"256"`
fn string(item: &Item) {}

#[kernel(threads = 256.0)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `256.0`
fn float(item: &Item) {}

#[kernel(threads)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `threads`
fn no_value(item: &Item) {}

#[kernel(threads =)] //~ expected `threads = N` with an integer literal from 1 to 1024, found no value
fn nothing(item: &Item) {}

#[kernel(threads(256))] //~ expected `threads = N` with an integer literal from 1 to 1024, found `(256)`
fn parentheses(item: &Item) {}

#[kernel(threads = 16 * 16)] //~ expected `threads = N` with an integer literal from 1 to 1024, found `16 * 16`
fn product(item: &Item) {}

#[kernel(thread = 256)] //~ expected `threads = N`, found `thread`
fn unknown(item: &Item) {}

#[kernel(256)] //~ expected `threads = N`, found `256`
fn number(item: &Item) {}

#[kernel(threads = 256, blocks = 4)] //~ expected only `threads = N`, found `blocks`
fn more(item: &Item) {}

fn main() {}
