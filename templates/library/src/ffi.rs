//! Functions of `kernels/vectors.h`.

/// Images of the kernels, made by `build.rs`.
pub(crate) mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    pub(crate) fn vectors_axpy(a: f64, x: *const f64, y: *mut f64, count: usize);
    pub(crate) fn vectors_dot(x: *const f64, y: *const f64, count: usize) -> f64;
}
