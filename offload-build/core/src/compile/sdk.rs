//! Options of clang for every pass over a source of HIP or CUDA: its language, and where the vendor's headers and
//! libraries are.

use crate::compile::clang::{Compile, Part};
use crate::installed::rocm::RocmTree;
use crate::installed::sdk::{uses_headers, uses_libraries};
use crate::process::command::Command;
use std::ffi::OsString;
use std::path::Path;

/// Launches as CUDA 9.2 and later have them: without a toolkit clang takes those of before.
const NEW_LAUNCHES: [&str; 2] = ["-Xclang", "-target-sdk-version=9.2"];

const WAVEFRONT_SIZE: &str = "__AMDGCN_WAVEFRONT_SIZE";

/// The value of `__AMDGCN_WAVEFRONT_SIZE` in host code, as clang 16 to 21 define it.
pub(super) const HOST_WAVEFRONT: u32 = 64;

/// Returns the number of threads in a wavefront of `processor`: 64 before gfx10.
pub(super) fn wavefront(processor: &str, flags: &[String]) -> u32 {
    let name = processor
        .split_once(':')
        .map_or(processor, |(name, _)| name);
    let number = name.trim_start_matches("gfx");
    // The last two digits are minor number and stepping; in a generic name (`gfx9-4-generic`) the major number ends before a dash.
    let major = match number.split_once('-') {
        Some((major, _)) => major,
        None => number
            .split_at_checked(number.len().saturating_sub(2))
            .map_or("", |(major, _)| major),
    };
    let is_wide = flags.iter().any(|flag| flag == "-mwavefrontsize64");
    match major.parse::<u32>() {
        Ok(major) if major >= 10 && !is_wide => 32,
        _ => 64,
    }
}

/// Adds the places of ROCm's headers and libraries: the same for every pass over a source.
///
/// `wavefront` is the number of threads in a wavefront, which headers before ROCm 7 read from a macro that clang 22 does not define.
pub(super) fn of_tree(
    command: Command,
    rocm: Option<RocmTree<'_>>,
    wavefront: u32,
    compile: &Compile<'_>,
) -> Command {
    let Some(rocm) = rocm else { return command };
    let mut command = root(command, "--rocm-path=", Some(rocm.root));
    let libraries = rocm.device_libraries;
    if uses_libraries(compile.flags) {
        command = root(command, "--rocm-device-lib-path=", libraries);
    }
    // clang searches that folder last, after the system's own, which may have headers of another ROCm.
    let is_defined = || {
        let option = format!("-D{WAVEFRONT_SIZE}");
        let mut flags = compile.flags.iter();
        compile.define.contains(WAVEFRONT_SIZE) || flags.any(|flag| flag.starts_with(&option))
    };
    let is_source = !matches!(compile.part, Part::Compile(_));
    if rocm.lacks_wavefront_size && is_source && uses_headers(compile.flags) && !is_defined() {
        command = command.arg(format!("-D{WAVEFRONT_SIZE}={wavefront}"));
    }
    if rocm.root != Path::new("/usr") && uses_headers(compile.flags) {
        command = command.arg("-isystem").arg(rocm.root.join("include"));
    }
    command
}

/// Adds the place of CUDA's toolkit, or says that there is none.
pub(super) fn toolkit(command: Command, cuda: Option<&Path>, compile: &Compile<'_>) -> Command {
    // Toolkits are newer than the newest that a release of clang knows.
    let command = command.arg("-Wno-unknown-cuda-version");
    // A source that does without may be beside others that use it. clang reads no release of a toolkit for it, named or not.
    if !uses_headers(compile.flags) && !uses_libraries(compile.flags) {
        return command.args(NEW_LAUNCHES);
    }
    let mut flags = compile.flags.iter();
    match cuda {
        Some(_) => root(command, "--cuda-path=", cuda),
        None if flags.any(|flag| flag.starts_with("--cuda-path")) => command,
        None => command.args(NEW_LAUNCHES),
    }
}

/// Header with what nvcc has in front of the device code of every source, and clang does not: kernels call `assert` without a header,
/// and the toolkit's headers call functions of nvcc's code generator. (`printf`, `memcpy` and others come with clang's
/// own header for CUDA.) Both passes see host functions, so it includes [`OF_HOST_CODE`].
pub(super) const OF_DEVICE_CODE: &str = "offload/toolkit/nvcc.h";

/// The same in front of host code: it calls `min` and `max`, which clang's own header has for device code alone.
pub(super) const OF_HOST_CODE: &str = "offload/toolkit/nvcc_host.h";

/// Includes one of them.
pub(super) fn included_by_nvcc(command: Command, header: &str, compile: &Compile<'_>) -> Command {
    match compile.part {
        Part::Whole | Part::Preprocess(_) if uses_headers(compile.flags) => {
            command.args(["-include", header])
        }
        _ => command,
    }
}

/// Names the language of the source.
pub(super) fn written_in(command: Command, language: &str, part: Part<'_>) -> Command {
    match part {
        // What has a `-x` that is not for C or C++ distcc keeps here.
        Part::Compile(_) => command.arg(format!("--language={language}")),
        Part::Whole | Part::Preprocess(_) => command.args(["-x", language]),
    }
}

pub(super) fn root(command: Command, option: &str, root: Option<&Path>) -> Command {
    let Some(root) = root else { return command };
    let mut arg = OsString::from(option);
    arg.push(root);
    command.arg(arg)
}
