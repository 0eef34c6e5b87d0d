//! clang's command lines for HIP, CUDA and LLVM IR: the device's side of one source for one processor, as bitcode that
//! the device link joins with that of other sources.

use crate::target::Triple;
use crate::toolchain::clang::{Clang, Compile, Part};
use crate::toolchain::{Command, ptxas, single_source, task};
use std::ffi::OsString;
use std::path::Path;

/// HIP for an AMD GPU (`gfx90a:xnack-`); `rocm` is the root of ROCm's headers and device libraries, unless the
/// source does without.
#[must_use]
pub fn hip(
    clang: &Clang<'_>,
    processor: &str,
    rocm: Option<Rocm<'_>>,
    compile: &Compile<'_>,
) -> Command {
    // For one processor too clang would write a bundle.
    let command = start(clang, "hip", processor, compile).arg("--no-gpu-bundle-output");
    clang.finish_hip(of_tree(command, rocm, compile), compile)
}

/// Where a ROCm tree is, and what clang does not find in it by itself.
#[derive(Clone, Copy, Debug)]
pub struct Rocm<'a> {
    /// The root of headers and device libraries.
    pub root: &'a Path,
    /// The folder of the device libraries, where they do not lie as in AMD's own tree.
    pub device_libraries: Option<&'a Path>,
}

/// Where ROCm's headers and libraries are: the same for every pass over a source.
pub(super) fn of_tree(command: Command, rocm: Option<Rocm<'_>>, compile: &Compile<'_>) -> Command {
    let Some(rocm) = rocm else { return command };
    let has = |flags: &[&str]| {
        compile
            .flags
            .iter()
            .any(|flag| flags.contains(&flag.as_str()))
    };
    let mut command = root(command, "--rocm-path=", Some(rocm.root));
    let libraries = rocm.device_libraries;
    if !has(&["-nogpulib", "-no-gpulib", "-nohiplib"]) {
        command = root(command, "--rocm-device-lib-path=", libraries);
    }
    // clang searches that folder last, behind the system's own, which may have headers of another ROCm.
    if rocm.root != Path::new("/usr") && !has(&["-nogpuinc", "-nohipinc"]) {
        command = command.arg("-isystem").arg(rocm.root.join("include"));
    }
    command
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
    let command = clang.start();
    let command = match compile.part {
        // Senders compile whatever has no `-x` elsewhere.
        Part::Compile(_) => command.arg(format!("--language={language}")),
        Part::Whole | Part::Preprocess(_) => command.args(["-x", language]),
    };
    command
        .arg("--offload-device-only")
        .arg(format!("--offload-arch={processor}"))
        .args(compile.rdc.then_some("-fgpu-rdc"))
        .arg("-emit-llvm")
        // Otherwise clang makes it of its command line. Not by `-Xclang`, which sccache does not know.
        .arg(format!("-cuid={}", compile.unit))
}

pub(super) fn root(command: Command, option: &str, root: Option<&Path>) -> Command {
    let Some(root) = root else { return command };
    let mut arg = OsString::from(option);
    arg.push(root);
    command.arg(arg)
}
