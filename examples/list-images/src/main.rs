//! A program that lists the device images in its own file, or in other files.
//!
//! It reads the file itself, so it also lists images of the libraries that the program was linked with.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::inventory::inventory;

/// Links the kernels, made by `build.rs`.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() -> Result<(), Box<dyn Error>> {
    let built = kernels::images().len();
    let mut files: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() {
        println!("build.rs made {built} images");
        files.push(env::current_exe()?);
    }
    for path in files {
        let file = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // Only headers are read. Headers of compressed bundles are unpacked, up to this many bytes.
        let found = inventory(&file[..], &mut Unpacking::in_memory(1 << 30));
        for problem in &found.problems {
            eprintln!("{}: {problem}", path.display());
        }
        for placed in found.images() {
            let (image, container) = (placed.image, placed.container());
            print!("{}: {} bytes, {}", image.target, image.size, container.format.name());
            match &container.section {
                Some(name) => println!(" in section `{}`", String::from_utf8_lossy(name)),
                None => println!(),
            }
        }
    }
    Ok(())
}
