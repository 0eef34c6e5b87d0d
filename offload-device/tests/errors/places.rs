//! Kernels that are items of functions.
#![allow(unused)]
use offload_device::{Global, Item, kernel};

#[kernel]
fn fill(item: &Item, y: Global<u32>) {}

fn of_a_function() {
    #[kernel] //~ a kernel is an item of a module, not of a function
    fn fill(item: &Item, y: Global<u32>) {}

    // In a module of its own.
    mod inner {
        use super::*;

        #[kernel]
        fn fill(item: &Item, y: Global<u32>) {}
    }
}

macro_rules! kernels {
    ($($name:ident)*) => {$(
        #[kernel] //~ a kernel is an item of a module, not of a function
        fn $name(item: &Item, y: Global<u32>) {}
    )*};
}
kernels! { first second }

fn of_a_macro() {
    kernels! { second }
}

fn main() {}
