//! Functions of floats that `core` does not have.

use crate::device;

/// Floats: `f32` and `f64`.
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a float of kernels",
    label = "expected `f32` or `f64`"
)]
pub trait Float: Sized + Copy + sealed::FloatFunctions {}

impl Float for f32 {}
impl Float for f64 {}

/// Returns the correctly rounded square root, or NaN if `x` is negative.
#[must_use]
#[inline(always)]
pub fn sqrt<T: Float>(x: T) -> T {
    x.sqrt()
}

/// Returns `a * b + c`, rounded once.
///
/// rustc never fuses a multiplication with an addition; C++ compilers for GPUs do so by default.
#[must_use]
#[inline(always)]
pub fn mul_add<T: Float>(a: T, b: T, c: T) -> T {
    a.mul_add(b, c)
}

mod sealed {
    /// Functions of a [`Float`](super::Float), given by the device.
    pub trait FloatFunctions {
        fn sqrt(self) -> Self;
        fn mul_add(self, b: Self, c: Self) -> Self;
    }
}

macro_rules! floats {
    ($($float:ty: $sqrt:ident, $fma:ident;)*) => {$(
        impl sealed::FloatFunctions for $float {
            #[inline(always)]
            fn sqrt(self) -> Self {
                device::$sqrt(self)
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                device::$fma(self, b, c)
            }
        }
    )*};
}
floats! {
    f32: sqrt_f32, fma_f32;
    f64: sqrt_f64, fma_f64;
}
