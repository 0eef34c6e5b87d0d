//! Types of kernel arguments.

use crate::Element;
use crate::signature::ArgumentKind;

/// Types of kernel arguments other than the first: integers of 8 to 64 bits, floats, `&[T]` and [`Global<T>`](crate::Global)
/// with a `T` that is an [`Element`].
///
/// An argument is passed as one or two scalars: compilers for GPUs do not agree on how a struct is passed. A slice or a
/// `Global` is a pointer and a length, which counts elements.
///
/// This trait is sealed.
///
/// # Safety
/// `First` and `Second` are integers, floats, pointers or `()`. Every value that `join` makes of the result of one `split`
/// may exist on many threads at the same time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "expected an integer of 8 to 64 bits, `f32`, `f64`, `&[T]` or `Global<T>`",
    note = "pass a `bool` as `u8`, a `char` as `u32`, and memory that the kernel writes as `Global<T>`"
)]
pub unsafe trait Argument: Copy + sealed::SignatureArgument {
    /// Scalar that is passed first.
    type First: Copy;
    /// Scalar that is passed second, or `()`.
    type Second: Copy;

    /// Returns the scalars that are passed.
    // Images contain code for these scalars: a change raises `ABI` in `description.rs`.
    fn split(self) -> (Self::First, Self::Second);

    /// Makes the argument of the scalars that were passed.
    ///
    /// # Safety
    /// Both are the result of one `split`, or what a host passed in its place, for memory that stays borrowed as long as the
    /// result exists. A kernel's launch calls this function, once for each work-item.
    unsafe fn join(first: Self::First, second: Self::Second) -> Self;
}

pub(crate) mod sealed {
    use super::ArgumentKind;

    /// Kind of an [`Argument`](super::Argument) in signatures of kernels.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be an argument of a kernel",
        label = "`Argument` is sealed: other crates cannot implement it"
    )]
    pub trait SignatureArgument {
        const KIND: ArgumentKind;
    }
}

macro_rules! scalars {
    ($($scalar:ty)*) => {$(
        impl sealed::SignatureArgument for $scalar {
            const KIND: ArgumentKind = ArgumentKind::scalar::<Self>();
        }

        // SAFETY: a scalar.
        unsafe impl Argument for $scalar {
            type First = Self;
            type Second = ();

            #[inline(always)]
            fn split(self) -> (Self, ()) {
                (self, ())
            }

            #[inline(always)]
            unsafe fn join(first: Self, (): ()) -> Self {
                first
            }
        }
    )*};
}
scalars!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64);

impl<T: Element> sealed::SignatureArgument for &[T] {
    const KIND: ArgumentKind = ArgumentKind::slice::<T>();
}

// SAFETY: passed as a pointer and an integer; shared references to elements, which are `Sync`, may be on many threads.
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
unsafe impl<T: Element> Argument for &[T] {
    type First = *const T;
    type Second = usize;

    #[inline(always)]
    fn split(self) -> (*const T, usize) {
        (self.as_ptr(), self.len())
    }

    #[inline(always)]
    unsafe fn join(first: *const T, second: usize) -> Self {
        // SAFETY: the caller passes pointer and length of a borrowed slice.
        unsafe { core::slice::from_raw_parts(first, second) }
    }
}

/// On GPUs the pointer is a reference. So LLVM knows that nothing writes the elements during the launch, and can read them through
/// the read-only cache. The array has no elements, so the reference promises no size: a slice may be empty.
// SAFETY: as on the host.
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
unsafe impl<'a, T: Element> Argument for &'a [T] {
    type First = Option<&'a [T; 0]>;
    type Second = usize;

    #[inline(always)]
    fn split(self) -> (Option<&'a [T; 0]>, usize) {
        (self.first_chunk(), self.len())
    }

    #[inline(always)]
    unsafe fn join(first: Option<&'a [T; 0]>, second: usize) -> Self {
        let first = first.map_or(core::ptr::null(), |elements| elements.as_ptr());
        // SAFETY: the caller passes pointer and length of a borrowed slice.
        unsafe { core::slice::from_raw_parts(first, second) }
    }
}
