//! The device that this crate is compiled for: the same names for GPUs and the CPU.

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
pub use crate::executor::FiberState as State;
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
pub(crate) use crate::executor::*;
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
pub use crate::intrinsics::RegisterState as State;
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
pub(crate) use crate::intrinsics::*;
