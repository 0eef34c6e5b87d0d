//! A kernel in `kernels/src/lib.rs`, for the module API of HIP and CUDA.
//!
//! `images::images()` has a code object or PTX for each target; `images::kernel::saxpy` describes the kernel.

/// Images and kernels, made by `build.rs`.
pub mod images {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[cfg(test)]
mod tests {
    use {{crate_name}}_kernels::saxpy;
    use offload_device::{Global, cpu::Grid};

    #[test]
    fn adds_on_the_cpu() {
        let x = vec![1.0; 1000];
        let mut y = vec![2.0; 1000];
        saxpy::run(Grid::covering(1000, 256), 3.0, &x, Global::new(&mut y));
        assert_eq!(y, vec![5.0; 1000]);
    }
}
