//! A kernel in `kernels/scale.c`, with a safe function around it.

/// Images of the kernels, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    #[link_name = "scale"]
    fn scale_on_device(factor: f64, x: *mut f64, count: usize);
}

/// Multiplies each element by `factor`.
pub fn scale(factor: f64, x: &mut [f64]) {
    // SAFETY: `x` has `x.len()` elements, which the function reads and writes.
    unsafe { scale_on_device(factor, x.as_mut_ptr(), x.len()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn scales_each_element() {
        let mut x = [1.0, 2.0, 3.0];
        super::scale(2.0, &mut x);
        assert_eq!(x, [2.0, 4.0, 6.0]);
    }
}
