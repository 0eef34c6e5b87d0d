//! Launches on GPUs, with libraries that stand for HIP's runtime and CUDA's driver: `tests/support/gpu_driver.c`, compiled with
//! the vendors' headers, records each call.
#![allow(clippy::unwrap_used, reason = "helpers are not tests for clippy")]

mod arguments;
mod errors;
#[path = "../../../tests/support/gpu_driver.rs"]
#[allow(unreachable_pub, reason = "a module of several crates")]
mod gpu_driver;
mod loader;
mod stand_in;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use offload_device::{Element, Global, Item, kernel};

/// The system's allocator, which notices that [`WATCHED`] is freed.
struct Watching;

/// Address of memory that was not freed since it was set.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Watching = Watching;

// SAFETY: calls those of the system.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = WATCHED.compare_exchange(memory as usize, 0, Relaxed, Relaxed);
        // SAFETY: the caller guarantees the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// y = a x + y
#[kernel(threads = 256)]
pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, a * x[i] + y.get(item));
    }
}

/// Has a scalar of each type.
#[kernel]
#[allow(clippy::too_many_arguments)]
pub fn scalars(
    _item: &Item,
    _a: u8,
    _b: i8,
    _c: u16,
    _d: i16,
    _e: u32,
    _f: i32,
    _g: u64,
    _h: i64,
    _i: usize,
    _j: isize,
    mut _k: f32,
    _l: f64,
) {
}

/// Three floats.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Point {
    /// Coordinates.
    pub x: [f32; 3],
}
// SAFETY: three floats without padding.
unsafe impl Element for Point {}

/// Has arguments of different alignments between pointers.
#[kernel]
#[allow(clippy::too_many_arguments)]
pub fn mixed(
    _item: &Item,
    _a: u8,
    _x: &[u8],
    _b: u16,
    _y: Global<[u64; 2]>,
    _c: u8,
    _d: f64,
    _z: &[Point],
    _e: u8,
) {
}

/// Has no argument.
#[kernel]
pub fn nothing(_item: &Item<[u8; 2048]>) {}

/// Shares more memory than a kernel may without asking.
#[kernel]
pub fn large(_item: &Item<[u8; 65536]>) {}

/// Has grids of one dimension.
#[kernel]
pub fn line(_item: &Item<(), 1>) {}

/// Other kernels of the same names, and one that modules have without a signature.
pub mod others {
    use offload_device::{Global, Item, kernel};

    /// Has arguments of the same sizes.
    #[kernel(threads = 256)]
    pub fn saxpy(_item: &Item, _a: f32, _x: u64, _count: u64, _y: Global<u32>) {}

    /// Shares less memory.
    #[kernel]
    pub fn nothing(_item: &Item<[u8; 1024]>) {}

    /// Has more dimensions.
    #[kernel]
    pub fn line(_item: &Item<(), 2>) {}

    /// Is not a kernel in Rust.
    #[kernel]
    pub fn unsigned(_item: &Item) {}
}

/// Is in no module.
#[kernel]
pub fn missing(_item: &Item) {}
