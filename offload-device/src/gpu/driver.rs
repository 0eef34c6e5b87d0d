//! Functions of HIP's runtime and of CUDA's driver: the only file that calls them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

use super::{Api, Error, library};

/// Result of a function: 0, or an error code.
type Status = c_int;

/// Address in the memory of a GPU: `hipDeviceptr_t`, which is a pointer, or `CUdeviceptr`, an integer of 64 bits.
pub(super) type Address = u64;

/// A stream, module, function or context of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Handle(*mut c_void);

impl Handle {
    pub(super) const NULL: Self = Self(std::ptr::null_mut());
}

// SAFETY: a name for an object of the API, whose functions may be called on any thread.
unsafe impl Send for Handle {}
// SAFETY: as above, and at the same time.
unsafe impl Sync for Handle {}

/// Declares functions that have the same arguments in both APIs, with their names in HIP and in CUDA.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $hip:literal, $cuda:literal;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> Status,)*
        }

        impl Functions {
            fn find(api: Api, source: &Source<'_>) -> Result<Self, Error> {
                Ok(Self {
                    // SAFETY: the types are those of the vendors' headers; `tests/support/gpu_driver.c` is compiled with these.
                    $($name: unsafe { source.function(match api { Api::Hip => $hip, Api::Cuda => $cuda })? },)*
                })
            }
        }

        impl Driver {$(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the documentation of the vendors' function says.
            #[allow(clippy::too_many_arguments, reason = "those of the vendors")]
            pub(super) unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Error> {
                // SAFETY: the caller guarantees it.
                let status = unsafe { (self.functions.$name)($($argument),*) };
                self.check(match self.api { Api::Hip => $hip, Api::Cuda => $cuda }, status)
            }
        )*}
    };
}

functions! {
    /// Initializes the API, if that was not done before.
    init(flags: c_uint) = "hipInit", "cuInit";
    /// Stores the number of GPUs.
    device_count(count: *mut c_int) = "hipGetDeviceCount", "cuDeviceGetCount";
    /// Stores the device with an index.
    device(device: *mut c_int, index: c_int) = "hipDeviceGet", "cuDeviceGet";
    /// Stores the marketing name, with a NUL.
    device_name(name: *mut c_char, size: c_int, device: c_int) = "hipDeviceGetName", "cuDeviceGetName";
    /// Waits for all work of the current device or context.
    synchronize() = "hipDeviceSynchronize", "cuCtxSynchronize";
    /// Creates a stream.
    stream_create(stream: *mut Handle, flags: c_uint) = "hipStreamCreateWithFlags", "cuStreamCreate";
    /// Destroys a stream.
    stream_destroy(stream: Handle) = "hipStreamDestroy", "cuStreamDestroy_v2";
    /// Waits for all work of a stream.
    stream_synchronize(stream: Handle) = "hipStreamSynchronize", "cuStreamSynchronize";
    /// Allocates memory.
    allocate(address: *mut Address, size: usize) = "hipMalloc", "cuMemAlloc_v2";
    /// Frees memory.
    free(address: Address) = "hipFree", "cuMemFree_v2";
    /// Fills memory with a byte.
    fill(address: Address, byte: u8, size: usize, stream: Handle) = "hipMemsetD8Async", "cuMemsetD8Async";
    /// Copies bytes of the host to the GPU.
    copy_to_device(to: Address, from: *const c_void, size: usize, stream: Handle) = "hipMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2";
    /// Copies bytes of the GPU to the host.
    copy_to_host(to: *mut c_void, from: Address, size: usize, stream: Handle) = "hipMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2";
    /// Loads an image, with options of CUDA's compiler for PTX.
    module_load(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void) = "hipModuleLoadDataEx", "cuModuleLoadDataEx";
    /// Unloads a module.
    module_unload(module: Handle) = "hipModuleUnload", "cuModuleUnload";
    /// Finds a kernel.
    module_function(function: *mut Handle, module: Handle, name: *const c_char) = "hipModuleGetFunction", "cuModuleGetFunction";
    /// Launches a kernel.
    launch(
        function: Handle,
        groups_x: c_uint, groups_y: c_uint, groups_z: c_uint,
        items_x: c_uint, items_y: c_uint, items_z: c_uint,
        shared: c_uint, stream: Handle,
        parameters: *mut *mut c_void, extra: *mut *mut c_void
    ) = "hipModuleLaunchKernel", "cuLaunchKernel";
}

