//! Bytes that a launch passes.

use offload_device::gpu::{Buffer, KernelArgument};
use offload_device::{Grid, Layout};

use crate::stand_in::with_stand_ins;
use crate::{Point, large, mixed, nothing, saxpy, scalars};

/// Appends bytes at an offset.
fn put(buffer: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    buffer.resize(offset, 0);
    buffer.extend_from_slice(bytes);
}

#[test]
fn passes_each_scalar_at_its_offset() {
    with_stand_ins("arguments::passes_each_scalar_at_its_offset", |stand_in| {
        let (_, module) = stand_in.module();
        let grid = Grid::new([2, 3, 4], [5, 6, 7]);
        scalars::launch(
            &module, grid, 1, -2, 4, -8, 16, -32, 64, -128, 256, -512, 0.25, -0.5,
        )
        .unwrap();
        let (line, bytes) = stand_in.launch();
        assert_eq!(line, "scalars [2,3,4] [5,6,7] 0 1");
        let mut expected = vec![1u8, 0xfe];
        put(&mut expected, 2, &4u16.to_le_bytes());
        put(&mut expected, 4, &(-8i16).to_le_bytes());
        put(&mut expected, 8, &16u32.to_le_bytes());
        put(&mut expected, 12, &(-32i32).to_le_bytes());
        put(&mut expected, 16, &64u64.to_le_bytes());
        put(&mut expected, 24, &(-128i64).to_le_bytes());
        put(&mut expected, 32, &256u64.to_le_bytes());
        put(&mut expected, 40, &(-512i64).to_le_bytes());
        put(&mut expected, 48, &0.25f32.to_le_bytes());
        put(&mut expected, 56, &(-0.5f64).to_le_bytes());
        assert_eq!(bytes, expected);
    });
}

#[test]
fn passes_buffers_as_address_and_length() {
    with_stand_ins(
        "arguments::passes_buffers_as_address_and_length",
        |stand_in| {
            let (stream, module) = stand_in.module();
            let x = Buffer::from_slice(&stream, &[7u8; 5]).unwrap();
            let mut y = Buffer::zeroed(&stream, 3).unwrap();
            let z = Buffer::from_slice(&stream, &[Point { x: [1.0; 3] }; 2]).unwrap();
            mixed::launch(&module, Grid::new(1, 1), 1, &x, 2, &mut y, 3, 4.0, &z, 5).unwrap();
            let (_, bytes) = stand_in.launch();
            let mut expected = vec![1u8];
            put(&mut expected, 8, &x.address().to_le_bytes());
            put(&mut expected, 16, &5u64.to_le_bytes());
            put(&mut expected, 24, &2u16.to_le_bytes());
            put(&mut expected, 32, &y.address().to_le_bytes());
            put(&mut expected, 40, &3u64.to_le_bytes());
            put(&mut expected, 48, &[3]);
            put(&mut expected, 56, &4.0f64.to_le_bytes());
            put(&mut expected, 64, &z.address().to_le_bytes());
            put(&mut expected, 72, &2u64.to_le_bytes());
            put(&mut expected, 80, &[5]);
            assert_eq!(bytes, expected);
            assert_eq!(bytes.len(), Layout::buffer_size(mixed::ARGUMENTS));
            assert_eq!(y.to_vec().unwrap(), [[0; 2]; 3]);
            assert_eq!(z.to_vec().unwrap()[1].x, [1.0; 3]);
        },
    );
}

#[test]
fn passes_empty_buffers_as_aligned_addresses() {
    with_stand_ins(
        "arguments::passes_empty_buffers_as_aligned_addresses",
        |stand_in| {
            let (stream, module) = stand_in.module();
            let x = Buffer::from_slice(&stream, &[]).unwrap();
            let mut y = Buffer::zeroed(&stream, 0).unwrap();
            saxpy::launch(&module, Grid::new(1, 1), 1.0, &x, &mut y).unwrap();
            let (_, bytes) = stand_in.launch();
            let mut expected = 1.0f32.to_le_bytes().to_vec();
            for (offset, word) in [(8, 4u64), (16, 0), (24, 4), (32, 0)] {
                put(&mut expected, offset, &word.to_le_bytes());
            }
            assert_eq!(bytes, expected);
            assert_eq!(y.to_vec().unwrap(), []);
            // The drops of empty buffers free nothing.
            drop((x, y));
            let free = stand_in.name("hipFree", "cuMemFree_v2");
            assert!(!stand_in.calls().contains(&free.to_owned()));
        },
    );
}

