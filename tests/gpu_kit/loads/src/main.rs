//! Loads a module with the driver's API, runs its kernel and compares the result with the CPU.
//!
//! `loads probe cuda` prints the first GPU's processor and name and the driver's version; `loads cuda` runs the module of
//! that name. It links no library of a vendor, so it starts on any machine.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::process::ExitCode;
use std::ptr::null_mut;

macro_rules! modules {
    ($($name:ident)*) => {
        $(mod $name { include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs")); })*

        /// The container of a module's images, and its kernel's name with the sizes of its arguments.
        fn module(name: &str) -> Result<(&'static [u8], &'static str, Vec<u32>), String> {
            match name {
                $(stringify!($name) => {
                    let image = $name::image().map_err(|error| error.to_string())?;
                    let kernel = $name::kernel::saxpy;
                    Ok((image, kernel.name, kernel.arguments.iter().map(|argument| argument.size).collect()))
                })*
                _ => Err(format!("unknown module `{name}`")),
            }
        }
    };
}
modules!(cuda ptx hip hip_zstd);

type Pointer = *mut c_void;
type Unary = unsafe extern "C" fn(*mut c_int) -> c_int;
type Copy = unsafe extern "C" fn(Pointer, Pointer, usize) -> c_int;

/// Names of the functions of one vendor. Their arguments are the same for both.
struct Names {
    library: &'static CStr,
    init: &'static CStr,
    version: &'static CStr,
    count: &'static CStr,
    device_name: &'static CStr,
    load: &'static CStr,
    function: &'static CStr,
    allocate: &'static CStr,
    to_device: &'static CStr,
    launch: &'static CStr,
    wait: &'static CStr,
    from_device: &'static CStr,
}

const CUDA: Names = Names {
    library: c"libcuda.so.1",
    init: c"cuInit",
    version: c"cuDriverGetVersion",
    count: c"cuDeviceGetCount",
    device_name: c"cuDeviceGetName",
    load: c"cuModuleLoadData",
    function: c"cuModuleGetFunction",
    allocate: c"cuMemAlloc_v2",
    to_device: c"cuMemcpyHtoD_v2",
    launch: c"cuLaunchKernel",
    wait: c"cuCtxSynchronize",
    from_device: c"cuMemcpyDtoH_v2",
};

const HIP: Names = Names {
    library: c"libamdhip64.so",
    init: c"hipInit",
    version: c"hipDriverGetVersion",
    count: c"hipGetDeviceCount",
    device_name: c"hipDeviceGetName",
    load: c"hipModuleLoadData",
    function: c"hipModuleGetFunction",
    allocate: c"hipMalloc",
    to_device: c"hipMemcpyHtoD",
    launch: c"hipModuleLaunchKernel",
    wait: c"hipDeviceSynchronize",
    from_device: c"hipMemcpyDtoH",
};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> Pointer;
    fn dlsym(library: Pointer, name: *const c_char) -> Pointer;
}

/// A vendor's loaded library.
struct Driver {
    names: &'static Names,
    library: Pointer,
}

impl Driver {
    fn open(names: &'static Names) -> Result<Self, String> {
        const RTLD_NOW: c_int = 2;
        // ROCm's runtime packages lack the plain name.
        let plain = names.library.to_str().map_err(|error| error.to_string())?;
        let paths = [
            plain.to_owned(),
            format!("{plain}.7"),
            format!("{plain}.6"),
            format!("{plain}.5"),
        ];
        for path in paths {
            let path = CString::new(path).map_err(|error| error.to_string())?;
            // SAFETY: the path ends with a NUL; the library is the vendor's.
            let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
            if !library.is_null() {
                return Ok(Self { names, library });
            }
        }
        Err(format!("{plain} is missing"))
    }

    /// # Safety
    ///
    /// `F` must be the type of the function.
    unsafe fn find<F: std::marker::Copy>(&self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<Pointer>()) };
        // SAFETY: the name ends with a NUL.
        let function = unsafe { dlsym(self.library, name.as_ptr()) };
        if function.is_null() {
            return Err(format!("the driver lacks {}", name.to_string_lossy()));
        }
        // SAFETY: a function pointer has the size of a pointer; the caller names its type.
        Ok(unsafe { std::mem::transmute_copy(&function) })
    }

    /// The error of a call, by its name in the vendor's header.
    fn check(&self, name: &CStr, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the types are those of the vendors' headers; both return constants that end with a NUL.
        let text = unsafe {
            if self.names.library == CUDA.library {
                let of: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int =
                    self.find(c"cuGetErrorName")?;
                of(status, &mut text);
            } else {
                let of: unsafe extern "C" fn(c_int) -> *const c_char =
                    self.find(c"hipGetErrorName")?;
                text = of(status);
            }
            if text.is_null() {
                c"unknown"
            } else {
                CStr::from_ptr(text)
            }
        };
        Err(format!(
            "{}: {} ({status})",
            name.to_string_lossy(),
            text.to_string_lossy()
        ))
    }

    /// Initializes the driver and its first GPU, and describes both: `sm_90 NVIDIA H100, driver 12040`.
    fn start(&self) -> Result<String, String> {
        let names = self.names;
        let (mut version, mut count, mut text) = (0, 0, [0 as c_char; 256]);
        // SAFETY: the types are those of the vendors' headers, and the buffer has the size that is passed.
        unsafe {
            let init: unsafe extern "C" fn(c_uint) -> c_int = self.find(names.init)?;
            self.check(names.init, init(0))?;
            self.check(
                names.version,
                self.find::<Unary>(names.version)?(&mut version),
            )?;
            self.check(names.count, self.find::<Unary>(names.count)?(&mut count))?;
            if count == 0 {
                return Err(format!("{}: 0 GPUs", names.count.to_string_lossy()));
            }
            let name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int =
                self.find(names.device_name)?;
            self.check(names.device_name, name(text.as_mut_ptr(), 255, 0))?;
            let processor = if names.library == CUDA.library {
                let retain: unsafe extern "C" fn(*mut Pointer, c_int) -> c_int =
                    self.find(c"cuDevicePrimaryCtxRetain")?;
                let mut context = null_mut();
                self.check(c"cuDevicePrimaryCtxRetain", retain(&mut context, 0))?;
                let set: unsafe extern "C" fn(Pointer) -> c_int = self.find(c"cuCtxSetCurrent")?;
                self.check(c"cuCtxSetCurrent", set(context))?;
                // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
                let attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int =
                    self.find(c"cuDeviceGetAttribute")?;
                let (mut major, mut minor) = (0, 0);
                self.check(c"cuDeviceGetAttribute", attribute(&mut major, 75, 0))?;
                self.check(c"cuDeviceGetAttribute", attribute(&mut minor, 76, 0))?;
                format!("sm_{major}{minor}")
            } else {
                amd_processor().unwrap_or_else(|| "unknown".to_owned())
            };
            let name = CStr::from_ptr(text.as_ptr()).to_string_lossy();
            Ok(format!("{processor} {name}, driver {version}"))
        }
    }

    /// Runs the kernel of a module. Returns false if a result differs from the CPU's.
    fn run(&self, image: &[u8], kernel: &str, sizes: &[u32]) -> Result<bool, String> {
        const COUNT: c_uint = 100_000;
        const BYTES: usize = COUNT as usize * size_of::<f32>();
        let names = self.names;
        let mut x: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
        let mut y = vec![1.0f32; COUNT as usize];
        let kernel = CString::new(kernel).map_err(|error| error.to_string())?;
        // SAFETY: the types are those of the vendors' headers. Both buffers have `BYTES` bytes on each side; the kernel
        // gets the arguments that it declares, and is done before its results are read.
        unsafe {
            let load: unsafe extern "C" fn(*mut Pointer, *const u8) -> c_int =
                self.find(names.load)?;
            let function: unsafe extern "C" fn(*mut Pointer, Pointer, *const c_char) -> c_int =
                self.find(names.function)?;
            let allocate: unsafe extern "C" fn(*mut Pointer, usize) -> c_int =
                self.find(names.allocate)?;
            let to_device: Copy = self.find(names.to_device)?;
            let from_device: Copy = self.find(names.from_device)?;
            type Size = c_uint;
            let launch: unsafe extern "C" fn(
                Pointer,
                Size,
                Size,
                Size,
                Size,
                Size,
                Size,
                Size,
                Pointer,
                *mut Pointer,
                *mut Pointer,
            ) -> c_int = self.find(names.launch)?;
            let wait: unsafe extern "C" fn() -> c_int = self.find(names.wait)?;

            let (mut module, mut saxpy) = (null_mut(), null_mut());
            self.check(names.load, load(&mut module, image.as_ptr()))?;
            self.check(
                names.function,
                function(&mut saxpy, module, kernel.as_ptr()),
            )?;
            let (mut device_x, mut device_y) = (null_mut(), null_mut());
            self.check(names.allocate, allocate(&mut device_x, BYTES))?;
            self.check(names.allocate, allocate(&mut device_y, BYTES))?;
            self.check(
                names.to_device,
                to_device(device_x, x.as_mut_ptr().cast(), BYTES),
            )?;
            self.check(
                names.to_device,
                to_device(device_y, y.as_mut_ptr().cast(), BYTES),
            )?;

            let (mut a, mut count) = (2.0f32, COUNT);
            let mut arguments: [Pointer; 4] = [
                (&raw mut a).cast(),
                (&raw mut device_x).cast(),
                (&raw mut device_y).cast(),
                (&raw mut count).cast(),
            ];
            // What the build script read from the images must be what this passes.
            if sizes != [4, 8, 8, 4] {
                return Err(format!(
                    "the generated file lists arguments of {sizes:?} bytes"
                ));
            }
            let blocks = COUNT.div_ceil(256);
            let status = launch(
                saxpy,
                blocks,
                1,
                1,
                256,
                1,
                1,
                0,
                null_mut(),
                arguments.as_mut_ptr(),
                null_mut(),
            );
            self.check(names.launch, status)?;
            self.check(names.wait, wait())?;
            self.check(
                names.from_device,
                from_device(y.as_mut_ptr().cast(), device_y, BYTES),
            )?;
        }
        Ok(x.iter().zip(&y).all(|(x, y)| *y == 1.0 + 2.0 * x))
    }
}