/// Stores address and size of a variable of a module.
type ModuleVariable =
    unsafe extern "C" fn(*mut Address, *mut usize, Handle, *const c_char) -> Status;

/// Functions that only one of the APIs has, or that differ.
enum Own {
    Hip {
        set_device: unsafe extern "C" fn(c_int) -> Status,
        properties: unsafe extern "C" fn(*mut c_void, c_int) -> Status,
        error_name: unsafe extern "C" fn(Status) -> *const c_char,
        error_text: unsafe extern "C" fn(Status) -> *const c_char,
    },
    Cuda {
        attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status,
        retain: unsafe extern "C" fn(*mut Handle, c_int) -> Status,
        release: unsafe extern "C" fn(c_int) -> Status,
        set_current: unsafe extern "C" fn(Handle) -> Status,
        set_function_attribute: unsafe extern "C" fn(Handle, c_int, c_int) -> Status,
        error_name: unsafe extern "C" fn(Status, *mut *const c_char) -> Status,
        error_text: unsafe extern "C" fn(Status, *mut *const c_char) -> Status,
    },
}

/// A loaded library, with the name by which it was found.
struct Source<'a> {
    library: &'a Library,
    name: &'a str,
}

impl Source<'_> {
    /// Finds a function.
    ///
    /// # Safety
    /// `F` is the type of the function.
    unsafe fn function<F: Copy>(&self, function: &'static str) -> Result<F, Error> {
        // SAFETY: the caller guarantees it.
        match unsafe { self.library.get::<F>(function.as_bytes()) } {
            Ok(symbol) => Ok(*symbol),
            Err(_) => Err(Error::Function {
                library: self.name.to_owned(),
                function,
            }),
        }
    }
}

/// The loaded library of an API. It stays loaded to the end of the process: drivers have threads and exit handlers.
pub(super) struct Driver {
    api: Api,
    functions: Functions,
    own: Own,
    /// Its name, and the function if the library has it: variables and launches of kernels in Rust need it, other launches do not.
    module_variable: (&'static str, Result<ModuleVariable, Error>),
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Driver({})", self.api)
    }
}

