//! Types of values in memory that host and device share.

/// Types that host and device store alike: integers, floats and arrays of them.
///
/// They are the `T` of `&[T]` and [`Global<T>`](crate::Global). `bool` and `char` are not among them: not every bit pattern is
/// one of their values.
///
/// # Safety
/// Implement this trait only for a `#[repr(C)]` or `#[repr(transparent)]` struct of elements such that
/// - every bit pattern is a value, and there is no padding between or after the fields,
/// - it contains no pointer or reference: memory of the host is invalid on a device,
/// - its alignment is at most 256 bytes, which is that of memory of GPUs.
///
/// Do not implement the hidden items.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Point {
///     x: f32,
///     y: f32,
/// }
/// // SAFETY: two floats without padding.
/// unsafe impl offload_device::Element for Point {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a kernel's slice or `Global`",
    label = "expected an integer of 8 to 64 bits, a float, or an array of them",
    note = "for a `#[repr(C)]` struct of such fields, without padding, add `unsafe impl offload_device::Element`"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Name in signatures of kernels; without one, they state size and alignment.
    #[doc(hidden)]
    const __NAME: Option<&'static str> = None;

    /// Reads an element, atomically if the type has atomic operations.
    ///
    /// # Safety
    /// `at` is valid for reads, and no other thread writes it at the same time, except atomically if the type has atomic
    /// operations.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn __load(at: *const Self) -> Self {
        // SAFETY: the caller guarantees it; a type that keeps this method has no atomic operations.
        unsafe { *at }
    }

    /// Writes an element, atomically if the type has atomic operations.
    ///
    /// # Safety
    /// `at` is valid for writes, and no other thread accesses it at the same time, except atomically if the type has atomic
    /// operations.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn __store(at: *mut Self, value: Self) {
        // SAFETY: the caller guarantees it; a type that keeps this method has no atomic operations.
        unsafe { *at = value }
    }
}

/// Implements `Element` for types without atomic operations.
macro_rules! plain {
    ($($type:ty)*) => {$(
        // SAFETY: every bit pattern is a valid value of this scalar.
        unsafe impl Element for $type {
            const __NAME: Option<&'static str> = Some(stringify!($type));
        }
    )*};
}
plain!(u8 i8 u16 i16 usize isize);

// SAFETY: the elements have no padding, so an array of them has none.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}
