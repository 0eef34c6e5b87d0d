//! A kernel in `kernels/src/lib.rs`, and functions that run it on a GPU and on the CPU.

use offload_device::gpu::{Buffer, Device, Error, Module, Stream};
use offload_device::{Global, Grid};

use {{crate_name}}_kernels::saxpy;

/// Images and kernels, made by `build.rs`.
pub mod images {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Replaces `y` by `a * x + y`, computed by a GPU.
///
/// # Errors
/// If this crate has no image for the GPU, or a function of its driver fails.
pub fn saxpy_on_gpu(device: &Device, a: f32, x: &[f32], y: &mut [f32]) -> Result<(), Error> {
    let stream = Stream::new(device)?;
    // SAFETY: `build.rs` made the images of the crate of `saxpy`.
    let module =
        unsafe { Module::load_any(&stream, images::images().iter().map(|image| image.bytes))? };
    let x = Buffer::from_slice(&stream, x)?;
    let mut result = Buffer::from_slice(&stream, y)?;
    saxpy::launch(&module, Grid::for_len(y.len(), 256), a, &x, &mut result)?;
    result.copy_to(y)
}

/// Replaces `y` by `a * x + y`, computed by the CPU.
pub fn saxpy_on_cpu(a: f32, x: &[f32], y: &mut [f32]) {
    saxpy::run(Grid::for_len(y.len(), 256), a, x, Global::new(y));
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds_on_the_cpu() {
        let mut y = vec![2.0; 1000];
        super::saxpy_on_cpu(3.0, &vec![1.0; 1000], &mut y);
        assert_eq!(y, vec![5.0; 1000]);
    }
}
