//! Errors of the loader.

use std::io::Write;

use offload_device::Grid;
use offload_device::gpu::{Api, Buffer, Device, Error, Module, Stream};

use crate::stand_in::{CUDA_IMAGE, HIP_IMAGE, StandIn, cuda_without, with_library, with_stand_ins};
use crate::{large, line, missing, others, saxpy};

/// Does everything that a program can do, up to the first error.
fn run(stand_in: &StandIn) -> Result<(), Error> {
    let stream = Stream::new(&Device::first()?)?;
    // SAFETY: the stand-in does not read the image.
    let module = unsafe { Module::load(&stream, stand_in.image()) }?;
    let x = Buffer::from_slice(&stream, &[1.0; 10])?;
    let mut y = Buffer::zeroed(&stream, 10)?;
    module.variable("filter")?;
    large::launch(&module, Grid::new(1, 1))?;
    saxpy::launch(&module, Grid::new(1, 10), 1.0, &x, &mut y)?;
    let _ = y.to_vec()?;
    stream.synchronize()
}

#[test]
fn reports_each_function_that_fails() {
    with_stand_ins("errors::reports_each_function_that_fails", |stand_in| {
        run(stand_in).unwrap();
        let functions: &[&str] = match stand_in.name("hip", "cuda") {
            "hip" => &[
                "hipInit",
                "hipGetDeviceCount",
                "hipDeviceGet",
                "hipDeviceGetName",
                "hipGetDeviceProperties",
                "hipSetDevice",
                "hipStreamCreateWithFlags",
                "hipStreamSynchronize",
                "hipMalloc",
                "hipMemsetD8Async",
                "hipMemcpyHtoDAsync",
                "hipMemcpyDtoHAsync",
                "hipModuleLoadDataEx",
                "hipModuleGetFunction",
                "hipModuleGetGlobal",
                "hipModuleLaunchKernel",
            ],
            _ => &[
                "cuInit",
                "cuDeviceGetCount",
                "cuDeviceGet",
                "cuDeviceGetName",
                "cuDeviceGetAttribute",
                "cuDevicePrimaryCtxRetain",
                "cuCtxSetCurrent",
                "cuStreamCreate",
                "cuStreamSynchronize",
                "cuMemAlloc_v2",
                "cuMemsetD8Async",
                "cuMemcpyHtoDAsync_v2",
                "cuMemcpyDtoHAsync_v2",
                "cuModuleLoadDataEx",
                "cuModuleGetFunction",
                "cuModuleGetGlobal_v2",
                "cuFuncSetAttribute",
                "cuLaunchKernel",
            ],
        };
        for function in functions {
            stand_in.fail(function, 2);
            let error = run(stand_in).unwrap_err();
            assert_eq!(format!("{error:?}"), error.to_string());
            let name = stand_in.name("hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY");
            let expected = format!("`{function}` failed: {name} (2): out of memory");
            let text = error.to_string();
            // `Device::first` searches all APIs, and the other one may be missing.
            assert!(text.contains(&expected), "{function}: {text}");
            assert!(!error.is_no_gpu(), "{function}: {error}");
        }
        stand_in.fail_nothing();
        run(stand_in).unwrap();
    });
}

