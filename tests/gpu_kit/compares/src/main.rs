//! Runs kernels in Rust on the first GPU. `compares images` and `compares ptx` compare their results with the CPU's, `compares traps` expects the
//! error of a panic, and `compares speeds` prints their speed beside that of the same kernels in C++. `compares cpu` only runs them on the CPU.

mod results;
mod speeds;

use offload_device::Grid;
use offload_device::gpu::{Buffer, Device, Error, Module, Stream};
use std::process::ExitCode;

/// Images, made by `build.rs`.
mod images {
    pub mod rust {
        include!(concat!(env!("OUT_DIR"), "/rust.rs"));
    }
    pub mod cuda {
        include!(concat!(env!("OUT_DIR"), "/cuda.rs"));
    }
    pub mod nvcc {
        include!(concat!(env!("OUT_DIR"), "/nvcc.rs"));
    }
    pub mod hip {
        include!(concat!(env!("OUT_DIR"), "/hip.rs"));
    }
}

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    match run(&command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the results are right.
fn run(command: &str) -> Result<bool, Error> {
    if command == "cpu" {
        return results::compare(None);
    }
    let stream = Stream::new(&Device::first()?)?;
    let rust = images::rust::images();
    let load = |is_wanted: fn(&str) -> bool| {
        let chosen = rust.iter().filter(|image| is_wanted(image.target));
        // SAFETY: `build.rs` made the images of the crate `compared-kernels`.
        unsafe { Module::load_any(&stream, chosen.map(|image| image.bytes)) }
    };
    let compare = |module: &Module| results::compare(Some((&stream, module)));
    match command {
        "images" => compare(&load(|target| !target.starts_with("compute_"))?),
        "ptx" => compare(&load(|target| target.starts_with("compute_"))?),
        "traps" => traps(&stream, &load(|_| true)?),
        "speeds" => speeds::print(&stream, &load(|_| true)?).map(|()| true),
        _ => {
            println!("usage: compares cpu|images|ptx|traps|speeds");
            Ok(false)
        }
    }
}

/// Returns whether an index out of bounds is an error that a later call reports.
fn traps(stream: &Stream, module: &Module) -> Result<bool, Error> {
    let x = Buffer::from_slice(stream, &[1; 100])?;
    let mut y = Buffer::from_slice(stream, &[0; 200])?;
    // All work-items have an element of `x` at first.
    compared_kernels::traps::launch(module, Grid::new(1, 64), &x, &mut y)?;
    let copied = y.to_vec()?;
    if copied[..64] != [1; 64] {
        println!("wrong result before the trap");
        return Ok(false);
    }
    compared_kernels::traps::launch(module, Grid::covering(200, 64), &x, &mut y)?;
    match y.to_vec() {
        Ok(_) => println!("wrong result: no error after an index out of bounds"),
        Err(error) => {
            println!("after an index out of bounds: {error}");
            return Ok(true);
        }
    }
    Ok(false)
}
