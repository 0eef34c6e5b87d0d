//! Vectors on a GPU.
//!
//! ```
//! let mut y = [1.0, 1.0];
//! {{crate_name}}::axpy(2.0, &[3.0, 4.0], &mut y)?;
//! assert_eq!(y, [7.0, 9.0]);
//! # Ok::<(), {{crate_name}}::LengthError>(())
//! ```

mod ffi;

use std::fmt;

/// Two vectors have different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthError {
    /// Length of the first vector.
    pub x: usize,
    /// Length of the second vector.
    pub y: usize,
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected vectors of one length, found {} and {} elements",
            self.x, self.y
        )
    }
}

impl std::error::Error for LengthError {}

/// Adds `a` times `x` to `y`.
///
/// # Errors
///
/// If the vectors have different lengths.
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) -> Result<(), LengthError> {
    check(x, y)?;
    // SAFETY: both have `x.len()` elements; the function reads `x` and writes `y`.
    unsafe { ffi::vectors_axpy(a, x.as_ptr(), y.as_mut_ptr(), x.len()) }
    Ok(())
}

/// Returns the sum of the products of all elements.
///
/// # Errors
///
/// If the vectors have different lengths.
pub fn dot(x: &[f64], y: &[f64]) -> Result<f64, LengthError> {
    check(x, y)?;
    // SAFETY: both have `x.len()` elements, which the function reads.
    Ok(unsafe { ffi::vectors_dot(x.as_ptr(), y.as_ptr(), x.len()) })
}

/// Returns the targets that this build has images for, such as `gfx90a`.
pub fn targets() -> impl Iterator<Item = &'static str> {
    ffi::kernels::images().iter().map(|image| image.target)
}

fn check(x: &[f64], y: &[f64]) -> Result<(), LengthError> {
    let (x, y) = (x.len(), y.len());
    if x == y {
        Ok(())
    } else {
        Err(LengthError { x, y })
    }
}
