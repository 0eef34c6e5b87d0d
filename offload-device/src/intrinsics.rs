//! GPUs: functions of `__offload_*` names, which the build links in as LLVM IR and inlines.

use core::panic::PanicInfo;

/// Access to the running work-item: a GPU keeps its place in registers.
pub struct RegisterState(());

impl RegisterState {
    /// Returns the state of the running work-item.
    ///
    /// # Safety
    /// Called by a kernel's entry.
    #[inline(always)]
    pub unsafe fn current() -> Self {
        Self(())
    }
    #[inline(always)]
    pub(crate) fn local_id(&self, dimension: u32) -> u32 {
        __offload_local_id(dimension)
    }
    #[inline(always)]
    pub(crate) fn group_id(&self, dimension: u32) -> u32 {
        __offload_group_id(dimension)
    }
    #[inline(always)]
    pub(crate) fn local_size(&self, dimension: u32) -> u32 {
        __offload_local_size(dimension)
    }
    #[inline(always)]
    pub(crate) fn group_count(&self, dimension: u32) -> u32 {
        __offload_group_count(dimension)
    }
    #[inline(always)]
    pub(crate) fn barrier(&self) {
        __offload_barrier();
    }
    #[inline(always)]
    pub(crate) fn shared(&self) -> *mut u8 {
        __offload_dynamic_shared()
    }
}

// SAFETY: the build links in functions of these names and types.
unsafe extern "C" {
    // A dimension is 0, 1 or 2: `Item` checks it.
    safe fn __offload_local_id(dimension: u32) -> u32;
    safe fn __offload_group_id(dimension: u32) -> u32;
    safe fn __offload_local_size(dimension: u32) -> u32;
    safe fn __offload_group_count(dimension: u32) -> u32;
    safe fn __offload_barrier();
    safe fn __offload_dynamic_shared() -> *mut u8;
}

// SAFETY: the build links in functions of these names and types.
unsafe extern "C" {
    #[link_name = "__offload_sqrt_f32"]
    pub(crate) safe fn sqrt_f32(x: f32) -> f32;
    #[link_name = "__offload_sqrt_f64"]
    pub(crate) safe fn sqrt_f64(x: f64) -> f64;
    #[link_name = "__offload_fma_f32"]
    pub(crate) safe fn fma_f32(a: f32, b: f32, c: f32) -> f32;
    #[link_name = "__offload_fma_f64"]
    pub(crate) safe fn fma_f64(a: f64, b: f64, c: f64) -> f64;
}

/// Declares functions, which in the link have the prefix `__offload_`.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        // SAFETY: the build links in functions of these names and types.
        unsafe extern "C" {
            $(#[link_name = concat!("__offload_", stringify!($name))]
            pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)?;)*
        }
    };
}
functions! {
    atomic_add_u32(at: *mut u32, value: u32) -> u32;
    atomic_exchange_u32(at: *mut u32, value: u32) -> u32;
    atomic_min_u32(at: *mut u32, value: u32) -> u32;
    atomic_max_u32(at: *mut u32, value: u32) -> u32;
    atomic_and_u32(at: *mut u32, value: u32) -> u32;
    atomic_or_u32(at: *mut u32, value: u32) -> u32;
    atomic_xor_u32(at: *mut u32, value: u32) -> u32;
    atomic_compare_exchange_u32(at: *mut u32, expected: u32, new: u32) -> u32;
    atomic_load_u32(at: *const u32) -> u32;
    atomic_store_u32(at: *mut u32, value: u32);
    atomic_add_i32(at: *mut i32, value: i32) -> i32;
    atomic_exchange_i32(at: *mut i32, value: i32) -> i32;
    atomic_min_i32(at: *mut i32, value: i32) -> i32;
    atomic_max_i32(at: *mut i32, value: i32) -> i32;
    atomic_load_i32(at: *const i32) -> i32;
    atomic_store_i32(at: *mut i32, value: i32);
    atomic_add_u64(at: *mut u64, value: u64) -> u64;
    atomic_exchange_u64(at: *mut u64, value: u64) -> u64;
    atomic_min_u64(at: *mut u64, value: u64) -> u64;
    atomic_max_u64(at: *mut u64, value: u64) -> u64;
    atomic_and_u64(at: *mut u64, value: u64) -> u64;
    atomic_or_u64(at: *mut u64, value: u64) -> u64;
    atomic_xor_u64(at: *mut u64, value: u64) -> u64;
    atomic_compare_exchange_u64(at: *mut u64, expected: u64, new: u64) -> u64;
    atomic_load_u64(at: *const u64) -> u64;
    atomic_store_u64(at: *mut u64, value: u64);
    atomic_add_i64(at: *mut i64, value: i64) -> i64;
    atomic_exchange_i64(at: *mut i64, value: i64) -> i64;
    atomic_min_i64(at: *mut i64, value: i64) -> i64;
    atomic_max_i64(at: *mut i64, value: i64) -> i64;
    atomic_load_i64(at: *const i64) -> i64;
    atomic_store_i64(at: *mut i64, value: i64);
    atomic_add_f32(at: *mut f32, value: f32) -> f32;
    atomic_exchange_f32(at: *mut f32, value: f32) -> f32;
    atomic_load_f32(at: *const f32) -> f32;
    atomic_store_f32(at: *mut f32, value: f32);
    atomic_add_f64(at: *mut f64, value: f64) -> f64;
    atomic_exchange_f64(at: *mut f64, value: f64) -> f64;
    atomic_load_f64(at: *const f64) -> f64;
    atomic_store_f64(at: *mut f64, value: f64);
}

/// Satisfies rustc: the build compiles with `-Cpanic=immediate-abort`, which makes each panic a trap.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