/// Libraries that have been loaded, by API. A failure is not kept: a library can be installed later.
static LOADED: Mutex<[Option<&'static Driver>; 2]> = Mutex::new([None; 2]);

impl Driver {
    /// Returns the initialized API.
    pub(super) fn get(api: Api) -> Result<&'static Self, Error> {
        let driver = {
            // Nothing panics while it is locked; a value of the array is complete.
            let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            let place = &mut loaded[api as usize];
            match place {
                Some(driver) => *driver,
                None => *place.insert(Box::leak(Box::new(Self::load(api)?))),
            }
        };
        // SAFETY: may be called at any time, and more than once.
        unsafe { driver.init(0)? };
        Ok(driver)
    }

    fn load(api: Api) -> Result<Self, Error> {
        let (library, name) = library::open(api)?;
        // Not unloaded, also if a function is missing: constructors have run.
        let library: &'static Library = Box::leak(Box::new(library));
        let source = Source {
            library,
            name: &name,
        };
        let functions = Functions::find(api, &source)?;
        // SAFETY: the types are those of the vendors' headers; `tests/support/gpu_driver.c` is compiled with these.
        let own = unsafe {
            match api {
                Api::Hip => Own::Hip {
                    set_device: source.function("hipSetDevice")?,
                    // Since ROCm 6 the plain name fills in the structure of older releases.
                    properties: source
                        .function("hipGetDevicePropertiesR0600")
                        .or_else(|_| source.function("hipGetDeviceProperties"))?,
                    error_name: source.function("hipGetErrorName")?,
                    error_text: source.function("hipGetErrorString")?,
                },
                Api::Cuda => Own::Cuda {
                    attribute: source.function("cuDeviceGetAttribute")?,
                    retain: source.function("cuDevicePrimaryCtxRetain")?,
                    release: source
                        .function("cuDevicePrimaryCtxRelease_v2")
                        .or_else(|_| source.function("cuDevicePrimaryCtxRelease"))?,
                    set_current: source.function("cuCtxSetCurrent")?,
                    set_function_attribute: source.function("cuFuncSetAttribute")?,
                    error_name: source.function("cuGetErrorName")?,
                    error_text: source.function("cuGetErrorString")?,
                },
            }
        };
        let module_variable = match api {
            Api::Hip => "hipModuleGetGlobal",
            Api::Cuda => "cuModuleGetGlobal_v2",
        };
        // SAFETY: as above.
        let found = unsafe { source.function(module_variable) };
        Ok(Self {
            api,
            functions,
            own,
            module_variable: (module_variable, found),
        })
    }

    pub(super) fn api(&self) -> Api {
        self.api
    }

    /// Returns the target of a device: `gfx90a:sramecc+:xnack-` or `sm_90`.
    pub(super) fn target(&self, device: c_int) -> Result<String, Error> {
        match &self.own {
            Own::Hip { properties, .. } => {
                // The structure differs by release (792 bytes in ROCm 5, 1472 in ROCm 6) and only grows. This is more than any.
                let mut structure = [0u64; 2048];
                // SAFETY: the structure is smaller than the memory.
                let status = unsafe { properties(structure.as_mut_ptr().cast(), device) };
                self.check("hipGetDeviceProperties", status)?;
                let bytes: Vec<u8> = structure
                    .iter()
                    .flat_map(|word| word.to_ne_bytes())
                    .collect();
                Ok(architecture_name(&bytes).unwrap_or_else(|| "unknown".to_owned()))
            }
            Own::Cuda { attribute, .. } => {
                // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
                let [mut major, mut minor] = [0; 2];
                for (value, number) in [(&mut major, 75), (&mut minor, 76)] {
                    // SAFETY: the value is an integer.
                    let status = unsafe { attribute(value, number, device) };
                    self.check("cuDeviceGetAttribute", status)?;
                }
                Ok(format!("sm_{major}{minor}"))
            }
        }
    }

    /// Retains the primary context of a device, which libraries of the vendor use too. HIP has none.
    pub(super) fn retain(&self, device: c_int) -> Result<Handle, Error> {
        let mut context = Handle::NULL;
        if let Own::Cuda { retain, .. } = &self.own {
            // SAFETY: a device of this API; `release` follows.
            let status = unsafe { retain(&mut context, device) };
            self.check("cuDevicePrimaryCtxRetain", status)?;
        }
        Ok(context)
    }

    /// Releases the primary context of a device.
    ///
    /// # Safety
    /// It was retained, and nothing that was made in it is used from now on.
    pub(super) unsafe fn release(&self, device: c_int) -> Result<(), Error> {
        match &self.own {
            Own::Hip { .. } => Ok(()),
            Own::Cuda { release, .. } => {
                // SAFETY: the caller guarantees it.
                let status = unsafe { release(device) };
                self.check("cuDevicePrimaryCtxRelease", status)
            }
        }
    }

    /// Makes a device, and its retained context, those of the calling thread.
    pub(super) fn activate(&self, device: c_int, context: Handle) -> Result<(), Error> {
        match &self.own {
            Own::Hip { set_device, .. } => {
                // SAFETY: any integer is allowed.
                let status = unsafe { set_device(device) };
                self.check("hipSetDevice", status)
            }
            Own::Cuda { set_current, .. } => {
                // SAFETY: `Context` calls this function as long as the context is retained.
                let status = unsafe { set_current(context) };
                self.check("cuCtxSetCurrent", status)
            }
        }
    }

    /// Allows a kernel this many bytes of dynamic shared memory, if the API needs to know.
    ///
    /// # Safety
    /// `function` is a function of a loaded module.
    pub(super) unsafe fn allow_shared(&self, function: Handle, size: c_int) -> Result<(), Error> {
        match &self.own {
            Own::Hip { .. } => Ok(()),
            Own::Cuda {
                set_function_attribute,
                ..
            } => {
                const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
                // SAFETY: the caller guarantees it.
                let status = unsafe {
                    set_function_attribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
                };
                self.check("cuFuncSetAttribute", status)
            }
        }
    }

    /// Finds a variable of a module: its address, and its size in bytes.
    ///
    /// # Safety
    /// The module is loaded, and the name ends with a NUL.
    pub(super) unsafe fn module_variable(
        &self,
        module: Handle,
        name: *const c_char,
    ) -> Result<(Address, usize), Error> {
        let (function, found) = &self.module_variable;
        let find = found.as_ref().map_err(Error::clone)?;
        let (mut address, mut size) = (0, 0);
        // SAFETY: the caller guarantees it.
        let status = unsafe { find(&mut address, &mut size, module, name) };
        self.check(function, status)?;
        Ok((address, size))
    }

    /// Turns the result of a function into an error with the API's own name and text.
    fn check(&self, function: &'static str, code: Status) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let (mut name, mut text) = (null(), null());
        // SAFETY: any code is allowed; the functions return static strings, or nothing for a code that they do not know.
        let (name, text) = unsafe {
            match &self.own {
                Own::Hip {
                    error_name,
                    error_text,
                    ..
                } => {
                    name = error_name(code);
                    text = error_text(code);
                }
                Own::Cuda {
                    error_name,
                    error_text,
                    ..
                } => {
                    error_name(code, &mut name);
                    error_text(code, &mut text);
                }
            }
            (string(name), string(text))
        };
        Err(Error::Call {
            function,
            code,
            name: name.unwrap_or_else(|| "unknown error".to_owned()),
            text: text.unwrap_or_default(),
            details: String::new(),
        })
    }
}