#[test]
fn describes_what_failed() {
    with_stand_ins("errors::describes_what_failed", |stand_in| {
        let (stream, module) = stand_in.module();
        let error = missing::launch(&module, Grid::new(1, 1)).unwrap_err();
        let expected = stand_in.name(
            "`hipModuleGetFunction` failed: hipErrorNotFound (500): named symbol not found: kernel `missing`",
            "`cuModuleGetFunction` failed: CUDA_ERROR_NOT_FOUND (500): named symbol not found: kernel `missing`",
        );
        assert_eq!(error.to_string(), expected);
        let error = module.kernel("missing\u{1b}[31m\0").unwrap_err();
        assert!(
            error.to_string().ends_with("kernel `missing?[31m?`"),
            "{error}"
        );

        let error = module.variable("missing\u{1b}[31m\0").unwrap_err();
        let expected = stand_in.name(
            "`hipModuleGetGlobal` failed: hipErrorNotFound (500): named symbol not found: variable `missing?[31m?`",
            "`cuModuleGetGlobal_v2` failed: CUDA_ERROR_NOT_FOUND (500): named symbol not found: variable `missing?[31m?`",
        );
        assert_eq!(error.to_string(), expected);

        let launch = stand_in.name("hipModuleLaunchKernel", "cuLaunchKernel");
        // A code that the API does not know.
        stand_in.fail(launch, 12345);
        let error = large::launch(&module, Grid::new(2, 3)).unwrap_err();
        let unknown = stand_in.name("hipErrorUnknown (12345): unknown", "unknown error (12345)");
        assert_eq!(
            error.to_string(),
            format!(
                "`{launch}` failed: {unknown}: kernel `large` with [2, 1, 1] workgroups of [3, 1, 1] work-items and 65536 bytes of shared memory"
            )
        );

        if stand_in.api == Api::Cuda {
            stand_in.fail("cuModuleLoadDataEx", 218);
            // SAFETY: the stand-in reads no image.
            let error = unsafe { Module::load(&stream, &b".version 1.0\nwrong"[..]) }.unwrap_err();
            assert_eq!(
                error.to_string(),
                "`cuModuleLoadDataEx` failed: unknown error (218): ptxas : line 3; error : Parsing error"
            );
        }
        stand_in.fail_nothing();
        let other = stand_in.name("cuda", "hip");
        let image = if other == "hip" {
            HIP_IMAGE
        } else {
            CUDA_IMAGE
        };
        // SAFETY: refused before the API reads it.
        let error = unsafe { Module::load(&stream, image) }.unwrap_err();
        assert_eq!(
            error.to_string(),
            stand_in.name(
                "HIP cannot load this image: expected a bundle or a code object, found a fat binary of CUDA",
                "CUDA cannot load this image: expected a fat binary, a cubin or PTX, found a bundle",
            )
        );
        let error = Buffer::<u64>::zeroed(&stream, usize::MAX / 8).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "a buffer of {} elements of 8 bytes does not fit in memory",
                usize::MAX / 8
            )
        );
    });
}

#[test]
fn checks_the_grid_of_kernels_in_rust() {
    with_stand_ins("errors::checks_the_grid_of_kernels_in_rust", |stand_in| {
        let (stream, module) = stand_in.module();
        let x = Buffer::<f32>::zeroed(&stream, 1).unwrap();
        let mut y = Buffer::<f32>::zeroed(&stream, 1).unwrap();
        let mut launch = |grid| {
            saxpy::launch(&module, grid, 1.0, &x, &mut y)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            launch(Grid::new(1, [16, 17])),
            "kernel `saxpy` has `threads = 256`: expected at most 256 work-items in a workgroup, found [16, 17, 1]"
        );
        assert_eq!(
            launch(Grid::new([u32::MAX; 3], 1)),
            format!(
                "kernel `saxpy`: expected less than 2^64 work-items, found {:?} workgroups",
                [u32::MAX; 3]
            )
        );
        if stand_in.api == Api::Hip {
            assert_eq!(
                launch(Grid::new([1 << 24, 1], [256, 1])),
                "kernel `saxpy`: expected less than 2^32 work-items in each dimension, found [16777216, 1, 1] workgroups of [256, 1, 1]"
            );
        }
        assert_eq!(
            large::launch(&module, Grid::new(1, 1025))
                .unwrap_err()
                .to_string(),
            "kernel `large`: expected at most 1024 work-items in a workgroup, found [1025, 1, 1]"
        );
        assert_eq!(
            line::launch(&module, Grid::new([2, 3], 1))
                .unwrap_err()
                .to_string(),
            "kernel `line` has an `Item<_, 1>`: expected one work-item in the other dimensions, found [2, 3, 1] workgroups of [1, 1, 1]"
        );
        let launches = stand_in.name("hipModuleLaunchKernel", "cuLaunchKernel");
        assert!(
            !stand_in
                .calls()
                .iter()
                .any(|call| call.starts_with(launches))
        );
    });
}

