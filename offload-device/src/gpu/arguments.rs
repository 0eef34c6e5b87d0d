//! Arguments of launches: bytes at the offsets that GPUs expect.

use super::{Buffer, Stream};
use crate::{Element, Global};

/// Arguments of a launch, which [`KernelArgument`] and [`LaunchArgument`] append.
///
/// Each scalar has the first offset after the one before it that is a multiple of its alignment, as
/// [`Layout::offset`](crate::Layout::offset) says.
#[derive(Debug)]
pub struct Arguments<'a> {
    stream: &'a Stream,
    pub(super) bytes: Vec<u8>,
    /// Number of arguments so far.
    count: usize,
    /// Index of the first argument that is a buffer of another stream.
    pub(super) other_stream: Option<usize>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
            count: 0,
            other_stream: None,
        }
    }

    fn value<T: Element>(&mut self, value: T) {
        self.scalar(value);
        self.count += 1;
    }

    fn slice<T>(&mut self, buffer: &Buffer<T>) {
        self.address(buffer);
        self.scalar(buffer.len());
        self.count += 1;
    }

    fn pointer<T>(&mut self, buffer: &Buffer<T>) {
        self.address(buffer);
        self.count += 1;
    }

    fn address<T>(&mut self, buffer: &Buffer<T>) {
        if !buffer.stream().is_same(self.stream) {
            self.other_stream.get_or_insert(self.count);
        }
        self.scalar(buffer.address());
    }

    fn scalar<T: Element>(&mut self, value: T) {
        let offset = self.bytes.len().next_multiple_of(align_of::<T>());
        self.bytes.resize(offset, 0);
        // SAFETY: an `Element` has no padding, so that all its bytes are initialized.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.bytes.extend_from_slice(bytes);
    }
}

/// Arguments of [`Kernel::launch`](super::Kernel::launch): an [`Element`], which is passed by value, or a [`Buffer`], of which
/// the address is passed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "expected an integer of 8 to 64 bits, `f32`, `f64`, another `Element` or a `Buffer`",
    note = "pass a `bool` as `u8`, and memory as `Buffer`"
)]
pub trait KernelArgument: sealed::Sealed {
    /// Appends the argument.
    #[doc(hidden)]
    fn append(&self, arguments: &mut Arguments<'_>);
}

impl<T: Element> KernelArgument for T {
    fn append(&self, arguments: &mut Arguments<'_>) {
        arguments.value(*self);
    }
}

impl<T> KernelArgument for Buffer<T> {
    fn append(&self, arguments: &mut Arguments<'_>) {
        arguments.pointer(self);
    }
}

/// Types of arguments of kernels in Rust, as a launch on a GPU takes them. Each [`Argument`](crate::Argument) of this crate
/// is one; it is no supertrait, so that the compiler reports an invalid type once.
///
/// This trait is sealed.
///
/// # Safety
/// [`HostArgument::append`] of `Host` appends the scalars that [`Argument::split`](crate::Argument::split) would return. Their
/// memory stays valid until the stream has run the kernel, and exclusive until then for a [`Global`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "expected an integer of 8 to 64 bits, `f32`, `f64`, `&[T]` or `Global<T>`",
    note = "pass a `bool` as `u8`, a `char` as `u32`, and memory that the kernel writes as `Global<T>`"
)]
pub unsafe trait LaunchArgument: sealed::LaunchType {
    /// Argument of `launch`: the type itself, or `&Buffer<T>` for `&[T]`, or `&mut Buffer<T>` for `Global<T>`.
    type Host: HostArgument;
}

/// Arguments that a `launch` takes, see [`LaunchArgument`].
///
/// This trait is sealed.
pub trait HostArgument: sealed::HostType {
    /// Appends the scalars of the argument.
    #[doc(hidden)]
    fn append(self, arguments: &mut Arguments<'_>);
}

macro_rules! scalars {
    ($($scalar:ty)*) => {$(
        // SAFETY: a scalar, which is passed as it is.
        unsafe impl LaunchArgument for $scalar {
            type Host = Self;
        }

        impl sealed::HostType for $scalar {}

        impl HostArgument for $scalar {
            fn append(self, arguments: &mut Arguments<'_>) {
                arguments.value(self);
            }
        }
    )*};
}
scalars!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64);

// SAFETY: address and length. Writes of the buffer follow in the same stream.
unsafe impl<'a, T: Element> LaunchArgument for &'a [T] {
    type Host = &'a Buffer<T>;
}

// SAFETY: address and length. The buffer is borrowed mutably, so that no other argument refers to it, and other uses follow in
// the same stream.
unsafe impl<'a, T: Element> LaunchArgument for Global<'a, T> {
    type Host = &'a mut Buffer<T>;
}

impl<T> HostArgument for &Buffer<T> {
    fn append(self, arguments: &mut Arguments<'_>) {
        arguments.slice(self);
    }
}

impl<T> HostArgument for &mut Buffer<T> {
    fn append(self, arguments: &mut Arguments<'_>) {
        arguments.slice(self);
    }
}

mod sealed {
    /// Types that have [`KernelArgument`](super::KernelArgument): other crates add some as elements.
    pub trait Sealed {}
    impl<T: crate::Element> Sealed for T {}
    impl<T> Sealed for super::Buffer<T> {}

    /// Types that have [`LaunchArgument`](super::LaunchArgument).
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be an argument of a kernel",
        label = "`LaunchArgument` is sealed: other crates cannot implement it"
    )]
    pub trait LaunchType {}
    impl<T: crate::argument::sealed::SignatureArgument> LaunchType for T {}

    /// Types that have [`HostArgument`](super::HostArgument).
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be an argument of a kernel",
        label = "`HostArgument` is sealed: other crates cannot implement it"
    )]
    pub trait HostType {}
    impl<T> HostType for &super::Buffer<T> {}
    impl<T> HostType for &mut super::Buffer<T> {}
}
