//! Command lines of lld for kernels in Rust on AMD GPUs, where no clang reads the bitcode of rustc. They make the images that clang
//! of the same release makes, except for numbers of registers in crates of many functions, which LTO has in another
//! order: `tests/build-plan/rust_kernels_without_clang.rs`.
//!
//! Links with `--lto-emit-llvm` stand for clang's compiles of bitcode to bitcode. Their passes are named, because those of
//! LTO are others than those of `clang -O3`, and do not read limits of work-items.

use crate::declare::module::Target;
use crate::files;
use crate::installed::lld::Lld;
use crate::process::command::Command;
use std::ffi::OsString;
use std::path::Path;

/// Copies bitcode.
#[must_use]
pub fn copy(lld: &Lld, target: &Target, (input, output): (&Path, &Path)) -> Command {
    start(lld, target)
        .args(["--lto-emit-llvm", "--lto-newpm-passes=verify"])
        .arg(input)
        .arg("-o")
        .arg(output)
}

/// Links the bitcode `functions` into that of a crate of kernels, inlines it, and limits the work-items of kernels as the file
/// `attributes` says: [`crate::compile::rust::join`].
#[must_use]
pub fn join(
    lld: &Lld,
    target: &Target,
    input: &Path,
    (functions, attributes): (&[&Path], &Path),
    output: &Path,
) -> Command {
    let level = match target.own.opt_level.as_str() {
        "0" => "1",
        level => level,
    };
    let mut file = OsString::from("-plugin-opt=-forceattrs-csv-path=");
    file.push(attributes);
    start(lld, target)
        .arg(format!("-plugin-opt=O{}", number(level)))
        .arg("--lto-emit-llvm")
        .arg(format!("--lto-newpm-passes=forceattrs,default<O{level}>"))
        .arg(file)
        .arg(input)
        .args(functions.iter().copied())
        .arg("-o")
        .arg(files::part(output))
}

/// Links an image, as clang starts lld with `-flto`.
#[must_use]
pub fn link<'a>(
    lld: &Lld,
    target: &Target,
    inputs: impl Iterator<Item = &'a Path>,
    output: &Path,
) -> Command {
    let level = number(&target.own.opt_level);
    start(lld, target)
        .arg(format!("-plugin-opt=O{level}"))
        .arg(format!("--lto-CGO{level}"))
        .arg("--no-undefined")
        .args(inputs)
        .arg("-o")
        .arg(output)
}

/// Starts a link for a target: AMD's images are shared objects.
fn start(lld: &Lld, target: &Target) -> Command {
    let features = target.id.features();
    let features = features.map(|(name, is_on)| format!("{}{name}", if is_on { '+' } else { '-' }));
    let features: Vec<String> = features.collect();
    let features = match features.as_slice() {
        [] => None,
        features => Some(format!("-plugin-opt=-mattr={}", features.join(","))),
    };
    lld.command()
        .arg("-shared")
        .arg(format!("-plugin-opt=mcpu={}", target.id.processor()))
        .args(features)
}

/// Returns a level as lld takes it: a number. Levels for size are in the functions of the bitcode, too.
fn number(level: &str) -> &str {
    match level {
        "s" | "z" => "2",
        level => level,
    }
}