#[test]
fn compares_the_signatures_of_kernels_in_rust() {
    let name = "errors::compares_the_signatures_of_kernels_in_rust";
    with_stand_ins(name, |stand_in| {
        let (stream, module) = stand_in.module();
        let x = Buffer::<f32>::zeroed(&stream, 1).unwrap();
        let mut y = Buffer::<f32>::zeroed(&stream, 1).unwrap();
        let mut words = Buffer::<u32>::zeroed(&stream, 1).unwrap();
        let grid = Grid::new(1, 1);
        stand_in.calls();
        let error = others::saxpy::launch(&module, grid, 1.0, 0, 0, &mut words).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `saxpy`: expected the signature `ABI 1: &Item<_, 3>, f32, u64, u64, Global<u32>; threads = 256; shared = 0` in the image, \
             found `ABI 1: &Item<_, 3>, f32, &[f32], Global<f32>; threads = 256; shared = 0`\n\
             hint: build the image from the crate of this kernel, with the same features, or give the kernel another name"
        );
        let error = others::nothing::launch(&module, grid).unwrap_err();
        assert!(
            matches!(&error, Error::Signature { kernel, found: Some(found), .. }
                if kernel == "nothing" && found == "ABI 1: &Item<_, 3>; shared = 2048"),
            "{error}"
        );
        let error = others::line::launch(&module, grid).unwrap_err();
        assert!(matches!(error, Error::Signature { .. }), "{error}");
        let error = others::unsigned::launch(&module, grid).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `unsigned`: expected the signature `ABI 1: &Item<_, 3>; shared = 0` in the image, found none\n\
             hint: the image's kernel is not a kernel in Rust, or an older offload-device built it: build the image again"
        );
        let launches = stand_in.name("hipModuleLaunchKernel", "cuLaunchKernel");
        let count = |start: &str| {
            let calls = stand_in.calls();
            calls.iter().filter(|call| call.starts_with(start)).count()
        };
        assert_eq!(count(launches), 0);
        // Once for each kernel of a module, with a clone of it on any stream.
        let reads = stand_in.name("hipModuleGetGlobal", "cuModuleGetGlobal");
        saxpy::launch(&module, grid, 1.0, &x, &mut y).unwrap();
        assert_eq!(count(reads), 1);
        let other = stream.another().unwrap();
        let module_on_other = module.on(&other).unwrap();
        let x = Buffer::zeroed(&other, 1).unwrap();
        let mut y = Buffer::zeroed(&other, 1).unwrap();
        saxpy::launch(&module_on_other, grid, 1.0, &x, &mut y).unwrap();
        assert_eq!(count(reads), 0);
        assert!(others::saxpy::launch(&module, grid, 1.0, 0, 0, &mut words).is_err());
    });
}

#[test]
fn reads_signatures_without_waiting_for_kernels() {
    let name = "errors::reads_signatures_without_waiting_for_kernels";
    with_stand_ins(name, |stand_in| {
        let (_stream, module) = stand_in.module();
        line::launch(&module, Grid::new(1, 1)).unwrap();
        let calls = stand_in.calls();
        let has = |call: &str| calls.iter().any(|one| one == call);
        // The module has stream 1, the signature is read on stream 4.
        let launch = stand_in.name("hipModuleLaunchKernel", "cuLaunchKernel");
        assert!(
            has(&format!("{launch} line [1,1,1] [1,1,1] 0 1")),
            "{calls:?}"
        );
        let wait = stand_in.name("hipStreamSynchronize", "cuStreamSynchronize");
        assert!(has(&format!("{wait} 4")), "{calls:?}");
        assert!(!has(&format!("{wait} 1")), "{calls:?}");
        let destroy = stand_in.name("hipStreamDestroy 4", "cuStreamDestroy_v2 4");
        assert!(has(destroy), "{calls:?}");
    });
}

/// A program must not run a kernel whose signature it could not read, and not take each failure for a missing signature.
#[test]
fn tells_missing_signatures_from_failures() {
    let name = "errors::tells_missing_signatures_from_failures";
    with_stand_ins(name, |stand_in| {
        let (_stream, module) = stand_in.module();
        let find = stand_in.name("hipModuleGetGlobal", "cuModuleGetGlobal_v2");
        for (code, is_missing) in [(500, true), (13, stand_in.api == Api::Hip), (2, false)] {
            stand_in.fail(find, code);
            let error = line::launch(&module, Grid::new(1, 1)).unwrap_err();
            let is_expected = match &error {
                Error::Signature { found: None, .. } => is_missing,
                Error::Call {
                    function, code: of, ..
                } => !is_missing && (*function, *of) == (find, code),
                _ => false,
            };
            assert!(is_expected, "{code}: {error}");
        }
        stand_in.fail_nothing();
        line::launch(&module, Grid::new(1, 1)).unwrap();
    });
}

