//! clang's command lines for the host's side of HIP and CUDA: host code that launches kernels, and the offload entries
//! of these. What registers the images joins later.

use crate::compile::clang::{Clang, Compile};
use crate::compile::sdk;
use crate::installed::rocm::RocmTree;
use crate::process::command::Command;
use std::path::Path;

/// The first release that was seen to name units of the host as the driver's option says (21 and 22 do, 16 and 19 do not).
const UNIT: u32 = 21;

/// The object that registers the images of a host object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRegistration<'a> {
    /// Another object, or the last link: this one has offload entries.
    Other,
    /// The object itself: it contains the images in this file, a fat binary or a bundle.
    Itself(&'a Path),
}

/// HIP's; `rocm` is where ROCm's headers are, unless the source does without.
#[must_use]
pub fn hip_host(
    clang: &Clang<'_>,
    rocm: Option<RocmTree<'_>>,
    registrar: HostRegistration<'_>,
    compile: &Compile<'_>,
) -> Command {
    let command = start(clang, "hip", registrar, compile);
    clang.finish(
        sdk::of_tree(command, rocm, sdk::HOST_WAVEFRONT, compile),
        compile,
    )
}

/// CUDA's; `cuda` is the root of the toolkit, unless the source does without.
#[must_use]
pub fn cuda_host(
    clang: &Clang<'_>,
    cuda: Option<&Path>,
    registrar: HostRegistration<'_>,
    compile: &Compile<'_>,
) -> Command {
    let command = start(clang, "cuda", registrar, compile);
    let command = sdk::toolkit(command, cuda, compile);
    let command = sdk::included_by_nvcc(command, sdk::OF_HOST_CODE, compile);
    clang.finish(command, compile)
}

fn start(
    clang: &Clang<'_>,
    language: &str,
    registrar: HostRegistration<'_>,
    compile: &Compile<'_>,
) -> Command {
    let mut command =
        sdk::written_in(clang.start(), language, compile.part).arg("--offload-host-only");
    command = match registrar {
        HostRegistration::Other => command.args(["--offload-new-driver", "-fgpu-rdc"]),
        HostRegistration::Itself(images) => command
            .args(["-Xclang", "-fcuda-include-gpubinary", "-Xclang"])
            .arg(images),
    };
    if clang.debug {
        command = command.arg("-g");
    }
    command.args(clang.host_options).args(unit(clang, compile))
}

/// Names what is local to the source: both sides must call it the same, whatever else differs on their command lines.
fn unit(clang: &Clang<'_>, compile: &Compile<'_>) -> Vec<String> {
    let name = format!("-cuid={}", compile.unit);
    if clang.release.is_some_and(|release| release >= UNIT) {
        return vec![name];
    }
    // For the host the driver's option means nothing; sccache does not know the front end's, and keeps nothing.
    let unused = ["--start-no-unused-arguments", "-fuse-cuid=none"];
    let rest = ["--end-no-unused-arguments", "-Xclang", &name];
    let args = unused.into_iter().chain(rest);
    args.map(str::to_owned).collect()
}
