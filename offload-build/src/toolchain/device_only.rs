//! clang's command lines for HIP, CUDA and LLVM IR: the device's side of one source for one processor, as bitcode that
//! the device link joins with that of other sources.

use crate::target::Triple;
use crate::toolchain::clang::{Clang, Compile};
use crate::toolchain::{Command, ptxas, single_source, task};
use std::ffi::OsString;
use std::path::Path;

/// HIP for an AMD GPU (`gfx90a:xnack-`); `rocm` is the root of ROCm's headers and device libraries, unless the
/// source does without.
#[must_use]
pub fn hip(
    clang: &Clang<'_>,
    processor: &str,
    rocm: Option<&Path>,
    compile: &Compile<'_>,
) -> Command {
    // For one processor too clang would write a bundle.
    let command = start(clang, "hip", processor, compile).arg("--no-gpu-bundle-output");
    let mut command = root(command, "--rocm-path=", rocm);
    // clang searches that folder last, behind the system's own, which may have headers of another ROCm.
    let without = |flag: &String| ["-nogpuinc", "-nohipinc"].contains(&flag.as_str());
    let tree = rocm.filter(|root| *root != Path::new("/usr"));
    if let Some(root) = tree.filter(|_| !compile.flags.iter().any(without)) {
        command = command.arg("-isystem").arg(root.join("include"));
    }
    clang.finish(command, compile)
}

/// CUDA for an NVIDIA GPU (`sm_90a`); `cuda` is the root of the toolkit, unless the source does without.
#[must_use]
pub fn cuda(
    clang: &Clang<'_>,
    processor: &str,
    cuda: Option<&Path>,
    compile: &Compile<'_>,
) -> Command {
    let feature = ptxas::ptx_version(processor);
    let command =
        start(clang, "cuda", processor, compile).arg(format!("--cuda-feature=+{feature}"));
    let command = single_source::toolkit(command, cuda, compile);
    clang.finish(command, compile)
}

/// LLVM IR for that target, as bitcode or text. What is for another one is an error.
#[must_use]
pub fn bitcode(
    clang: &Clang<'_>,
    triple: &Triple,
    processor: &str,
    compile: &Compile<'_>,
) -> Command {
    let option = if triple.is_amdgpu() {
        "-mcpu"
    } else {
        "-march"
    };
    Command::new(clang.clang)
        .arg("--no-default-config")
        .args([
            format!("--target={triple}"),
            format!("{option}={processor}"),
        ])
        .args([
            "-nogpulib",
            "-x",
            "ir",
            "-emit-llvm",
            "-Werror=override-module",
        ])
        // The device link does that, for all sources together.
        .args(["-Xclang", "-disable-llvm-passes"])
        .args(compile.flags)
        .arg("-c")
        .arg(compile.source)
        .arg("-o")
        .arg(task::part(compile.output))
}

fn start(clang: &Clang<'_>, language: &str, processor: &str, compile: &Compile<'_>) -> Command {
    clang
        .start()
        .args(["-x", language, "--offload-device-only"])
        .arg(format!("--offload-arch={processor}"))
        .args(compile.rdc.then_some("-fgpu-rdc"))
        .arg("-emit-llvm")
        .args(single_source::unit(compile))
}

pub(super) fn root(command: Command, option: &str, root: Option<&Path>) -> Command {
    let Some(root) = root else { return command };
    let mut arg = OsString::from(option);
    arg.push(root);
    command.arg(arg)
}
