//! GPU kernels in Rust: one source for AMD GPUs, NVIDIA GPUs and the CPU.
//!
//! A kernel is a function with the attribute [`kernel`](macro@kernel). For a GPU it becomes the entry of an image. On the
//! CPU it stays an ordinary function, and a module of the same name runs it, so that plain `cargo test` tests kernels.
//!
//! ```
//! use offload_device::{Global, Grid, Item, kernel};
//!
//! /// y = a x + y
//! #[kernel(threads = 256)]
//! pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
//!     let i = item.global_index();
//!     if i < y.len() {
//!         y.set(item, a * x[i] + y.get(item));
//!     }
//! }
//!
//! fn main() {
//!     let x = vec![1.0; 1000];
//!     let mut y = vec![2.0; 1000];
//!     saxpy::run(Grid::for_len(y.len(), 256), 3.0, &x, Global::new(&mut y));
//!     assert_eq!(y, vec![5.0; 1000]);
//! }
//! ```
//!
//! # Terms
//! A launch runs a kernel for each *work-item* (CUDA: thread) of a *grid*. Work-items form *workgroups* (CUDA: thread blocks).
//! The work-items of a workgroup meet at barriers and use *shared memory* (HIP: LDS).
//!
//! # Kernels
//! - The first argument is `item: &Item<S>`: place and barrier of the work-item. `S` is the type of the shared memory.
//!   A kernel with `&Item<S, 1>` is for grids of one dimension, whose index costs less.
//! - Other arguments have a type that implements [`Argument`]: integers, floats, `&[T]` and [`Global<T>`].
//! - A kernel returns nothing, has no type parameters, and is an item of a module, not of a function.
//! - A panic, for example an index out of bounds, is a trap on a GPU.
//! - rustc never contracts `a * b + c`: write [`mul_add`] for a fused multiply-add.
//!
//! The page `docs/rust-kernels-soundness.md` and the documentation of [`Global`] state why safe kernels have no data races.
#![cfg_attr(any(target_arch = "amdgpu", target_arch = "nvptx64"), no_std)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "offload-device supports 64-bit hosts only: pointers and `usize` have 64 bits on GPUs"
);

mod argument;
mod atomic;
mod description;
mod device;
mod element;
mod expansion;
mod float;
mod global;
mod item;
mod signature;

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
pub mod cpu;
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
mod executor;
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
mod grid;
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
pub use grid::{Grid, Size};

#[cfg(all(
    feature = "gpu",
    not(any(target_arch = "amdgpu", target_arch = "nvptx64"))
))]
pub mod gpu;

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
mod intrinsics;

pub use argument::Argument;
pub use atomic::{Atomic, AtomicInteger, AtomicUnsigned};
pub use description::Layout;
pub use element::Element;
pub use float::{Float, mul_add, sqrt};
pub use global::Global;
pub use item::Item;
pub use offload_device_macros::kernel;

/// Names that the expansion of [`kernel`](macro@kernel) uses. They can change in any release.
#[doc(hidden)]
pub mod __private {
    pub use crate::description::Description;
    pub use crate::device::State;
    pub use crate::expansion::{
        ArgumentType, InvalidType, arguments_len, check_place, present_arguments,
    };
    pub use crate::item::{
        ItemReference, dimensions, is_shared_aligned, is_shared_plain, shared_size,
    };
    pub use crate::signature::{ArgumentKind, Signature};
}

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
