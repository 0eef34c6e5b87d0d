//! Signatures of kernels: text that each image contains, and that a launch compares with the text of its own kernel.

use crate::Element;
use crate::description::{ABI, Layout};

/// Text before the bytes of shared memory, which are last: launches compare them as a number.
pub(crate) const SHARED: &str = "; shared = ";

/// Argument of a kernel in a signature: text, around the name or the layout of a scalar or an element.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentKind {
    before: &'static str,
    name: Option<&'static str>,
    layout: Layout,
    after: &'static str,
}

impl ArgumentKind {
    /// Kind of a type that cannot be an argument.
    pub(crate) const INVALID: Self = Self {
        before: "",
        name: Some("?"),
        layout: Layout::of::<()>(),
        after: "",
    };

    /// Returns the kind of a scalar.
    pub(crate) const fn scalar<T: Element>() -> Self {
        Self::of::<T>("", "")
    }

    /// Returns the kind of a `&[T]`.
    pub(crate) const fn slice<T: Element>() -> Self {
        Self::of::<T>("&[", "]")
    }

    /// Returns the kind of a `Global<T>`.
    pub(crate) const fn global<T: Element>() -> Self {
        Self::of::<T>("Global<", ">")
    }

    const fn of<T: Element>(before: &'static str, after: &'static str) -> Self {
        Self {
            before,
            name: T::__NAME,
            layout: Layout::of::<T>(),
            after,
        }
    }
}

/// Everything that a launch and its kernel must agree on for memory safety.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// Bytes of shared memory.
    pub shared: usize,
    /// Dimensions in which the grid may have more than one work-item.
    pub dimensions: usize,
    /// Arguments after the first.
    pub arguments: &'a [ArgumentKind],
    /// Maximum number of work-items in a workgroup.
    pub threads: Option<u32>,
}

impl Signature<'_> {
    /// Returns the length of the text in bytes.
    pub const fn text_len(&self) -> usize {
        self.write::<0>().len
    }

    /// Returns the text, such as `ABI 1: &Item<_, 3>, f32, &[f32], Global<f32>; threads = 256; shared = 0`. `N` is its length.
    pub const fn text<const N: usize>(&self) -> [u8; N] {
        self.write().bytes
    }

    const fn write<const N: usize>(&self) -> Text<N> {
        let mut text = Text {
            bytes: [0; N],
            len: 0,
        };
        text.push("ABI ");
        text.push_number(ABI);
        text.push(": &Item<_, ");
        text.push_number(self.dimensions);
        text.push(">");
        let mut index = 0;
        while index < self.arguments.len() {
            let argument = &self.arguments[index];
            text.push(", ");
            text.push(argument.before);
            match argument.name {
                Some(name) => text.push(name),
                None => {
                    text.push_number(argument.layout.size);
                    text.push(" bytes of alignment ");
                    text.push_number(argument.layout.align);
                }
            }
            text.push(argument.after);
            index += 1;
        }
        if let Some(threads) = self.threads {
            text.push("; threads = ");
            text.push_number(threads as usize);
        }
        text.push(SHARED);
        text.push_number(self.shared);
        text
    }
}

/// Text of at most `N` bytes; `len` counts all that were pushed.
struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    const fn push(&mut self, text: &str) {
        let text = text.as_bytes();
        let mut index = 0;
        while index < text.len() {
            self.push_byte(text[index]);
            index += 1;
        }
    }

    const fn push_number(&mut self, number: usize) {
        if number >= 10 {
            self.push_number(number / 10);
        }
        self.push_byte(b'0' + (number % 10) as u8);
    }

    const fn push_byte(&mut self, byte: u8) {
        if self.len < N {
            self.bytes[self.len] = byte;
        }
        self.len += 1;
    }
}
