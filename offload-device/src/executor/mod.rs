//! Executor of the CPU: runs work-items as fibers, workgroups on threads, and scalar operations of the device.

mod failure;
mod fiber;
mod launch;
mod order;
mod scalars;
mod settings;
mod workgroup;

pub(crate) use launch::run;
pub(crate) use scalars::*;
pub use settings::Settings;
pub use workgroup::FiberState;