/// Returns a printable copy of a C string, or `None` for a null pointer.
///
/// # Safety
/// The pointer is null or that of a string with a NUL.
unsafe fn string(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees it.
    Some(printable(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// Returns text without control characters other than line breaks, which a terminal could obey.
pub(super) fn printable(bytes: &[u8]) -> String {
    let is_allowed = |c: char| !c.is_control() || c == '\n' || c == '\t';
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| if is_allowed(c) { c } else { '?' })
        .collect()
}

/// Finds the `gcnArchName` of a `hipDeviceProp_t`, whose place differs by release. `name`, its first 256 bytes, is free text.
fn architecture_name(structure: &[u8]) -> Option<String> {
    let after_name = structure.get(256..)?;
    let start = after_name.windows(3).position(|bytes| bytes == b"gfx")?;
    let text = &after_name[start..];
    let end = text.iter().position(|&byte| byte == 0)?;
    Some(printable(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_architecture_after_the_name() {
        let mut structure = vec![0; 1472];
        structure[..13].copy_from_slice(b"gfx something");
        assert_eq!(architecture_name(&structure), None);
        structure[396..419].copy_from_slice(b"gfx90a:sramecc+:xnack-\0");
        assert_eq!(
            architecture_name(&structure).as_deref(),
            Some("gfx90a:sramecc+:xnack-")
        );
        assert_eq!(architecture_name(&[]), None);
    }

    #[test]
    fn keeps_terminals_safe() {
        assert_eq!(
            printable(b"line\n\x1b[31mred\xff"),
            "line\n?[31mred\u{fffd}"
        );
    }
}
