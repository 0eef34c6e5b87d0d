//! Loads CUDA kernels that are instances of a template, and launches one of them.

use std::error::Error;

use offload_device::Grid;
use offload_device::gpu::{Api, Buffer, Device, Module, Stream};

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() -> Result<(), Box<dyn Error>> {
    for kernel in kernels::kernel::ALL {
        let targets: Vec<&str> = kernel.images.iter().map(|image| image.target).collect();
        println!("{} is {}, for {}", kernel.source_name, kernel.name, targets.join(" and "));
    }
    match Device::new(Api::Cuda, 0) {
        Ok(device) => launch(&device),
        Err(error) if error.is_no_gpu() => Ok(println!("not launched: no NVIDIA GPU")),
        Err(error) => Err(error.into()),
    }
}

/// Launches `sum<int>` and compares the result.
fn launch(device: &Device) -> Result<(), Box<dyn Error>> {
    let sum = kernels::find_kernel("sum<int>").ok_or("the source has no sum<int>")?;
    let x: Vec<i32> = (0..10_000).collect();
    let count = u32::try_from(x.len())?;
    let stream = Stream::new(device)?;
    // The driver picks the image for its GPU.
    // SAFETY: `build.rs` made the fat binary.
    let module = unsafe { Module::load(&stream, kernels::image()?)? };
    let sum = module.kernel(sum.name)?;
    let (values, total) = (Buffer::from_slice(&stream, &x)?, Buffer::zeroed(&stream, 1)?);
    // SAFETY: these are the kernel's arguments; the buffers have `count` elements and one.
    unsafe { sum.launch(Grid::new(8, 256), 0, &[&values, &total, &count])? }
    let result: Vec<i32> = total.to_vec()?;
    println!("sum {} on {device}", result[0]);
    match result[0] == x.iter().sum() {
        true => Ok(()),
        false => Err("the CPU's sum differs".into()),
    }
}
