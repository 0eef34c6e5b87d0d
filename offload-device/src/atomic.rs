//! Types with atomic operations.
//!
//! The operations themselves are methods of [`Global`](crate::Global): an atomic operation needs memory that no plain access
//! of safe code reaches.

use crate::{Element, device};

/// Types with the atomic operations add, exchange, load and store: `u32`, `i32`, `u64`, `i64`, `f32` and `f64`.
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    label = "expected `u32`, `i32`, `u64`, `i64`, `f32` or `f64`"
)]
pub trait Atomic: Element + sealed::AtomicOperations {}

/// Integers with the atomic operations min and max: `u32`, `i32`, `u64` and `i64`.
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic minimum and maximum",
    label = "expected `u32`, `i32`, `u64` or `i64`"
)]
pub trait AtomicInteger: Atomic + sealed::IntegerOperations {}

/// Integers with the atomic operations and, or, xor and compare-exchange: `u32` and `u64`.
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations on bits and no compare-exchange",
    label = "expected `u32` or `u64`"
)]
pub trait AtomicUnsigned: AtomicInteger + Eq + sealed::UnsignedOperations {}

/// Operations of the device. All are relaxed and of device scope.
///
/// # Safety
/// Each `at` points to global memory that is valid for reads and writes and aligned for `Self`, and all concurrent accesses
/// to it are atomic.
pub(crate) mod sealed {
    pub trait AtomicOperations: Sized {
        unsafe fn add(at: *mut Self, value: Self) -> Self;
        unsafe fn exchange(at: *mut Self, value: Self) -> Self;
        unsafe fn load(at: *const Self) -> Self;
        unsafe fn store(at: *mut Self, value: Self);
    }
    pub trait IntegerOperations: Sized {
        unsafe fn min(at: *mut Self, value: Self) -> Self;
        unsafe fn max(at: *mut Self, value: Self) -> Self;
    }
    pub trait UnsignedOperations: Sized {
        unsafe fn and(at: *mut Self, value: Self) -> Self;
        unsafe fn or(at: *mut Self, value: Self) -> Self;
        unsafe fn xor(at: *mut Self, value: Self) -> Self;
        unsafe fn compare_exchange(at: *mut Self, expected: Self, new: Self) -> Self;
    }
}

/// Implements a trait by the device's functions, whose arguments and safety requirements are those of the methods.
macro_rules! operations {
    ($name:ident, $operations:ident for $type:ty { $($method:ident($($argument:ident: $of:ty),*) $(-> $result:ty)? = $function:ident;)* }) => {
        impl $name for $type {}
        impl sealed::$operations for $type {$(
            #[inline(always)]
            unsafe fn $method($($argument: $of),*) $(-> $result)? {
                // SAFETY: the caller guarantees the requirements of `sealed`, which are those of the function.
                unsafe { device::$function($($argument),*) }
            }
        )*}
    };
}

/// Implements `Atomic`, and `Element` by atomic accesses: those of the work-item that owns an element can coincide with atomic
/// operations of others.
macro_rules! atomic {
    ($($type:ty: $add:ident $exchange:ident $load:ident $store:ident;)*) => {$(
        operations! { Atomic, AtomicOperations for $type {
            add(at: *mut $type, value: $type) -> $type = $add;
            exchange(at: *mut $type, value: $type) -> $type = $exchange;
            load(at: *const $type) -> $type = $load;
            store(at: *mut $type, value: $type) = $store;
        } }

        // SAFETY: every bit pattern is a valid value of this scalar.
        unsafe impl Element for $type {
            const __NAME: Option<&'static str> = Some(stringify!($type));

            #[inline(always)]
            unsafe fn __load(at: *const Self) -> Self {
                // SAFETY: the caller guarantees the same.
                unsafe { device::$load(at) }
            }

            #[inline(always)]
            unsafe fn __store(at: *mut Self, value: Self) {
                // SAFETY: the caller guarantees the same.
                unsafe { device::$store(at, value) }
            }
        }
    )*};
}
macro_rules! atomic_integer {
    ($($type:ty: $min:ident $max:ident;)*) => {$(
        operations! { AtomicInteger, IntegerOperations for $type {
            min(at: *mut $type, value: $type) -> $type = $min;
            max(at: *mut $type, value: $type) -> $type = $max;
        } }
    )*};
}
macro_rules! atomic_unsigned {
    ($($type:ty: $and:ident $or:ident $xor:ident $compare_exchange:ident;)*) => {$(
        operations! { AtomicUnsigned, UnsignedOperations for $type {
            and(at: *mut $type, value: $type) -> $type = $and;
            or(at: *mut $type, value: $type) -> $type = $or;
            xor(at: *mut $type, value: $type) -> $type = $xor;
            compare_exchange(at: *mut $type, expected: $type, new: $type) -> $type = $compare_exchange;
        } }
    )*};
}

atomic! {
    u32: atomic_add_u32 atomic_exchange_u32 atomic_load_u32 atomic_store_u32;
    i32: atomic_add_i32 atomic_exchange_i32 atomic_load_i32 atomic_store_i32;
    u64: atomic_add_u64 atomic_exchange_u64 atomic_load_u64 atomic_store_u64;
    i64: atomic_add_i64 atomic_exchange_i64 atomic_load_i64 atomic_store_i64;
    f32: atomic_add_f32 atomic_exchange_f32 atomic_load_f32 atomic_store_f32;
    f64: atomic_add_f64 atomic_exchange_f64 atomic_load_f64 atomic_store_f64;
}
atomic_integer! {
    u32: atomic_min_u32 atomic_max_u32;
    i32: atomic_min_i32 atomic_max_i32;
    u64: atomic_min_u64 atomic_max_u64;
    i64: atomic_min_i64 atomic_max_i64;
}
atomic_unsigned! {
    u32: atomic_and_u32 atomic_or_u32 atomic_xor_u32 atomic_compare_exchange_u32;
    u64: atomic_and_u64 atomic_or_u64 atomic_xor_u64 atomic_compare_exchange_u64;
}
