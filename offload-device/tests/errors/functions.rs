//! Functions that cannot be kernels.
#![allow(unused)]
use offload_device::{Global, Item, kernel};

#[kernel]
struct NotAFunction; //~ expected a function as a kernel, found `struct`

#[kernel]
pub const LENGTH: usize = 5; //~ expected a function as a kernel, found `const`

#[kernel]
mod module {} //~ expected a function as a kernel, found `mod`

#[kernel]
async fn asynchronous(item: &Item) {} //~ expected a function without qualifiers as a kernel, found `async`

#[kernel]
pub unsafe fn not_safe(item: &Item) {} //~ expected a function without qualifiers as a kernel, found `unsafe`

#[kernel]
const fn constant(item: &Item) {} //~ expected a function without qualifiers as a kernel, found `const`

#[kernel]
pub(crate) extern "C" fn foreign(item: &Item) {} //~ expected a function without qualifiers as a kernel, found `extern`

#[kernel]
pub fn generic<T>(item: &Item, x: &[f32]) {} //~ a kernel cannot have type parameters or lifetimes

#[kernel]
fn lifetime<'a>(item: &Item, x: &'a [f32]) {} //~ a kernel cannot have type parameters or lifetimes

#[kernel]
fn array<const N: usize>(item: &Item, x: &[f32]) {} //~ a kernel cannot have type parameters or lifetimes

#[kernel]
fn clause(item: &Item)
where //~ a kernel cannot have a `where` clause
    f32: Copy,
{
}

#[kernel]
fn größe(item: &Item) {} //~ expected an ASCII name of a kernel

#[kernel]
fn memcmp(item: &Item) {} //~ expected another name of a kernel: compilers call a function of this name

#[kernel]
fn WARP_SZ(item: &Item) {} //~ `WARP_SZ` is a word of PTX

#[kernel]
#[unsafe(no_mangle)] //~ unexpected `no_mangle`: the name of a kernel is its symbol
pub fn mangled(item: &Item) {}

#[kernel]
#[unsafe(export_name = "other")] //~ unexpected `export_name`
pub fn exported(item: &Item) {}

#[kernel]
fn result(item: &Item, x: &[f32]) -> f32 { //~ a kernel cannot return a value
    x[0]
}

#[kernel]
fn unit(item: &Item) -> () {} //~ a kernel cannot return a value

// The function of an error stays, so that no other error follows from it.
fn uses_generic(item: &Item) {
    generic::<u32>(item, &[]);
}

struct Method;
impl Method {
    #[kernel]
    fn method(&self, item: &Item) {} //~ found `self`: a kernel cannot be a method
}

#[kernel]
fn typed_self(self: &Item, x: &[f32]) {} //~ found `self`: a kernel cannot be a method

fn main() {}
