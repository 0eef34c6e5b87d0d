//! Options of clang for every pass over a source of HIP or CUDA: its language, and where the vendor's headers and
//! libraries are.

use crate::compile::clang::{Compile, Part};
use crate::installed::rocm::RocmTree;
use crate::process::command::Command;
use std::ffi::OsString;
use std::path::Path;

/// Launches as CUDA 9.2 and later have them: without a toolkit clang takes those of before.
const NEW_LAUNCHES: [&str; 2] = ["-Xclang", "-target-sdk-version=9.2"];

/// Adds the places of ROCm's headers and libraries: the same for every pass over a source.
pub(crate) fn of_tree(
    command: Command,
    rocm: Option<RocmTree<'_>>,
    compile: &Compile<'_>,
) -> Command {
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

/// Adds the place of CUDA's toolkit, or says that there is none.
pub(crate) fn toolkit(command: Command, cuda: Option<&Path>, compile: &Compile<'_>) -> Command {
    // Toolkits are newer than the newest that a release of clang knows.
    let command = command.arg("-Wno-unknown-cuda-version");
    let mut flags = compile.flags.iter();
    match cuda {
        Some(_) => root(command, "--cuda-path=", cuda),
        None if flags.any(|flag| flag.starts_with("--cuda-path")) => command,
        None => command.args(NEW_LAUNCHES),
    }
}

/// Names the language of the source.
pub(crate) fn written_in(command: Command, language: &str, part: Part<'_>) -> Command {
    match part {
        // What has a `-x` that is not for C or C++ distcc keeps here.
        Part::Compile(_) => command.arg(format!("--language={language}")),
        Part::Whole | Part::Preprocess(_) => command.args(["-x", language]),
    }
}

pub(crate) fn root(command: Command, option: &str, root: Option<&Path>) -> Command {
    let Some(root) = root else { return command };
    let mut arg = OsString::from(option);
    arg.push(root);
    command.arg(arg)
}
