//! The mean of numbers, on a device.

/// Device images, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    fn mean_on_device(x: *const f64, count: usize) -> f64;
}

/// Returns the mean of all elements.
pub fn mean(x: &[f64]) -> f64 {
    // SAFETY: `x` has `x.len()` elements, which the function reads.
    unsafe { mean_on_device(x.as_ptr(), x.len()) }
}
