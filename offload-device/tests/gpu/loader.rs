//! Devices, modules, buffers and streams.

use std::sync::atomic::Ordering::Relaxed;

use offload_device::Grid;
use offload_device::gpu::{Api, Buffer, Device, Error, Module, Stream};

use crate::stand_in::with_stand_ins;
use crate::{WATCHED, nothing, saxpy};

#[test]
fn computes_on_the_device() {
    with_stand_ins("loader::computes_on_the_device", |stand_in| {
        let device = Device::first().unwrap();
        assert_eq!(
            (device.api(), device.index(), device.name()),
            (stand_in.api, 0, "stand-in 0")
        );
        let target = stand_in.name("gfx90a:sramecc+:xnack-", "sm_90");
        assert_eq!(device.target(), target);
        assert_eq!(
            device.to_string(),
            format!("stand-in 0 ({target}, {})", stand_in.api)
        );
        let stream = Stream::new(&device).unwrap();
        // SAFETY: the stand-in does not read the image.
        let module = unsafe { Module::load(&stream, stand_in.image()) }.unwrap();
        let x = Buffer::from_slice(&stream, &[1.0; 1000]).unwrap();
        let mut y = Buffer::from_slice(&stream, &[2.0; 1000]).unwrap();
        for _ in 0..2 {
            saxpy::launch(&module, Grid::covering(1000, 256), 3.0, &x, &mut y).unwrap();
        }
        assert_eq!(y.to_vec().unwrap(), [8.0; 1000]);
        y.copy_from(&[1.0; 1000]).unwrap();
        let mut copy = [0.0; 1000];
        y.copy_to(&mut copy).unwrap();
        assert_eq!(copy, [1.0; 1000]);
        let error = y.copy_to(&mut copy[1..]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a slice of the buffer's length 1000, found 999 elements"
        );
        let error = y.copy_from(&[]).unwrap_err();
        assert!(matches!(
            error,
            Error::Length {
                buffer: 1000,
                slice: 0,
                ..
            }
        ));
    });
}

#[test]
fn reads_and_writes_variables() {
    with_stand_ins("loader::reads_and_writes_variables", |stand_in| {
        let (stream, module) = stand_in.module();
        let filter = module.variable("filter").unwrap();
        assert_eq!(filter.size(), 12);
        assert_ne!(filter.address(), 0);
        stand_in.calls();
        let mut values = [0.0f32; 3];
        filter.copy_to(&mut values).unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0]);
        // SAFETY: no kernel runs.
        unsafe { filter.copy_from(&[[4.0f32, 5.0, 6.0]]).unwrap() };
        let calls = stand_in.calls();
        let copies = [
            stand_in.name("hipMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2"),
            stand_in.name("hipMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
        ];
        let waits = stand_in.name("hipStreamSynchronize", "cuStreamSynchronize");
        // All in one stream, and each copy waits.
        let number = calls[1].strip_prefix(waits).unwrap().trim();
        let expected =
            copies.map(|copy| [format!("{copy} 12 {number}"), format!("{waits} {number}")]);
        assert_eq!(calls, expected.concat());
        module
            .variable("filter")
            .unwrap()
            .copy_to(&mut values)
            .unwrap();
        assert_eq!(values, [4.0, 5.0, 6.0]);

        stand_in.calls();
        let mut many = [0u8; 13];
        let error = filter.copy_to(&mut many).unwrap_err();
        let expected =
            "variable `filter`: expected a slice of its size of 12 bytes, found 13 bytes";
        assert_eq!(error.to_string(), expected);
        // SAFETY: nothing is copied.
        let error = unsafe { filter.copy_from(&[0u16; 5]) }.unwrap_err();
        let expected =
            "variable `filter`: expected a slice of its size of 12 bytes, found 10 bytes";
        assert_eq!(error.to_string(), expected);
        assert_eq!(stand_in.calls(), [""; 0]);
        drop(stream);
    });
}

#[test]
fn waits_before_it_frees() {
    with_stand_ins("loader::waits_before_it_frees", |stand_in| {
        let stream = stand_in.stream();
        // SAFETY: the stand-in does not read the image.
        let module = unsafe { Module::load(&stream, stand_in.image()) }.unwrap();
        let mut buffer = Buffer::<u16>::zeroed(&stream, 10).unwrap();
        buffer.copy_from(&[1; 10]).unwrap();
        drop(stream);
        stand_in.calls();
        drop(buffer);
        drop(module);
        let expected: &[&str] = match stand_in.name("hip", "cuda") {
            "hip" => &[
                "hipStreamSynchronize 1",
                "hipFree",
                "hipDeviceSynchronize",
                "hipModuleUnload 2",
                "hipStreamSynchronize 1",
                "hipStreamDestroy 1",
            ],
            _ => &[
                "cuStreamSynchronize 1",
                "cuMemFree_v2",
                "cuCtxSynchronize",
                "cuModuleUnload 2",
                "cuStreamSynchronize 1",
                "cuStreamDestroy_v2 1",
                "cuDevicePrimaryCtxRelease_v2 0",
            ],
        };
        assert_eq!(stand_in.calls(), expected);
    });
}

