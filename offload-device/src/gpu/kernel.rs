//! Kernels of loaded modules, and launches by name.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use super::arguments::Arguments;
use super::driver::Handle;
use super::{Api, Error, KernelArgument, Stream};
use crate::Grid;

/// Dynamic shared memory that a kernel may have on NVIDIA GPUs without asking, in bytes.
const SHARED_WITHOUT_ASKING: usize = 48 << 10;

/// A kernel of a loaded module.
#[derive(Clone, Debug)]
pub struct Kernel<'a> {
    /// Stream of the module, which stays borrowed and therefore loaded.
    pub(super) stream: &'a Stream,
    pub(super) name: String,
    pub(super) function: Handle,
}

impl Kernel<'_> {
    /// Launches the kernel on the module's stream, and returns before it has run.
    ///
    /// `shared` is the size of the dynamic shared memory in bytes. A grid without work-items launches nothing.
    ///
    /// # Errors
    /// [`Error::ArgumentStream`] if a buffer belongs to another stream; if the API refuses the launch. Errors of the running
    /// kernel are those of a later call, at the latest of [`Stream::synchronize`].
    ///
    /// # Safety
    /// - The arguments are those of the kernel: number, sizes and meaning.
    /// - The kernel accesses no memory but its buffers, within their bounds, and has no data race. It does not write a buffer
    ///   that another thread passes to a kernel in Rust at the same time.
    ///
    /// ```no_run
    /// # use offload_device::{Grid, gpu::*};
    /// # fn run(module: &Module, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<(), Error> {
    /// // __global__ void saxpy(float a, const float *x, float *y, unsigned count)
    /// let count = u32::try_from(y.len()).expect("the program has fewer elements");
    /// let saxpy = module.kernel("saxpy")?;
    /// // SAFETY: these are the arguments of the kernel, which accesses `count` elements.
    /// unsafe { saxpy.launch(Grid::covering(count, 256), 0, &[&2.0f32, x, y, &count])? }
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn launch(
        &self,
        grid: Grid,
        shared: usize,
        arguments: &[&dyn KernelArgument],
    ) -> Result<(), Error> {
        let mut all = Arguments::new(self.stream);
        for argument in arguments {
            argument.append(&mut all);
        }
        // SAFETY: the caller guarantees it.
        unsafe { self.launch_bytes(grid, shared, all) }
    }

    /// # Safety
    /// As for [`Kernel::launch`].
    pub(super) unsafe fn launch_bytes(
        &self,
        grid: Grid,
        shared: usize,
        arguments: Arguments<'_>,
    ) -> Result<(), Error> {
        if let Some(index) = arguments.other_stream {
            let kernel = self.name.clone();
            return Err(Error::ArgumentStream { kernel, index });
        }
        if grid.is_empty() {
            return Ok(());
        }
        let driver = self.stream.enter()?;
        let shared_size = c_int::try_from(shared).map_err(|_| Error::Launch {
            problem: format!(
                "kernel `{}`: {shared} bytes of shared memory are too many",
                self.name
            ),
        })?;
        if shared > SHARED_WITHOUT_ASKING {
            // SAFETY: the module is loaded.
            unsafe { driver.allow_shared(self.function, shared_size) }
                .map_err(|error| error.with_details(&self.describe(grid, shared)))?;
        }
        let mut bytes = arguments.bytes;
        let mut size = bytes.len();
        // HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END; CUDA's differ in the last.
        let end = match driver.api() {
            Api::Hip => 3,
            Api::Cuda => 0,
        };
        let word = |value: usize| value as *mut c_void;
        let mut extra = [
            word(1),
            bytes.as_mut_ptr().cast(),
            word(2),
            (&raw mut size).cast(),
            word(end),
        ];
        let extra = if size > 0 {
            extra.as_mut_ptr()
        } else {
            null_mut()
        };
        let ([x, y, z], [a, b, c]) = (grid.groups, grid.items);
        // SAFETY: the caller guarantees that the arguments are those of the kernel. The API copies them before it returns.
        unsafe {
            driver.launch(
                self.function,
                x,
                y,
                z,
                a,
                b,
                c,
                shared_size as c_uint,
                self.stream.handle(),
                null_mut(),
                extra,
            )
        }
        .map_err(|error| error.with_details(&self.describe(grid, shared)))
    }

    fn describe(&self, grid: Grid, shared: usize) -> String {
        let (groups, items) = (grid.groups, grid.items);
        format!(
            "kernel `{}` with {groups:?} workgroups of {items:?} work-items and {shared} bytes of shared memory",
            self.name
        )
    }
}
