//! Prints what a program knows that loads the kernels on a GPU, and runs one of them on the CPU.

use ::kernels::reduce;
use offload_device::{Global, cpu::Grid};

/// Images and kernels, made by `build.rs`.
mod images {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() {
    for image in images::images() {
        println!("{}: {} bytes", image.target, image.bytes.len());
    }
    for kernel in images::kernel::ALL {
        for image in kernel.images {
            let registers = image.registers.unwrap_or_default();
            println!("{} for {}: {registers} registers", kernel.name, image.target);
        }
    }
    let x = vec![0.5; 1000];
    let mut total = [0.0];
    reduce::run(Grid::new(4, 256), &x, Global::new(&mut total));
    println!("sum on the CPU: {}", total[0]);
}