#[test]
fn tells_a_machine_without_a_gpu() {
    with_stand_ins("errors::tells_a_machine_without_a_gpu", |stand_in| {
        let init = stand_in.name("hipInit", "cuInit");
        stand_in.fail(init, 100);
        let error = Device::of(stand_in.api).unwrap_err();
        assert!(error.is_no_gpu());
        let name = stand_in.name("hipErrorNoDevice", "CUDA_ERROR_NO_DEVICE");
        let expected = format!("`{init}` failed: {name} (100): no device");
        assert!(error.to_string().starts_with(&expected), "{error}");
        let error = Device::first().unwrap_err();
        assert!(error.to_string().starts_with("no GPU found\n"), "{error}");
        stand_in.fail_nothing();
        assert!(Device::first().is_ok());
        // SAFETY: this process has one thread that reads variables.
        unsafe { std::env::set_var("GPU_COUNT", "0") };
        let error = Device::of(stand_in.api).unwrap_err();
        assert!(error.is_no_gpu(), "{error}");
    });
}

#[test]
fn names_what_was_searched() {
    let path = "/nonexistent/libamdhip64.so.6";
    with_library("errors::names_what_was_searched", Api::Hip, path, || {
        let error = Device::of(Api::Hip).unwrap_err();
        assert_eq!(
            error.to_string(),
            "HIP's runtime is not installed: searched `/nonexistent/libamdhip64.so.6`\n\
             hint: install AMD's driver and ROCm's runtime (Debian: `apt install libamdhip64-5`), or set OFFLOAD_DEVICE_HIP to the library's path"
        );
        assert!(error.is_no_gpu());
    });
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    with_library("errors::names_what_was_searched", Api::Cuda, text, || {
        let error = Device::of(Api::Cuda).unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.starts_with("NVIDIA's driver cannot be loaded: "),
            "{shown}"
        );
        assert!(shown.contains("Cargo.toml: "), "{shown}");
        assert!(!error.is_no_gpu());
    });
    with_library(
        "errors::names_what_was_searched",
        Api::Cuda,
        "libc.so.6",
        || {
            let error = Device::of(Api::Cuda).unwrap_err();
            assert_eq!(
                error.to_string(),
                "`libc.so.6` has no function `cuInit`\nhint: install a newer driver"
            );
        },
    );
}

/// Debian's runtime, which has every function that the loader needs.
#[test]
fn reports_that_hip_finds_no_gpu() {
    let path = "/usr/lib/x86_64-linux-gnu/libamdhip64.so";
    if !std::path::Path::new(path).exists() || std::path::Path::new("/dev/kfd").exists() {
        let required = std::env::var("OFFLOAD_REQUIRE").unwrap_or_default();
        let is_there = std::path::Path::new(path).exists();
        assert!(
            is_there || !required.split(',').any(|word| word == "amdhip"),
            "missing: {path}"
        );
        // Past the capture of the test harness, so that it is seen.
        let why = if is_there { "a GPU is here" } else { path };
        let _ = writeln!(
            std::io::stderr(),
            "skipped: reports_that_hip_finds_no_gpu: {why}"
        );
        return;
    }
    with_library(
        "errors::reports_that_hip_finds_no_gpu",
        Api::Hip,
        path,
        || {
            let error = Device::of(Api::Hip).unwrap_err();
            assert!(error.is_no_gpu(), "{error}");
            // Of ROCm 5, and of ROCm 7.
            let said = [
                "hipErrorInvalidDevice (101)",
                "hipErrorNoDevice (100): no ROCm-capable device is detected",
            ];
            let text = error.to_string();
            let texts = said.map(|said| {
                format!(
                    "`hipInit` failed: {said}\n\
                     hint: HIP uses GPUs through `/dev/kfd`, which AMD's driver creates; this user needs access to it"
                )
            });
            assert!(texts.contains(&text), "{text}");
        },
    );
}

/// Programs that launch kernels by their names alone do not need this function.
#[test]
fn loads_libraries_without_variables_of_modules() {
    let name = "errors::loads_libraries_without_variables_of_modules";
    let library = match std::env::var("GPU_TEST_LIBRARY") {
        Ok(library) => library,
        Err(_) => match cuda_without("cuModuleGetGlobal_v2") {
            Some(library) => library.display().to_string(),
            None => return,
        },
    };
    with_library(name, Api::Cuda, &library, || {
        let stream = Stream::new(&Device::new(Api::Cuda, 0).unwrap()).unwrap();
        // SAFETY: the stand-in does not read the image.
        let module = unsafe { Module::load(&stream, CUDA_IMAGE) }.unwrap();
        module.kernel("saxpy").unwrap();
        let error = module.variable("filter").unwrap_err().to_string();
        let expected = "has no function `cuModuleGetGlobal_v2`";
        assert!(error.contains(expected), "{error}");
    });
}
