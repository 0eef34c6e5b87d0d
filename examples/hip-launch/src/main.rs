//! Starts a registered kernel twice: through a function of C++ with `<<<…>>>`, and from Rust by the kernel's stub.
//! Without a GPU it says so, and what HIP's runtime answers.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[repr(C)]
struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

unsafe extern "C" {
    fn saxpy_launch(a: f32, x: *const f32, y: *mut f32, count: c_uint) -> c_int;

    fn hipGetDeviceCount(count: *mut c_int) -> c_int;
    fn hipMallocManaged(pointer: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    fn hipFree(pointer: *mut c_void) -> c_int;
    fn hipDeviceSynchronize() -> c_int;
    fn hipLaunchKernel(
        kernel: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *mut *mut c_void,
        shared: usize,
        stream: *mut c_void,
    ) -> c_int;
}

const COUNT: c_uint = 1000;

fn main() -> Result<(), String> {
    let kernel = kernels::kernel::saxpy;
    for image in kernel.images {
        println!("{} for {}: {} bytes of arguments", kernel.name, image.target, image.arguments_size);
    }
    let mut devices = 0;
    // Its address is good, and the runtime keeps nothing of it.
    let status = unsafe { hipGetDeviceCount(&mut devices) };
    if status != 0 || devices == 0 {
        println!("no GPU here: hipGetDeviceCount says {status}");
        return Ok(());
    }
    // Memory that both sides see holds both arrays; every call is checked, and nothing is freed before the last is done.
    unsafe {
        let mut memory = null_mut();
        check("hipMallocManaged", hipMallocManaged(&mut memory, 8 * COUNT as usize, 1))?;
        let x = memory.cast::<f32>();
        let y = x.add(COUNT as usize);
        for i in 0..COUNT as usize {
            x.add(i).write(i as f32);
            y.add(i).write(1.0);
        }
        check("saxpy_launch", saxpy_launch(2.0, x, y, COUNT))?;
        launch(3.0, x, y)?;
        check("hipDeviceSynchronize", hipDeviceSynchronize())?;
        let right = (0..COUNT as usize).all(|i| y.add(i).read() == 1.0 + 5.0 * i as f32);
        check("hipFree", hipFree(memory))?;
        println!("{}", if right { "all results right" } else { "wrong results" });
        if right { Ok(()) } else { Err("wrong results".to_owned()) }
    }
}

/// Launches the same kernel without C++.
unsafe fn launch(mut a: f32, mut x: *const f32, mut y: *mut f32) -> Result<(), String> {
    let stub = kernels::kernel::saxpy.stub().ok_or("saxpy is not registered")?;
    let mut count = COUNT;
    let mut arguments: [*mut c_void; 4] =
        [(&raw mut a).cast(), (&raw mut x).cast(), (&raw mut y).cast(), (&raw mut count).cast()];
    let grid = Dim3 { x: COUNT.div_ceil(256), y: 1, z: 1 };
    let block = Dim3 { x: 256, y: 1, z: 1 };
    // The arguments are read before this returns.
    let status = unsafe { hipLaunchKernel(stub, grid, block, arguments.as_mut_ptr(), 0, null_mut()) };
    check("hipLaunchKernel", status)
}

fn check(what: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what}: error {status}")) }
}
