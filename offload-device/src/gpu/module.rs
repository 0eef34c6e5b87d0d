//! Loaded images and launches of their kernels.

use std::borrow::Cow;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use super::arguments::Arguments;
use super::driver::{Handle, printable};
use super::stream::Context;
use super::{Api, Error, KernelArgument, Stream};
use crate::expansion::Description;
use crate::{Grid, Layout};

/// Dynamic shared memory that a kernel may have on NVIDIA GPUs without asking, in bytes.
const SHARED_WITHOUT_ASKING: usize = 48 << 10;

/// A loaded image, and the stream that its kernels run on.
#[derive(Clone, Debug)]
pub struct Module {
    loaded: Arc<Loaded>,
    stream: Stream,
}

#[derive(Debug)]
struct Loaded {
    context: Arc<Context>,
    handle: Handle,
    /// HIP's runtime reads it as long as the module is loaded.
    _image: Cow<'static, [u8]>,
}

impl Module {
    /// Loads an image for the GPU of a stream, on which its kernels run.
    ///
    /// HIP takes a bundle, compressed or not, or a code object; CUDA takes a fat binary, a cubin or PTX. The generated file's
    /// `image()` is of this kind. The API chooses the image for its GPU from a bundle or a fat binary.
    ///
    /// # Errors
    /// [`Error::Image`] if the bytes are of another kind; if the API cannot load the image, for example because it has none for
    /// this GPU.
    ///
    /// # Safety
    /// - The image is complete and was made by a compiler: the API does not check it.
    /// - A kernel in it that has the name of a kernel in Rust, of which the program calls the safe `launch`, was built from the
    ///   source of that kernel. This is so if `offload-build` built the image from the crate of the kernel.
    pub unsafe fn load(
        stream: &Stream,
        image: impl Into<Cow<'static, [u8]>>,
    ) -> Result<Self, Error> {
        let mut image = image.into();
        let (api, kind) = (stream.device().api(), Kind::of(&image));
        if !kind.is_for(api) {
            let found = kind.describe().to_owned();
            return Err(Error::Image { api, found });
        }
        // The API finds the end of PTX by its NUL.
        if kind == Kind::Text && image.last() != Some(&0) {
            image.to_mut().push(0);
        }
        let context = stream.context().clone();
        // SAFETY: the caller guarantees it.
        let handle = unsafe { load(&context, &image)? };
        let loaded = Loaded {
            context,
            handle,
            _image: image,
        };
        Ok(Self {
            loaded: Arc::new(loaded),
            stream: stream.clone(),
        })
    }

    /// Loads the first of several images that the API accepts for the GPU of a stream; PTX only if no other is accepted.
    ///
    /// The images can be of both vendors. They are those of a generated file's `images()`, for modules whose targets are of
    /// both vendors: no API reads a container of these.
    ///
    /// # Errors
    /// [`Error::NoImage`] if the API accepts none, with its error for each image.
    ///
    /// # Safety
    /// As for [`Module::load`], for each image.
    pub unsafe fn load_any<I: Into<Cow<'static, [u8]>>>(
        stream: &Stream,
        images: impl IntoIterator<Item = I>,
    ) -> Result<Self, Error> {
        let api = stream.device().api();
        let images = images.into_iter().map(Into::<Cow<'static, [u8]>>::into);
        let mut images: Vec<_> = images.filter(|image| Kind::of(image).is_for(api)).collect();
        images.sort_by_key(|image| Kind::of(image) == Kind::Text);
        let mut failures = Vec::new();
        for image in images {
            // SAFETY: the caller guarantees it.
            match unsafe { Self::load(stream, image) } {
                Ok(module) => return Ok(module),
                Err(error) => failures.push(error),
            }
        }
        let target = stream.device().target().to_owned();
        Err(Error::NoImage { target, failures })
    }

    /// Returns the same module with another stream of its GPU, on which the result's kernels run.
    ///
    /// # Errors
    /// [`Error::OtherGpu`] if the stream is of another GPU.
    pub fn on(&self, stream: &Stream) -> Result<Self, Error> {
        if !self.stream.context().is_same_gpu(stream.context()) {
            return Err(Error::OtherGpu);
        }
        Ok(Self {
            loaded: self.loaded.clone(),
            stream: stream.clone(),
        })
    }

    /// Returns the stream that kernels run on.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Finds a kernel by its symbol, such as `saxpy` or `_Z5scalePff`.
    ///
    /// # Errors
    /// If the image has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, Error> {
        let driver = self.stream.enter()?;
        let mut function = Handle::NULL;
        // A name with a NUL is that of no kernel; the part before it could be.
        let text = CString::new(name.replace('\0', "?")).expect("NULs were replaced");
        // SAFETY: the module is loaded and the name ends with a NUL.
        unsafe { driver.module_function(&mut function, self.loaded.handle, text.as_ptr()) }
            .map_err(|error| {
                error.with_details(&format!("kernel `{}`", printable(name.as_bytes())))
            })?;
        Ok(Kernel {
            module: self,
            name: name.to_owned(),
            function,
        })
    }
}

