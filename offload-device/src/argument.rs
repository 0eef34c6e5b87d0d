//! Types of kernel arguments, and their layout.

use crate::atomic::sealed::Atomic as _;

/// Types that host and device store alike: integers, floats and arrays of them.
///
/// They are the `T` of `&[T]` and [`Global<T>`](crate::Global). `bool` and `char` are not among them: not every bit pattern is
/// one of their values.
///
/// # Safety
/// Implement this trait only for a `#[repr(C)]` or `#[repr(transparent)]` struct of elements such that
/// - every bit pattern is a value, and there is no padding between or after the fields,
/// - it contains no pointer or reference: memory of the host is invalid on a device.
///
/// Do not implement the hidden methods.
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

/// Types of kernel arguments other than the first: integers of 8 to 64 bits, floats, `&[T]` and [`Global<T>`](crate::Global)
/// with a `T` that is an [`Element`].
///
/// An argument is passed as one or two scalars: compilers for GPUs do not agree on how a struct is passed. A slice or a
/// `Global` is a pointer and a length, which counts elements.
///
/// # Safety
/// `First` and `Second` are integers, floats, raw pointers or `()`. Every value that `join` makes of the result of one `split`
/// may exist on many threads at the same time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "expected an integer of 8 to 64 bits, `f32`, `f64`, `&[T]` or `Global<T>`",
    note = "pass a `bool` as `u8`, a `char` as `u32`, and memory that the kernel writes as `Global<T>`"
)]
pub unsafe trait Argument: Copy {
    /// Scalar that is passed first.
    type First: Copy;
    /// Scalar that is passed second, or `()`.
    type Second: Copy;

    /// Returns the scalars that are passed.
    fn split(self) -> (Self::First, Self::Second);

    /// Makes the argument of the scalars that were passed.
    ///
    /// # Safety
    /// Both are the result of one `split`, or what a host passed in its place, for memory that stays borrowed as long as the
    /// result exists. A kernel's launch calls this function, once for each work-item.
    unsafe fn join(first: Self::First, second: Self::Second) -> Self;
}

macro_rules! scalars {
    ($($scalar:ty)*) => {$(
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

/// Implements `Element` for types without atomic operations.
macro_rules! plain {
    ($($type:ty)*) => {$(
        // SAFETY: a scalar of which every bit pattern is a value.
        unsafe impl Element for $type {}
    )*};
}
plain!(u8 i8 u16 i16 usize isize);

// SAFETY: the elements have no padding, so an array of them has none.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}

/// Implements `Element` for types with atomic operations, by atomic accesses: those of the work-item that owns an element can
/// coincide with atomic operations of others.
macro_rules! atomic {
    ($($type:ty)*) => {$(
        // SAFETY: a scalar of which every bit pattern is a value.
        unsafe impl Element for $type {
            #[inline(always)]
            unsafe fn __load(at: *const Self) -> Self {
                // SAFETY: the caller guarantees the same.
                unsafe { Self::load(at) }
            }

            #[inline(always)]
            unsafe fn __store(at: *mut Self, value: Self) {
                // SAFETY: the caller guarantees the same.
                unsafe { Self::store(at, value) }
            }
        }
    )*};
}
atomic!(u32 i32 u64 i64 f32 f64);

// SAFETY: passed as a raw pointer and an integer; shared references to elements, which are `Sync`, may be on many threads.
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

/// Size and alignment of a scalar in the buffer of a kernel's arguments.
///
/// Each scalar has the first offset after the scalar before it that is a multiple of its alignment, on AMD and NVIDIA alike:
///
/// ```
/// use offload_device::Layout;
///
/// const ARGUMENTS: &[Layout] = &[Layout::of::<f32>(), Layout::of::<*const f32>(), Layout::of::<u8>()];
/// const LENGTH: usize = Layout::offset(ARGUMENTS, 2);
/// assert_eq!(LENGTH, 16);
/// assert_eq!(Layout::offsets(ARGUMENTS).collect::<Vec<_>>(), [0, 8, 16]);
/// assert_eq!(Layout::buffer_size(ARGUMENTS), 17);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
}

impl Layout {
    /// Returns the layout of a type.
    pub const fn of<T>() -> Self {
        Self {
            size: size_of::<T>(),
            align: align_of::<T>(),
        }
    }

    /// Returns the offset of an argument in bytes from the start of the buffer; the index can be the number of arguments, for
    /// the end of the last one.
    pub const fn offset(arguments: &[Layout], index: usize) -> usize {
        let mut offset = 0;
        let mut before = 0;
        while before < index {
            offset = next_multiple(offset, arguments[before].align) + arguments[before].size;
            before += 1;
        }
        if index < arguments.len() {
            next_multiple(offset, arguments[index].align)
        } else {
            offset
        }
    }

    /// Returns the size of the buffer in bytes.
    pub const fn buffer_size(arguments: &[Layout]) -> usize {
        Self::offset(arguments, arguments.len())
    }

    /// Iterates over the offsets of all arguments.
    pub fn offsets(arguments: &[Layout]) -> impl Iterator<Item = usize> + '_ {
        arguments.iter().scan(0, |end, argument| {
            let offset = next_multiple(*end, argument.align);
            *end = offset + argument.size;
            Some(offset)
        })
    }
}

const fn next_multiple(offset: usize, align: usize) -> usize {
    offset.next_multiple_of(align)
}