#[test]
fn passes_no_buffer_without_arguments() {
    with_stand_ins(
        "arguments::passes_no_buffer_without_arguments",
        |stand_in| {
            let (_, module) = stand_in.module();
            nothing::launch(&module, Grid::new(4, 64)).unwrap();
            let (line, bytes) = stand_in.launch();
            assert_eq!((&*line, bytes), ("nothing [4,1,1] [64,1,1] 2048 1", vec![]));
            // A grid without work-items launches nothing.
            nothing::launch(&module, Grid::new(0, 64)).unwrap();
            nothing::launch(&module, Grid::new([4, 0], 1024 * 1024)).unwrap();
            let launch = stand_in.name("hipModuleLaunchKernel", "cuLaunchKernel");
            assert!(!stand_in.calls().iter().any(|call| call.starts_with(launch)));
        },
    );
}

#[test]
fn asks_for_more_than_48_kib_of_shared_memory() {
    with_stand_ins(
        "arguments::asks_for_more_than_48_kib_of_shared_memory",
        |stand_in| {
            let (_, module) = stand_in.module();
            // The first launch of a kernel reads its signature, too.
            large::launch(&module, Grid::new(1, 1)).unwrap();
            stand_in.calls();
            large::launch(&module, Grid::new(1, 1)).unwrap();
            let calls = stand_in.calls();
            let expected: &[&str] = match stand_in.name("hip", "cuda") {
                "hip" => &[
                    "hipModuleGetFunction 2 large",
                    "hipModuleLaunchKernel large [1,1,1] [1,1,1] 65536 1",
                ],
                _ => &[
                    "cuModuleGetFunction 2 large",
                    "cuFuncSetAttribute large shared 65536",
                    "cuLaunchKernel large [1,1,1] [1,1,1] 65536 1",
                ],
            };
            assert_eq!(calls, expected);
        },
    );
}

#[test]
fn launches_kernels_of_other_languages() {
    with_stand_ins(
        "arguments::launches_kernels_of_other_languages",
        |stand_in| {
            let (stream, module) = stand_in.module();
            let x = Buffer::from_slice(&stream, &[1.0f32, 2.0, 3.0]).unwrap();
            let y = Buffer::from_slice(&stream, &[10.0f32; 3]).unwrap();
            let point = Point { x: [1.0, 2.0, 3.0] };
            let kernel = module.kernel("_Z5saxpyfPKfPfj").unwrap();
            let arguments: &[&dyn KernelArgument] =
                &[&2.0f32, &x, &[1u8, 2, 3], &y, &point, &-1i64];
            // SAFETY: the stand-in reads them only.
            unsafe { kernel.launch(Grid::new(1, 4), 100, arguments).unwrap() }
            let (line, bytes) = stand_in.launch();
            assert_eq!(line, "_Z5saxpyfPKfPfj [1,1,1] [4,1,1] 100 1");
            let mut expected = 2.0f32.to_le_bytes().to_vec();
            put(&mut expected, 8, &x.address().to_le_bytes());
            put(&mut expected, 16, &[1, 2, 3]);
            put(&mut expected, 24, &y.address().to_le_bytes());
            for (offset, value) in [(32, 1.0f32), (36, 2.0), (40, 3.0)] {
                put(&mut expected, offset, &value.to_le_bytes());
            }
            put(&mut expected, 48, &(-1i64).to_le_bytes());
            assert_eq!(bytes, expected);

            let saxpy = module.kernel("saxpy").unwrap();
            // SAFETY: the arguments of the stand-in's kernel in C.
            unsafe {
                saxpy
                    .launch(Grid::new(1, 4), 0, &[&2.0f32, &x, &y, &3u32])
                    .unwrap()
            }
            assert_eq!(y.to_vec().unwrap(), [12.0, 14.0, 16.0]);
        },
    );
}
