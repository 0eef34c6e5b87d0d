//! A kernel in `kernels/saxpy.hip`, and a function that launches it.

use std::error::Error;

use offload_device::Grid;
use offload_device::gpu::{Buffer, Device, Module, Stream};

/// Images and kernels, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Returns `a * x + y`, computed by a GPU.
///
/// # Errors
/// If this crate has no image for the GPU, or a function of the runtime fails.
pub fn saxpy(device: &Device, a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
    let count = u32::try_from(x.len().min(y.len()))?;
    let stream = Stream::new(device)?;
    // SAFETY: `build.rs` made the image.
    let module = unsafe { Module::load(&stream, kernels::image()?)? };
    let x = Buffer::from_slice(&stream, x)?;
    let y = Buffer::from_slice(&stream, y)?;
    let saxpy = module.kernel(kernels::kernel::saxpy.name)?;
    // SAFETY: these are the arguments of the kernel, which accesses `count` elements of each buffer.
    unsafe { saxpy.launch(Grid::covering(count, 256), 0, &[&a, &x, &y, &count])? }
    Ok(y.to_vec()?)
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