#[test]
fn frees_an_image_only_after_it_was_unloaded() {
    let name = "loader::frees_an_image_only_after_it_was_unloaded";
    with_stand_ins(name, |stand_in| {
        let stream = stand_in.stream();
        let frees = |failing: Option<&str>| {
            let image = stand_in.image().to_vec();
            WATCHED.store(image.as_ptr() as usize, Relaxed);
            // SAFETY: the stand-in does not read the image.
            let module = unsafe { Module::load(&stream, image) }.unwrap();
            if let Some(function) = failing {
                stand_in.fail(function, 2);
            }
            drop(module);
            stand_in.fail_nothing();
            WATCHED.load(Relaxed) == 0
        };
        assert!(frees(None));
        let unload = stand_in.name("hipModuleUnload", "cuModuleUnload");
        assert!(!frees(Some(unload)));
        let enter = stand_in.name("hipSetDevice", "cuCtxSetCurrent");
        assert!(!frees(Some(enter)));
    });
}

#[test]
fn keeps_each_buffer_on_its_stream() {
    with_stand_ins("loader::keeps_each_buffer_on_its_stream", |stand_in| {
        let (one, module) = stand_in.module();
        let two = one.another().unwrap();
        let x = Buffer::from_slice(&one, &[1.0; 4]).unwrap();
        let mut y = Buffer::zeroed(&two, 4).unwrap();
        let grid = Grid::new(1, 4);
        let error = saxpy::launch(&module, grid, 3.0, &x, &mut y).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `saxpy`, argument 2: the buffer belongs to another stream than the module\n\
             hint: move the buffer with `Buffer::move_to`, or launch with `Module::on`"
        );
        // SAFETY: refused before the launch.
        let refused = unsafe { module.kernel("saxpy").unwrap().launch(grid, 0, &[&y]) };
        assert!(
            matches!(&refused, Err(Error::ArgumentStream { kernel, index: 0, .. }) if kernel == "saxpy"),
            "{refused:?}"
        );
        stand_in.calls();
        y.move_to(&one).unwrap();
        assert_eq!(
            stand_in.calls(),
            [stand_in.name("hipStreamSynchronize 3", "cuStreamSynchronize 3")]
        );
        saxpy::launch(&module, grid, 3.0, &x, &mut y).unwrap();
        assert!(stand_in.launch().0.ends_with(" 1"));
        assert_eq!(y.to_vec().unwrap(), [3.0; 4]);

        let other = module.on(&two).unwrap();
        nothing::launch(&other, grid).unwrap();
        assert_eq!(stand_in.launch().0, "nothing [1,1,1] [4,1,1] 2048 3");
    });
}

#[test]
fn refuses_streams_of_other_gpus() {
    // SAFETY: before any other thread of this process could read variables.
    unsafe { std::env::set_var("GPU_COUNT", "2") };
    with_stand_ins("loader::refuses_streams_of_other_gpus", |stand_in| {
        let all = Device::of(stand_in.api).unwrap();
        let names: Vec<&str> = all.iter().map(Device::name).collect();
        assert_eq!(names, ["stand-in 0", "stand-in 1"]);
        let (_, module) = stand_in.module();
        let stream = Stream::new(&all[1]).unwrap();
        let mut buffer = Buffer::<u8>::zeroed(module.stream(), 1).unwrap();
        assert_eq!(module.on(&stream).unwrap_err(), Error::OtherGpu);
        assert_eq!(buffer.move_to(&stream).unwrap_err(), Error::OtherGpu);
        // Streams of one GPU that were created apart are of one GPU.
        assert!(module.on(&stand_in.stream()).is_ok());
        let error = Device::new(stand_in.api, 2).unwrap_err();
        let expected = format!(
            "{} has no GPU with index 2: the number of GPUs is 2",
            stand_in.api
        );
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_no_gpu());
    });
}

#[test]
fn chooses_among_images() {
    with_stand_ins("loader::chooses_among_images", |stand_in| {
        let elf = |machine: u16, byte: u8| {
            let mut image = b"\x7fELF".to_vec();
            image.resize(64, 0);
            image[18..20].copy_from_slice(&machine.to_le_bytes());
            image[32] = byte;
            image
        };
        let stream = stand_in.stream();
        stand_in.calls();
        let ptx = b".version 7.8".to_vec();
        let images = [
            ptx,
            elf(224, b'r'),
            elf(190, b'r'),
            elf(224, 0),
            elf(190, 0),
            elf(224, 0),
        ];
        let load = stand_in.name(
            "hipModuleLoadDataEx 7f454c46",
            "cuModuleLoadDataEx 7f454c46",
        );
        // SAFETY: the stand-in reads the first bytes only.
        unsafe { Module::load_any(&stream, images.clone()) }.unwrap();
        // The first is refused, the second loaded; then the module is dropped.
        assert_eq!(stand_in.calls()[..2], [load; 2]);

        // PTX comes last, and the driver gets a NUL after it.
        // SAFETY: as before.
        let result = unsafe { Module::load_any(&stream, images[..3].to_vec()) };
        let calls = stand_in.calls();
        if stand_in.api == Api::Cuda {
            assert!(result.is_ok());
            assert_eq!(calls[..2], [load, "cuModuleLoadDataEx 12 characters"]);
        } else {
            assert_eq!(
                result.unwrap_err().to_string(),
                "no image for `gfx90a:sramecc+:xnack-` among 1\n\
                 `hipModuleLoadDataEx` failed: hipErrorNoBinaryForGpu (209): no image for this GPU"
            );
        }
        // SAFETY: as before.
        let error = unsafe { Module::load_any(&stream, [elf(62, 0)]) }.unwrap_err();
        let target = stand_in.name("gfx90a:sramecc+:xnack-", "sm_90");
        let expected =
            format!("no image for `{target}`: the module has no image for this vendor's GPUs");
        assert_eq!(error.to_string(), expected);
    });
}
