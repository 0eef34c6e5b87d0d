//! Speeds of the same kernels in Rust and in C++.

use crate::images;
use compared_kernels::{matmul, reduce, saxpy, xorshift};
use offload_device::Grid;
use offload_device::gpu::{Buffer, Error, Module, Stream};
use std::time::Instant;

/// Elements of the vectors: 512 MiB each.
const COUNT: usize = 1 << 27;

/// Rows and columns of the matrices.
const ROWS: usize = 4096;

/// Random numbers, and the steps of each.
const RANDOMS: usize = 1 << 24;
const STEPS: u32 = 1000;

/// Prints one row for each kernel: what it computes in a second, in Rust and as each compiler of C++ made it.
pub fn print(stream: &Stream, rust: &Module) -> Result<(), Error> {
    let cpp: [(&str, Vec<&'static [u8]>); 3] = [
        (
            "C++, clang, CUDA",
            images::cuda::images()
                .iter()
                .map(|image| image.bytes)
                .collect(),
        ),
        (
            "C++, nvcc",
            images::nvcc::images()
                .iter()
                .map(|image| image.bytes)
                .collect(),
        ),
        (
            "C++, clang, HIP",
            images::hip::images()
                .iter()
                .map(|image| image.bytes)
                .collect(),
        ),
    ];
    // SAFETY: `build.rs` made the images of `speeds.cpp`. The other vendor's are refused.
    let load = |images| unsafe { Module::load_any(stream, images) };
    let modules = cpp
        .into_iter()
        .filter_map(|(name, images)| Some((name, load(images).ok()?)));
    let modules: Vec<(&str, Module)> = modules.collect();
    let x = Buffer::<f32>::zeroed(stream, COUNT)?;
    let mut y = Buffer::<f32>::zeroed(stream, COUNT)?;
    let mut total = Buffer::<f32>::zeroed(stream, 1)?;
    let (a, b) = (
        Buffer::<f32>::zeroed(stream, ROWS * ROWS)?,
        Buffer::<f32>::zeroed(stream, ROWS * ROWS)?,
    );
    let mut c = Buffer::<f32>::zeroed(stream, ROWS * ROWS)?;
    let mut randoms = Buffer::<u32>::zeroed(stream, RANDOMS)?;

    let vectors = Grid::for_len(COUNT, 256);
    let groups = Grid::new(4096, 256);
    let tiles = Grid::covering([ROWS as u32; 2], [16; 2]);
    let items = Grid::for_len(RANDOMS, 256);
    let bytes = (COUNT * size_of::<f32>()) as f64;
    let operations = 2.0 * (ROWS as f64).powi(3);
    let steps = (RANDOMS * STEPS as usize) as f64;

    println!(
        "{:<24} | {:>14} | {:>14} | {:>14} | {:>14}",
        "speed", "saxpy, GB/s", "reduce, GB/s", "matmul, GF/s", "xorshift, G/s"
    );
    let seconds = [
        best(stream, || saxpy::launch(rust, vectors, 2.0, &x, &mut y))?,
        best(stream, || reduce::launch(rust, groups, &x, &mut total))?,
        best(stream, || {
            matmul::launch(rust, tiles, ROWS as u32, &a, &b, &mut c)
        })?,
        best(stream, || {
            xorshift::launch(rust, items, STEPS, &mut randoms)
        })?,
    ];
    let print = |name: &str, [saxpy, reduce, matmul, xorshift]: [f64; 4]| {
        let speeds = [
            3.0 * bytes / saxpy,
            bytes / reduce,
            operations / matmul,
            steps / xorshift,
        ];
        let [saxpy, reduce, matmul, xorshift] = speeds.map(|speed| speed / 1e9);
        println!("{name:<24} | {saxpy:>14.0} | {reduce:>14.0} | {matmul:>14.0} | {xorshift:>14.0}");
    };
    print("Rust", seconds);
    for (name, module) in &modules {
        let kernel = |name: &str| module.kernel(name);
        let (count, randoms_count) = (COUNT as u64, RANDOMS as u64);
        let (n, two) = (ROWS as u32, 2.0f32);
        // SAFETY: these are the arguments of the kernels in `speeds.cpp`, which access as many elements as the buffers have.
        let seconds = unsafe {
            [
                best(stream, || {
                    kernel("saxpy")?.launch(vectors, 0, &[&two, &x, &y, &count])
                })?,
                best(stream, || {
                    kernel("reduce")?.launch(groups, 0, &[&x, &count, &total])
                })?,
                best(stream, || {
                    kernel("matmul")?.launch(tiles, 0, &[&n, &a, &b, &c])
                })?,
                best(stream, || {
                    kernel("xorshift")?.launch(items, 0, &[&STEPS, &randoms, &randoms_count])
                })?,
            ]
        };
        print(name, seconds);
    }
    Ok(())
}

/// Returns the seconds of a launch: the best of five times the mean of ten.
fn best(stream: &Stream, mut launch: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    launch()?;
    stream.synchronize()?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..10 {
            launch()?;
        }
        stream.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() / 10.0);
    }
    Ok(best)
}