/// Loads an image.
///
/// # Safety
/// As for [`Module::load`].
unsafe fn load(context: &Context, image: &[u8]) -> Result<Handle, Error> {
    let driver = context.enter()?;
    let mut handle = Handle::NULL;
    let image = image.as_ptr().cast();
    if driver.api() != Api::Cuda {
        // SAFETY: the caller guarantees it; without options there are no values.
        unsafe { driver.module_load(&mut handle, image, 0, null_mut(), null_mut())? };
        return Ok(handle);
    }
    // CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES.
    let mut options: [c_int; 2] = [5, 6];
    let mut log = vec![0u8; 8192];
    // The second value is the size itself.
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
    let (count, names) = (options.len() as c_uint, options.as_mut_ptr());
    // SAFETY: the caller guarantees it of the image; the log has the size that is passed.
    let loaded =
        unsafe { driver.module_load(&mut handle, image, count, names, values.as_mut_ptr()) };
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    loaded.map_err(|error| error.with_details(printable(&log[..end]).trim_end()))?;
    Ok(handle)
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Errors cannot be returned here; `synchronize` and copies return those of kernels.
        if let Ok(driver) = self.context.enter() {
            // SAFETY: no launch of its kernels is left: all streams of the GPU are done.
            unsafe {
                let _ = driver.synchronize();
                let _ = driver.module_unload(self.handle);
            }
        }
    }
}

/// Kinds of images by their first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// ELF for AMD GPUs.
    CodeObject,
    /// ELF for NVIDIA GPUs.
    Cubin,
    Bundle,
    Fatbin,
    /// PTX.
    Text,
    OffloadBinary,
    Empty,
    Unknown,
}

impl Kind {
    fn of(image: &[u8]) -> Self {
        // `e_machine` of an ELF file, little-endian.
        let machine = image
            .get(18..20)
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        match (image, machine) {
            ([], _) => Self::Empty,
            ([0x7f, b'E', b'L', b'F', ..], Some(224)) => Self::CodeObject,
            ([0x7f, b'E', b'L', b'F', ..], Some(190)) => Self::Cubin,
            ([0x50, 0xed, 0x55, 0xba, ..], _) => Self::Fatbin,
            ([0x10, 0xff, 0x10, 0xad, ..], _) => Self::OffloadBinary,
            ([b'C', b'C', b'O', b'B', ..], _) => Self::Bundle,
            _ if image.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") => Self::Bundle,
            _ if is_text(image) => Self::Text,
            _ => Self::Unknown,
        }
    }

    fn is_for(self, api: Api) -> bool {
        match api {
            Api::Hip => matches!(self, Self::CodeObject | Self::Bundle),
            Api::Cuda => matches!(self, Self::Cubin | Self::Fatbin | Self::Text),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::CodeObject => "a code object for AMD GPUs",
            Self::Cubin => "a cubin for NVIDIA GPUs",
            Self::Bundle => "a bundle",
            Self::Fatbin => "a fat binary of CUDA",
            Self::Text => "text",
            Self::OffloadBinary => {
                "an offload binary, which no API reads\nhint: pass the images themselves to `Module::load_any`"
            }
            Self::Empty => "no bytes",
            Self::Unknown => "bytes of another format",
        }
    }
}

