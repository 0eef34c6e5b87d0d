//! Calls a C++ function that launches a kernel with `<<<…>>>`. Without a GPU it says so.

use std::ffi::{c_int, c_uint};

// The kernel is registered when the program starts.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    fn saxpy(a: f32, x: *const f32, y: *mut f32, count: c_uint) -> c_int;
    fn cudaGetDeviceCount(count: *mut c_int) -> c_int;
}

fn main() -> Result<(), String> {
    for image in kernels::kernel::saxpy_kernel.images {
        println!("saxpy_kernel for {}: {} bytes of arguments", image.target, image.arguments_size);
    }
    let mut devices = 0;
    // SAFETY: the runtime writes a number to this address.
    let status = unsafe { cudaGetDeviceCount(&mut devices) };
    if status != 0 || devices == 0 {
        println!("no GPU: cudaGetDeviceCount returns {status}");
        return Ok(());
    }
    let x: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let mut y = vec![1.0; x.len()];
    // SAFETY: both have 1000 elements, of which the function reads `x` and writes `y`.
    let status = unsafe { saxpy(2.0, x.as_ptr(), y.as_mut_ptr(), 1000) };
    if status != 0 {
        return Err(format!("saxpy: error {status} of CUDA's runtime"));
    }
    let right = x.iter().zip(&y).all(|(x, y)| *y == 1.0 + 2.0 * x);
    println!("{}", if right { "all results right" } else { "wrong results" });
    if right { Ok(()) } else { Err("wrong results".to_owned()) }
}