/// The processor of the first AMD GPU, from the kernel's list: HIP has it only in a structure that differs by release.
fn amd_processor() -> Option<String> {
    (0..64).find_map(|node| {
        let path = format!("/sys/class/kfd/kfd/topology/nodes/{node}/properties");
        let text = std::fs::read_to_string(path).ok()?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("gfx_target_version "))?;
        // 90010 is gfx90a; a CPU has 0.
        let version: u32 = version.trim().parse().ok().filter(|version| *version > 0)?;
        Some(format!(
            "gfx{}{:x}{:x}",
            version / 10000,
            version / 100 % 100,
            version % 100
        ))
    })
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match *words {
        ["probe", api] => driver(api)
            .and_then(|driver| driver.start())
            .map(|text| (true, text)),
        [name] => module(name).and_then(|(image, kernel, sizes)| {
            let driver = driver(name)?;
            let gpu = driver.start()?;
            Ok((driver.run(image, kernel, &sizes)?, gpu))
        }),
        _ => Err("usage: loads [probe] MODULE".to_owned()),
    };
    let (text, status) = match result {
        Ok((true, gpu)) => (gpu, 0),
        Ok((false, _)) => ("wrong result".to_owned(), 1),
        Err(error) => (error, 1),
    };
    println!("{text}");
    ExitCode::from(status)
}

fn driver(module: &str) -> Result<Driver, String> {
    Driver::open(if module.starts_with("hip") {
        &HIP
    } else {
        &CUDA
    })
}