/// Returns true if the first line is text, as PTX begins with comments or `.version`.
fn is_text(image: &[u8]) -> bool {
    let start = &image[..image.len().min(64)];
    let text = start.strip_suffix(&[0]).unwrap_or(start);
    !text.is_empty()
        && text
            .iter()
            .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// A kernel of a loaded module.
#[derive(Clone, Debug)]
pub struct Kernel<'a> {
    module: &'a Module,
    name: String,
    function: Handle,
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
    /// let count = y.len() as u32;
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
        let mut all = Arguments::new(&self.module.stream);
        for argument in arguments {
            argument.append(&mut all);
        }
        // SAFETY: the caller guarantees it.
        unsafe { self.launch_bytes(grid, shared, all) }
    }

    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn launch_bytes(
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
        let stream = &self.module.stream;
        let driver = stream.enter()?;
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
                stream.handle(),
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

/// Launches a kernel in Rust. The module of the kernel calls this function.
///
/// # Safety
/// `description` is that of the kernel, and `append` appends each of its arguments, in order.
#[doc(hidden)]
pub unsafe fn launch(
    description: &Description,
    module: &Module,
    grid: Grid,
    append: impl FnOnce(&mut Arguments<'_>),
) -> Result<(), Error> {
    let mut arguments = Arguments::new(&module.stream);
    append(&mut arguments);
    debug_assert_eq!(
        arguments.bytes.len(),
        Layout::buffer_size(description.arguments),
        "the arguments of a launch are those of the description"
    );
    if !grid.is_empty() {
        grid.check(description)
            .map_err(|problem| Error::Launch { problem })?;
        check_for_hip(description.name, module, grid)?;
    }
    let kernel = module.kernel(description.name)?;
    // SAFETY: the types of the arguments are those of the kernel, which `Module::load` promised to be the one of the
    // description. Its accesses are checked (see the documentation of `Global`).
    unsafe { kernel.launch_bytes(grid, description.shared, arguments) }
}

/// Refuses a grid of more than 2³² − 1 work-items in a dimension, which HIP counts in 32 bits.
fn check_for_hip(name: &str, module: &Module, grid: Grid) -> Result<(), Error> {
    let is_too_large = |(groups, items): (u32, u32)| groups.checked_mul(items).is_none();
    let is_hip = module.stream.device().api() == Api::Hip;
    if is_hip && grid.groups.into_iter().zip(grid.items).any(is_too_large) {
        return Err(Error::Launch {
            problem: format!(
                "kernel `{name}`: expected less than 2^32 work-items in each dimension, found {:?} workgroups of {:?}",
                grid.groups, grid.items
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_images_by_their_first_bytes() {
        let elf = |machine: u16| {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(b"\x7fELF");
            header[18..20].copy_from_slice(&machine.to_le_bytes());
            header
        };
        let cases: [(&[u8], bool, bool); 10] = [
            (&elf(224), true, false),
            (&elf(190), false, true),
            (&elf(62), false, false),
            (b"\x50\xed\x55\xba\x01\x00\x10\x00", false, true),
            (b"CCOB\x02\x00\x02\x00", true, false),
            (b"__CLANG_OFFLOAD_BUNDLE__\x01", true, false),
            (b"//\n// Generated by LLVM\n.version 7.8\n\0", false, true),
            (b".version 8.0", false, true),
            (b"\x10\xff\x10\xad", false, false),
            (b"", false, false),
        ];
        for (image, hip, cuda) in cases {
            let kind = Kind::of(image);
            assert_eq!(
                (kind.is_for(Api::Hip), kind.is_for(Api::Cuda)),
                (hip, cuda),
                "{image:?}"
            );
        }
    }
}
