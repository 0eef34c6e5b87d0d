//! A kernel in `kernels/saxpy.hip`, for the module API of HIP.
//!
//! `hipModuleLoadData` takes `kernels::image()`; the runtime chooses the image for its GPU. `hipModuleGetFunction` takes
//! `kernels::kernel::saxpy.name`.

/// Images and kernels, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[cfg(test)]
mod tests {
    use super::kernels;

    #[test]
    fn has_the_kernel_for_each_gpu() {
        let saxpy = kernels::kernel::saxpy;
        assert_eq!(saxpy.arguments.len(), 4);
        assert_eq!(saxpy.images.len(), kernels::images().len());
    }
}
