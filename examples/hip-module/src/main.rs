//! Loads HIP kernels and launches one of them. Without a GPU it prints what the program knows of them.

use std::error::Error;

use offload_device::Grid;
use offload_device::gpu::{Api, Buffer, Device, Module, Stream};

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() -> Result<(), Box<dyn Error>> {
    let fat_binary = kernels::image()?;
    println!("{} images in {} bytes", kernels::images().len(), fat_binary.len());
    let saxpy = kernels::kernel::saxpy;
    println!("{} takes:", saxpy.name);
    for argument in saxpy.arguments {
        println!("  {} bytes at {}", argument.size, argument.offset);
    }
    for image in saxpy.images {
        println!("on {}: wavefronts of {}", image.target, image.wavefront.unwrap_or_default());
    }
    match Device::new(Api::Hip, 0) {
        Ok(device) => launch(&device, fat_binary)?,
        Err(error) if error.is_no_gpu() => println!("not launched: {error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Launches `saxpy` and compares each result with the CPU's.
fn launch(device: &Device, fat_binary: &'static [u8]) -> Result<(), Box<dyn Error>> {
    let (a, count) = (2.0f32, 10_000u32);
    let x: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let y = vec![1.0f32; x.len()];

    let stream = Stream::new(device)?;
    // The runtime picks the image for its GPU.
    // SAFETY: `build.rs` made the fat binary.
    let module = unsafe { Module::load(&stream, fat_binary)? };
    let kernel = module.kernel(kernels::kernel::saxpy.name)?;
    let (device_x, device_y) = (Buffer::from_slice(&stream, &x)?, Buffer::from_slice(&stream, &y)?);
    // SAFETY: these are the kernel's arguments, and both buffers have `count` elements.
    unsafe { kernel.launch(Grid::covering(count, 256), 0, &[&a, &device_x, &device_y, &count])? }
    let results = device_y.to_vec()?;

    let is_right = |((x, y), result): ((f32, f32), f32)| result == y + a * x;
    let right = x.into_iter().zip(y).zip(results).all(is_right);
    println!("{} on {device}", if right { "all results right" } else { "wrong results" });
    if right { Ok(()) } else { Err("a result differs from the CPU's".into()) }
}
