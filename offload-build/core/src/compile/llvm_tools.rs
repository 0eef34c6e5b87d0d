//! Command lines of LLVM's own tools for kernels in Rust on NVIDIA GPUs, where no clang reads the bitcode of rustc. They make the PTX
//! that clang of the same release makes, except for the order of functions and labels in crates of many functions:
//! `tests/build-plan/rust_kernels_without_clang.rs`.

use crate::compile::ptxas;
use crate::declare::module::Target;
use crate::files;
use crate::installed::llvm_tools::LlvmTools;
use crate::process::command::Command;
use std::ffi::OsString;
use std::path::Path;

/// Copies bitcode.
#[must_use]
pub fn copy(tools: &LlvmTools, (input, output): (&Path, &Path)) -> Command {
    Command::new(&tools.llvm_link)
        .arg(input)
        .arg("-o")
        .arg(output)
}

/// Links the LLVM IR `functions` into the bitcode of a crate of kernels, inlines it, and limits the work-items of kernels as the file
/// `attributes` says: [`crate::compile::rust::join`].
#[must_use]
pub fn join(
    tools: &LlvmTools,
    target: &Target,
    [input, functions, attributes]: [&Path; 3],
    output: &Path,
) -> [Command; 2] {
    let linked = output.with_extension("linked.bc");
    // Our text has no data layout, which differs between releases, so `llvm-link` would warn. The first file keeps its linkage:
    // only the functions of the second become internal.
    let link = Command::new(&tools.llvm_link)
        .args(["--suppress-warnings", "--only-needed", "--internalize"])
        .args([input, functions])
        .arg("-o")
        .arg(&linked);
    let mut file = OsString::from("--forceattrs-csv-path=");
    file.push(attributes);
    let (processor, level) = (target.id.to_string(), &target.own.opt_level);
    let optimize = optimize(tools, &processor, "forceattrs,", level).arg(file);
    [
        link,
        optimize.arg(&linked).arg("-o").arg(files::part(output)),
    ]
}

/// Makes PTX of the bitcode `module`, as clang does: it is optimized once more, with what was linked into it.
#[must_use]
pub fn ptx(
    tools: &LlvmTools,
    processor: &str,
    opt_level: &str,
    (module, output): (&Path, &Path),
) -> [Command; 2] {
    let optimized = output.with_extension("optimized.bc");
    let level = match at_least_1(opt_level) {
        "s" | "z" => "2",
        level => level,
    };
    let optimize = optimize(tools, processor, "", opt_level);
    let generate = Command::new(&tools.llc)
        .arg(format!("-O{level}"))
        .arg(format!("-mcpu={processor}"))
        .arg(format!("-mattr=+{}", ptxas::ptx_version(processor)))
        .arg(&optimized)
        .arg("-o")
        .arg(output);
    [optimize.arg(module).arg("-o").arg(&optimized), generate]
}

/// Starts a command that runs the passes of `clang -O<level>` after others.
fn optimize(tools: &LlvmTools, processor: &str, before: &str, opt_level: &str) -> Command {
    let level = at_least_1(opt_level);
    Command::new(&tools.opt)
        .arg(format!("-mcpu={processor}"))
        .arg(format!("--passes={before}default<O{level}>"))
}

/// Returns the level of passes: without any, nothing is inlined and no limit is read.
fn at_least_1(level: &str) -> &str {
    match level {
        "0" => "1",
        level => level,
    }
}
