//! clang's command lines for the host's side of HIP and CUDA: host code that launches kernels, and the offload entries
//! of these. What registers the images joins later.

use crate::toolchain::Command;
use crate::toolchain::clang::{Clang, Compile};
use crate::toolchain::device_only::{Rocm, of_tree, root};
use std::path::Path;

/// Launches as CUDA 9.2 and later have them: without a toolkit clang takes those of before.
const NEW_LAUNCHES: [&str; 2] = ["-Xclang", "-target-sdk-version=12.0"];

/// HIP's; `rocm` is where ROCm's headers are, unless the source does without.
#[must_use]
pub fn hip_host(clang: &Clang<'_>, rocm: Option<Rocm<'_>>, compile: &Compile<'_>) -> Command {
    let command = start(clang, "hip", compile);
    clang.finish(of_tree(command, rocm, compile), compile)
}

/// CUDA's; `cuda` is the root of the toolkit, unless the source does without.
#[must_use]
pub fn cuda_host(clang: &Clang<'_>, cuda: Option<&Path>, compile: &Compile<'_>) -> Command {
    let command = toolkit(start(clang, "cuda", compile), cuda, compile);
    clang.finish(command, compile)
}

/// Where CUDA's toolkit is, or that there is none.
pub(super) fn toolkit(command: Command, cuda: Option<&Path>, compile: &Compile<'_>) -> Command {
    // Toolkits are newer than the newest that a release of clang knows.
    let command = command.arg("-Wno-unknown-cuda-version");
    let mut flags = compile.flags.iter();
    match cuda {
        Some(_) => root(command, "--cuda-path=", cuda),
        None if flags.any(|flag| flag.starts_with("--cuda-path")) => command,
        None => command.args(NEW_LAUNCHES),
    }
}

fn start(clang: &Clang<'_>, language: &str, compile: &Compile<'_>) -> Command {
    let mut command = clang
        .start()
        .args(["-x", language, "--offload-host-only"])
        // Registration is not clang's: it leaves the entries to the link.
        .args(["--offload-new-driver", "-fgpu-rdc"]);
    if clang.debug {
        command = command.arg("-g");
    }
    command.arg("-fPIC").args(unit(compile))
}

/// Names what is local to the source: both sides must call it the same, whatever else differs on their command lines.
pub(super) fn unit(compile: &Compile<'_>) -> Vec<String> {
    let mut args = [
        // Up to LLVM 19 it means nothing for the host.
        "--start-no-unused-arguments",
        "-fuse-cuid=none",
        "--end-no-unused-arguments",
        "-Xclang",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("-cuid={}", compile.unit));
    args
}
