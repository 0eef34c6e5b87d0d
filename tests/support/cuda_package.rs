//! A package with a module of CUDA, and what NVIDIA's tools make of its images.

use super::package::{OUT, Package};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const CUDA: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
pub const HEADER: &str = "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    struct Pair { char a; double b; };\n__device__ int twice(int x);\n";
pub const KERNEL: &str = "#include \"k.h\"\nextern \"C\" __global__ void scale(int *x, char c, Pair p) { *x = twice(*x) + c; }\n";
/// A function of the device that another file calls.
pub const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return 2 * x; }\n";

/// A package with sources of CUDA.
pub fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put("kernels/k.cu", KERNEL);
    package.put("kernels/helper.cu", HELPER);
    package.declare(keys);
    Some(package)
}

pub fn targets(names: &[&str]) -> String {
    format!("targets = {names:?}\n")
}

/// The build script where NVIDIA's tools are.
pub fn script(package: &Package, cuda: &Path) -> Command {
    let mut script = package.script();
    script.env("CUDA_PATH", cuda);
    script
}

/// The root of NVIDIA's compilers.
pub fn cuda() -> Option<PathBuf> {
    let ptxas = super::tool("cuda", &["ptxas"])?;
    Some(ptxas.ancestors().nth(2).unwrap().to_owned())
}

pub fn images(package: &Package) -> Vec<u8> {
    fs::read(package.at(OUT).join("offload/kernels/images")).unwrap()
}

/// What a program prints that includes the generated file.
pub fn program(package: &Package, main: &str) -> String {
    let source = format!(
        "mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\nfn main() {{ {main} }}\n"
    );
    package.put("main.rs", &source);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command
        .args(["-Dwarnings", "--edition=2024", "main.rs", "-o", "main"])
        .env("OUT_DIR", package.at(OUT))
        .current_dir(package.folder.root());
    package.link_images(&mut command);
    super::run(&mut command);
    super::run(&mut Command::new(package.at("main")))
}

/// What NVIDIA's tool makes of these images, each as its option says.
pub fn theirs(
    cuda: &Path,
    package: &Package,
    options: &[&str],
    images: &[(&str, &Path)],
) -> Vec<u8> {
    let output = package.at("theirs.fatbin");
    let mut command = Command::new(cuda.join("bin/fatbinary"));
    command
        .arg("-64")
        .args(options)
        .arg("--create")
        .arg(&output);
    for (option, path) in images {
        command.arg(format!("--image3={option},file={}", path.display()));
    }
    super::run(&mut command);
    fs::read(output).unwrap()
}
