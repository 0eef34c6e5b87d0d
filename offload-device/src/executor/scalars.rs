//! Scalar operations of the device, with the names and the requirements of the functions that a GPU has.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

pub(crate) fn sqrt_f32(x: f32) -> f32 {
    x.sqrt()
}
pub(crate) fn sqrt_f64(x: f64) -> f64 {
    x.sqrt()
}
pub(crate) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}
pub(crate) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// Defines operations by methods of a standard atomic type, whose size and alignment the integer has on a 64-bit host.
macro_rules! integers {
    ($($type:ty, $atomic:ty: load $load:ident, store $store:ident, $($name:ident $method:ident,)*;)*) => {$(
        pub(crate) unsafe fn $load(at: *const $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            unsafe { <$atomic>::from_ptr(at.cast_mut()) }.load(Relaxed)
        }
        pub(crate) unsafe fn $store(at: *mut $type, value: $type) {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            unsafe { <$atomic>::from_ptr(at) }.store(value, Relaxed);
        }
        $(pub(crate) unsafe fn $name(at: *mut $type, value: $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            unsafe { <$atomic>::from_ptr(at) }.$method(value, Relaxed)
        })*
    )*};
}
integers! {
    u32, AtomicU32: load atomic_load_u32, store atomic_store_u32,
        atomic_add_u32 fetch_add,
        atomic_exchange_u32 swap,
        atomic_min_u32 fetch_min,
        atomic_max_u32 fetch_max,
        atomic_and_u32 fetch_and,
        atomic_or_u32 fetch_or,
        atomic_xor_u32 fetch_xor,
    ;
    i32, AtomicI32: load atomic_load_i32, store atomic_store_i32,
        atomic_add_i32 fetch_add,
        atomic_exchange_i32 swap,
        atomic_min_i32 fetch_min,
        atomic_max_i32 fetch_max,
    ;
    u64, AtomicU64: load atomic_load_u64, store atomic_store_u64,
        atomic_add_u64 fetch_add,
        atomic_exchange_u64 swap,
        atomic_min_u64 fetch_min,
        atomic_max_u64 fetch_max,
        atomic_and_u64 fetch_and,
        atomic_or_u64 fetch_or,
        atomic_xor_u64 fetch_xor,
    ;
    i64, AtomicI64: load atomic_load_i64, store atomic_store_i64,
        atomic_add_i64 fetch_add,
        atomic_exchange_i64 swap,
        atomic_min_i64 fetch_min,
        atomic_max_i64 fetch_max,
    ;
}

macro_rules! compare_exchange {
    ($($name:ident: $type:ty, $atomic:ty;)*) => {$(
        pub(crate) unsafe fn $name(at: *mut $type, expected: $type, new: $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            let atomic = unsafe { <$atomic>::from_ptr(at) };
            atomic.compare_exchange(expected, new, Relaxed, Relaxed).unwrap_or_else(|before| before)
        }
    )*};
}
compare_exchange! {
    atomic_compare_exchange_u32: u32, AtomicU32;
    atomic_compare_exchange_u64: u64, AtomicU64;
}

/// Defines operations of a float by those of its bits.
macro_rules! floats {
    ($($type:ty, $atomic:ty: $load:ident $store:ident $exchange:ident $add:ident;)*) => {$(
        pub(crate) unsafe fn $load(at: *const $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            <$type>::from_bits(unsafe { <$atomic>::from_ptr(at.cast_mut().cast()) }.load(Relaxed))
        }
        pub(crate) unsafe fn $store(at: *mut $type, value: $type) {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            unsafe { <$atomic>::from_ptr(at.cast()) }.store(value.to_bits(), Relaxed);
        }
        pub(crate) unsafe fn $exchange(at: *mut $type, value: $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            <$type>::from_bits(unsafe { <$atomic>::from_ptr(at.cast()) }.swap(value.to_bits(), Relaxed))
        }
        pub(crate) unsafe fn $add(at: *mut $type, value: $type) -> $type {
            // SAFETY: the caller passes a pointer to which all concurrent accesses are atomic.
            let atomic = unsafe { <$atomic>::from_ptr(at.cast()) };
            let mut before = atomic.load(Relaxed);
            loop {
                let sum = (<$type>::from_bits(before) + value).to_bits();
                match atomic.compare_exchange_weak(before, sum, Relaxed, Relaxed) {
                    Ok(_) => return <$type>::from_bits(before),
                    Err(changed) => before = changed,
                }
            }
        }
    )*};
}
floats! {
    f32, AtomicU32: atomic_load_f32 atomic_store_f32 atomic_exchange_f32 atomic_add_f32;
    f64, AtomicU64: atomic_load_f64 atomic_store_f64 atomic_exchange_f64 atomic_add_f64;
}
