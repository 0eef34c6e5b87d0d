//! Vectors on a device.

/// The dot product of two vectors, computed on a device.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    unsafe extern "C" {
        fn vectors_dot(x: *const f64, y: *const f64, count: usize) -> f64;
    }
    assert_eq!(x.len(), y.len());
    // SAFETY: both point to `x.len()` elements, which the function reads.
    unsafe { vectors_dot(x.as_ptr(), y.as_ptr(), x.len()) }
}
