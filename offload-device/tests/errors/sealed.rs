//! Traits that other crates cannot implement: with the feature `gpu` an argument needs another trait, too.
#![allow(unused)]
use offload_device::Argument;

#[derive(Clone, Copy)]
struct Mine(u32);

// SAFETY: a scalar.
unsafe impl Argument for Mine { //~ `Mine` cannot be an argument of a kernel: `Argument` is sealed
    type First = u32;
    type Second = ();
    fn split(self) -> (u32, ()) {
        (self.0, ())
    }
    unsafe fn join(first: u32, (): ()) -> Self {
        Self(first)
    }
}

fn main() {}
