//! Runs the kernels on the first GPU, or on the CPU if there is none, and compares the results with plain loops.

use std::error::Error;
use std::time::Instant;

use ::kernels::{GROUP, TILE, matmul, reduce, saxpy};
use offload_device::gpu::{Buffer, Device, Module, Stream};
use offload_device::{Global, Grid};

/// Images and kernels, made by `build.rs`.
mod images {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Rows and columns of the matrices.
const N: usize = 8 * TILE;

/// Results of all kernels.
struct Results {
    y: Vec<f32>,
    c: Vec<f32>,
    total: Vec<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for image in images::images() {
        println!("{}: {} bytes", image.target, image.bytes.len());
    }
    for kernel in images::kernel::ALL {
        for image in kernel.images {
            let registers = image.registers.unwrap_or_default();
            println!("{} for {}: {registers} registers", kernel.name, image.target);
        }
    }
    // Small integers, so that each order of additions gives the same sums.
    let a: Vec<f32> = (0..N * N).map(|i| (i * 7 % 13) as f32).collect();
    let b: Vec<f32> = (0..N * N).map(|i| (i * 5 % 11) as f32).collect();
    let results = match Device::first() {
        Ok(device) => {
            println!("on {device}:");
            on_gpu(&device, &a, &b)?
        }
        Err(error) if error.is_no_gpu() => {
            println!("{error}\non the CPU:");
            on_cpu(&a, &b)
        }
        Err(error) => return Err(error.into()),
    };
    let Results { y, c, total } = results;
    let product = |i: usize| (0..N).map(|k| a[i / N * N + k] * b[k * N + i % N]).sum::<f32>();
    let checks = [
        ("saxpy", (0..N * N).all(|i| y[i] == 2.0 * a[i] + b[i])),
        ("matmul", (0..N * N).all(|i| c[i] == product(i))),
        ("reduce", total == [a.iter().sum::<f32>()]),
    ];
    for (name, right) in checks {
        println!("{name}: {}", if right { "right" } else { "wrong" });
    }
    if checks.iter().all(|(_, right)| *right) { Ok(()) } else { Err("a result is wrong".into()) }
}

/// Sizes of the launches of `saxpy`, `matmul` and `reduce`.
fn grids() -> [Grid; 3] {
    let tile = TILE as u32;
    [
        Grid::for_len(N * N, 256),
        Grid::covering([N as u32; 2], [tile; 2]),
        Grid::new(8, GROUP as u32),
    ]
}

fn on_gpu(device: &Device, a: &[f32], b: &[f32]) -> Result<Results, Box<dyn Error>> {
    let stream = Stream::new(device)?;
    // SAFETY: `build.rs` made the images of the crate `kernels`.
    let module = unsafe { Module::load_any(&stream, images::images().iter().map(|image| image.bytes))? };
    let [vectors, tiles, groups] = grids();
    let (x, mut y) = (Buffer::from_slice(&stream, a)?, Buffer::from_slice(&stream, b)?);
    let (factor, mut c) = (Buffer::from_slice(&stream, b)?, Buffer::zeroed(&stream, N * N)?);
    let mut total = Buffer::zeroed(&stream, 1)?;
    let start = Instant::now();
    saxpy::launch(&module, vectors, 2.0, &x, &mut y)?;
    matmul::launch(&module, tiles, N as u32, &x, &factor, &mut c)?;
    reduce::launch(&module, groups, &x, &mut total)?;
    stream.synchronize()?;
    println!("three launches in {:?}", start.elapsed());
    Ok(Results { y: y.to_vec()?, c: c.to_vec()?, total: total.to_vec()? })
}

fn on_cpu(a: &[f32], b: &[f32]) -> Results {
    let [vectors, tiles, groups] = grids();
    let (mut y, mut c, mut total) = (b.to_vec(), vec![0.0; N * N], vec![0.0]);
    saxpy::run(vectors, 2.0, a, Global::new(&mut y));
    matmul::run(tiles, N as u32, a, b, Global::new(&mut c));
    reduce::run(groups, a, Global::new(&mut total));
    Results { y, c, total }
}
