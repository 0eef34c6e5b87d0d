//! The CPU as a device: runs kernels without a GPU and finds mistakes in them.
//!
//! The module of a kernel has a function `run`, which takes a [`Grid`] and the kernel's arguments, and returns after the last
//! work-item. The work-items of a workgroup are fibers of one thread. Each runs to its next barrier, in an order that a seed
//! gives, so that a result that depends on the order shows. Workgroups are spread over threads.
//!
//! # Failures
//! `run` panics and names kernel, workgroup and work-item if
//! - a work-item panics, for example because an index is out of bounds,
//! - a work-item reaches a barrier that another work-item of its workgroup does not reach,
//! - a workgroup has more than 1024 work-items, or more than the kernel's `threads`,
//! - the grid has several work-items in a dimension that the kernel's `Item` does not have.
//!
//! The message ends with the seed. After a failure other workgroups stop at their next work-item or barrier, and waiting
//! work-items are unwound, which drops their values. If more than one workgroup fails, `run` reports the first of them.
//!
//! A kernel that waits for another workgroup, or for a work-item of its own workgroup without a barrier, can wait forever, as
//! on a GPU. A kernel cannot run a kernel: `run` panics on the thread of a work-item.
//!
//! # Speed
//! In a debug build a work-item takes about 0.5 µs and a barrier as much; in a release build a tenth of that. These lines in the
//! manifest of the workspace optimize the executor in debug builds too:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! ```
//!
//! A kernel without barriers needs one stack for each thread; with barriers, each work-item of a workgroup has its own.
//!
//! # Settings
//! See [`Settings`] for the variables that set the seed, the number of threads and the size of a fiber's stack.

mod launch;

pub use crate::executor::Settings;
pub use crate::grid::{Grid, Size};
#[doc(hidden)]
pub use launch::{ArgumentList, Given, InvalidArgument, Passed, run_kernel};
