//! A folder with the files of ROCm's device libraries, and functions of the test's own in them.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Switches, each with a file for on and for off.
const SWITCHES: [&str; 5] = [
    "wavefrontsize64",
    "finite_only",
    "unsafe_math",
    "daz_opt",
    "correctly_rounded_sqrt",
];

/// The other files that clang 19 asks for, for gfx90a and gfx1100, without the first.
const OTHERS: [&str; 7] = [
    "ockl",
    "opencl",
    "hip",
    "oclc_isa_version_90a",
    "oclc_isa_version_1100",
    "oclc_abi_version_400",
    "oclc_abi_version_500",
];

/// Compiles the files into `folder` with clang 19; `ocml` is the C source of `ocml.bc`.
pub fn put(folder: &Path, ocml: &str) {
    let switches = SWITCHES
        .iter()
        .flat_map(|name| ["on", "off"].map(|way| format!("oclc_{name}_{way}")));
    let empty = OTHERS.map(str::to_owned).into_iter().chain(switches);
    fs::create_dir_all(folder).unwrap();
    compile(folder, "ocml", ocml);
    for name in empty {
        compile(folder, &name, "");
    }
}

fn compile(folder: &Path, name: &str, source: &str) {
    let file = folder.join("source.c");
    fs::write(&file, source).unwrap();
    let mut command = Command::new("clang-19");
    command
        .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm"])
        .args(["-O1", "-c"])
        .arg(&file)
        .arg("-o")
        .arg(folder.join(name).with_extension("bc"));
    super::run(&mut command);
    fs::remove_file(file).unwrap();
}
