//! Loaded images.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::{Handle, printable};
use super::image::ImageKind;
use super::stream::Context;
use super::{Api, Error, Kernel, Stream, Variable};
use crate::description::Description;
use crate::signature::SHARED;

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
    /// Names and signatures of kernels in Rust that the image has.
    signatures: Mutex<HashSet<(&'static str, &'static [u8])>>,
    /// HIP's runtime reads it as long as the module is loaded: freed only after the module was unloaded.
    image: ManuallyDrop<Cow<'static, [u8]>>,
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
    /// - `#[kernel]` emitted each symbol `__offload_signature$k` together with the kernel `k` of this image: a safe `launch` compares
    ///   it with the signature of its own kernel, and fails if they differ.
    pub unsafe fn load(
        stream: &Stream,
        image: impl Into<Cow<'static, [u8]>>,
    ) -> Result<Self, Error> {
        let mut image = image.into();
        let (api, kind) = (stream.device().api(), ImageKind::of(&image));
        if !kind.is_for(api) {
            let found = kind.describe().to_owned();
            return Err(Error::Image { api, found });
        }
        // The API finds the end of PTX by its NUL.
        if kind == ImageKind::Text && image.last() != Some(&0) {
            image.to_mut().push(0);
        }
        let context = stream.context().clone();
        // SAFETY: the caller guarantees it.
        let handle = unsafe { load(&context, &image)? };
        let loaded = Loaded {
            context,
            handle,
            signatures: Mutex::default(),
            image: ManuallyDrop::new(image),
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
        let mut images: Vec<_> = images
            .filter(|image| ImageKind::of(image).is_for(api))
            .collect();
        images.sort_by_key(|image| ImageKind::of(image) == ImageKind::Text);
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
        let text = symbol(name);
        // SAFETY: the module is loaded and the name ends with a NUL.
        unsafe { driver.module_function(&mut function, self.loaded.handle, text.as_ptr()) }
            .map_err(|error| error.with_details(&format!("kernel `{}`", shown(name))))?;
        Ok(Kernel {
            stream: &self.stream,
            name: name.to_owned(),
            function,
        })
    }

    /// Finds a variable in device memory by its symbol: `filter` for `__constant__ float filter[9]`, or `_ZN4blur6filterE` if the
    /// variable is in a namespace `blur`.
    ///
    /// # Errors
    /// If the image has no such variable.
    pub fn variable(&self, name: &str) -> Result<Variable<'_>, Error> {
        let driver = self.stream.enter()?;
        let text = symbol(name);
        // SAFETY: the module is loaded and the name ends with a NUL.
        let (address, size) = unsafe { driver.module_variable(self.loaded.handle, text.as_ptr()) }
            .map_err(|error| error.with_details(&format!("variable `{}`", shown(name))))?;
        Ok(Variable {
            stream: &self.stream,
            name: shown(name),
            address,
            size,
        })
    }

    /// Checks, once for each kernel, that the image's kernel has the signature of a kernel in Rust.
    pub(super) fn check_signature(&self, kernel: &Description) -> Result<(), Error> {
        let entry = (kernel.name, kernel.signature);
        // A panic leaves no set that is half changed.
        let signatures = || {
            let signatures = self.loaded.signatures.lock();
            signatures.unwrap_or_else(PoisonError::into_inner)
        };
        if signatures().contains(&entry) {
            return Ok(());
        }
        let found = self.signature(kernel.name)?;
        let fits = |found: &[u8]| accepts(kernel.signature, found);
        if !found.as_deref().is_some_and(fits) {
            let text = |bytes: &[u8]| printable(bytes);
            return Err(Error::Signature {
                kernel: kernel.name.to_owned(),
                expected: text(kernel.signature),
                found: found.as_deref().map(text),
            });
        }
        signatures().insert(entry);
        Ok(())
    }

    /// Reads the signature of the image's kernel, which kernels in Rust have.
    fn signature(&self, kernel: &str) -> Result<Option<Vec<u8>>, Error> {
        let variable = match self.variable(&format!("__offload_signature${kernel}")) {
            Ok(variable) => variable,
            Err(error) if error.is_no_variable() => return Ok(None),
            Err(error) => return Err(error),
        };
        // A constant needs no order. A stream of its own does not wait for kernels that run.
        let own = self.stream.another()?;
        let variable = Variable {
            stream: &own,
            ..variable
        };
        let mut text = vec![0u8; variable.size()];
        variable.copy_to(&mut text)?;
        Ok(Some(text))
    }
}

/// Returns true if a launch with a signature fits the image's kernel with another: both are equal, except that the kernel may need
/// less shared memory than the launch provides. Types such as `u128` have a smaller alignment on some GPUs.
fn accepts(launch: &[u8], kernel: &[u8]) -> bool {
    let parts = |text| {
        let (start, shared) = std::str::from_utf8(text).ok()?.rsplit_once(SHARED)?;
        Some((start, shared.parse::<u64>().ok()?))
    };
    let (Some((expected, provided)), Some((found, needed))) = (parts(launch), parts(kernel)) else {
        return false;
    };
    expected == found && needed <= provided
}

/// Returns a symbol with a NUL. A name with a NUL in it is that of no symbol; the part before it could be.
fn symbol(name: &str) -> CString {
    CString::new(name.replace('\0', "?")).expect("NULs were replaced")
}

/// Returns a symbol for messages.
fn shown(name: &str) -> String {
    printable(name.as_bytes())
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
        let Ok(driver) = self.context.enter() else {
            return;
        };
        // SAFETY: no launch of its kernels is left: all streams of the GPU are done.
        let unloaded = unsafe {
            let _ = driver.synchronize();
            driver.module_unload(self.handle)
        };
        if unloaded.is_ok() {
            // SAFETY: nothing uses the image after this.
            unsafe { ManuallyDrop::drop(&mut self.image) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_kernels_that_need_less_shared_memory() {
        let launch = b"ABI 1: &Item<_, 3>, f32; threads = 256; shared = 32";
        for (kernel, expected) in [
            ("ABI 1: &Item<_, 3>, f32; threads = 256; shared = 32", true),
            ("ABI 1: &Item<_, 3>, f32; threads = 256; shared = 24", true),
            ("ABI 1: &Item<_, 3>, f32; threads = 256; shared = 0", true),
            ("ABI 1: &Item<_, 3>, f32; threads = 256; shared = 33", false),
            (
                "ABI 1: &Item<_, 3>, f32; threads = 256; shared = 240",
                false,
            ),
            ("ABI 2: &Item<_, 3>, f32; threads = 256; shared = 32", false),
            ("ABI 1: &Item<_, 3>, f64; threads = 256; shared = 32", false),
            ("ABI 1: &Item<_, 3>, f32; shared = 32", false),
            ("ABI 1: &Item<_, 3>, f32; threads = 256; shared = ", false),
            ("ABI 1: &Item<_, 3>, f32; threads = 256", false),
            ("", false),
        ] {
            assert_eq!(accepts(launch, kernel.as_bytes()), expected, "{kernel}");
        }
    }
}
