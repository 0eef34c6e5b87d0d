//! Arguments that a launch on a GPU does not take.
use offload_device::gpu::{Buffer, Error, HostArgument, KernelArgument, LaunchArgument, Module};
use offload_device::{Element, Global, Grid, Item, kernel};

#[kernel]
fn saxpy(_item: &Item, _a: f32, _x: &[f32], _y: Global<f32>) {}

fn scalar(module: &Module, x: &Buffer<f32>, y: &mut Buffer<f32>) {
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, x, y);
    let _ = saxpy::launch(module, Grid::new(1, 1), 1, x, y); //~ mismatched types
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0f64, x, y); //~ mismatched types
    let _ = saxpy::launch(module, Grid::new(1, 1), x, y); //~ this function takes 5 arguments but 4 arguments were supplied
}

fn slice(module: &Module, x: &[f32], bytes: &Buffer<u8>, y: &mut Buffer<f32>) {
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, x, y); //~ mismatched types
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, bytes, y); //~ mismatched types
}

fn global(module: &Module, x: &Buffer<f32>, y: &mut Buffer<f32>, z: &mut [f32]) {
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, x, x); //~ mismatched types
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, x, Global::new(z)); //~ mismatched types
}

fn one_buffer_twice(module: &Module, y: &mut Buffer<f32>) {
    let _ = saxpy::launch(module, Grid::new(1, 1), 1.0, y, y); //~ cannot borrow `*y` as mutable because it is also borrowed as immutable
}

fn other_languages(x: &[f32]) {
    let vector = x.to_vec();
    let arguments: &[&dyn KernelArgument] = &[&1.0f32, &vector]; //~ `Vec<f32>` cannot be an argument of a kernel
}

fn without_unsafe(module: &Module) {
    let kernel = module.kernel("saxpy").unwrap();
    let _ = kernel.launch(Grid::new(1, 1), 0, &[]); //~ call to unsafe function `Kernel::<'_>::launch` is unsafe
}

fn fields(error: Error) {
    if let Error::Length { buffer, slice } = error {} //~ `..` required with variant marked as non-exhaustive
}

struct Mine;
// SAFETY: does not compile.
unsafe impl LaunchArgument for Mine { //~ `Mine` cannot be an argument of a kernel: `LaunchArgument` is sealed
    type Host = u32;
}
impl HostArgument for Mine {} //~ not all trait items implemented //~ `Mine` cannot be an argument of a kernel: `HostArgument` is sealed

#[derive(Clone, Copy)]
#[repr(C)]
struct Pair(u32, u32);
// SAFETY: two integers without padding.
unsafe impl Element for Pair {}
impl HostArgument for Pair {} //~ not all trait items implemented //~ `Pair` cannot be an argument of a kernel: `HostArgument` is sealed

fn main() {}
