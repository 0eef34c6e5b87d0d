//! Loads and launches images of HIP and CUDA on GPUs. Needs the feature `gpu`.
//!
//! ```no_run
//! use offload_device::gpu::{Buffer, Device, Error, Module, Stream};
//! use offload_device::{Global, Grid, Item, kernel};
//!
//! #[kernel]
//! pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
//!     let i = item.global_index();
//!     if i < y.len() {
//!         y.set(item, a * x[i] + y.get(item));
//!     }
//! }
//!
//! fn run(images: &[&'static [u8]]) -> Result<Vec<f32>, Error> {
//!     let stream = Stream::new(&Device::first()?)?;
//!     // SAFETY: compilers made the images of this crate.
//!     let module = unsafe { Module::load_any(&stream, images.iter().copied())? };
//!     let x = Buffer::from_slice(&stream, &[1.0; 1000])?;
//!     let mut y = Buffer::from_slice(&stream, &[2.0; 1000])?;
//!     saxpy::launch(&module, Grid::for_len(y.len(), 256), 3.0, &x, &mut y)?;
//!     y.to_vec()
//! }
//! # fn main() {}
//! ```
//!
//! The loader serves kernels of every language. A kernel in Rust has a safe function `launch` in its module, which takes
//! `&Buffer<T>` for an argument `&[T]` and `&mut Buffer<T>` for a `Global<T>`. A kernel in HIP, CUDA or another language is
//! launched by its name, and the caller guarantees that the arguments fit: [`Kernel::launch`].
//!
//! # Libraries
//! No toolkit is needed to build. The first use of an API loads the library of its driver or runtime:
//!
//! | API | library | variable with the path of another library |
//! |---|---|---|
//! | HIP | `libamdhip64.so` and `.so.7` to `.so.5`, also in `lib` of `ROCM_PATH` and of `/opt/rocm` (Windows: `amdhip64_7.dll`, `amdhip64_6.dll`, `amdhip64.dll`) | `OFFLOAD_DEVICE_HIP` |
//! | CUDA | `libcuda.so.1`, `libcuda.so`, also in `/usr/lib/wsl/lib` (Windows: `nvcuda.dll`) | `OFFLOAD_DEVICE_CUDA` |
//!
//! A missing library is an [`Error`] that names what was searched. [`Error::is_no_gpu`] tells a machine without a GPU from one
//! whose driver fails.
//!
//! # Order
//! A [`Stream`] is a queue of one GPU. Its launches and copies run one after another, in the order of the calls. Each buffer
//! belongs to a stream, and only that stream accesses it. So `launch` returns at once, and a copy to the host
//! ([`Buffer::to_vec`], [`Buffer::copy_to`]) waits for all that the stream does before. Streams run side by side.
//!
//! A later call reports an error of a running kernel, for example a panic, which is a trap. After a trap, CUDA fails
//! every further call of the process for this GPU, and HIP's runtime ends the process.
//!
//! # Limits
//! Whole buffers, one launch at a time. No events, graphs, textures, peers, or memory that host and GPU share:
//! [cudarc](https://docs.rs/cudarc) has these for CUDA, [cubecl-hip-sys](https://docs.rs/cubecl-hip-sys) has bindings of HIP.
//! [`Buffer::address`] lets libraries of vendors use a buffer.

mod arguments;
mod buffer;
mod device;
mod driver;
mod error;
mod image;
mod kernel;
mod launch;
mod library;
mod module;
mod stream;
mod variable;

pub use arguments::{Arguments, HostArgument, KernelArgument, LaunchArgument};
pub use buffer::Buffer;
pub use device::Device;
pub use error::{Api, Error};
pub use kernel::Kernel;
#[doc(hidden)]
pub use launch::launch;
pub use module::Module;
pub use stream::Stream;
pub use variable::Variable;
