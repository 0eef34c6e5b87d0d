//! Command lines that make bitcode of a crate of kernels: a sysroot for its target, the crate by Cargo, and functions that
//! Rust does not have.
//!
//! The sysroot is `core` without code of its own: all of it is generated where it is used, for the processor there. So one
//! serves all processors of a family.

use crate::compile::device::target_option;
use crate::compile::ptxas;
use crate::declare::module::{KernelCrate, Target};
use crate::files;
use crate::installed::rustc::Rustc;
use crate::process::command::Command;
use offload_formats_core::names::Triple;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Text of the crate that stands for `compiler_builtins`, whose functions LLVM's back ends for GPUs do not call.
pub const COMPILER_BUILTINS: &str = include_str!("../../rust/compiler_builtins.rs");

/// Text of the functions of a target that Rust does not have, in LLVM IR.
pub fn functions(triple: &Triple) -> &'static str {
    match triple.is_amdgpu() {
        true => include_str!("../../rust/amdgpu.ll"),
        false => include_str!("../../rust/nvptx.ll"),
    }
}

/// The same for AMD's GPUs as bitcode, for linkers that read no text.
pub const AMD_FUNCTIONS: &[u8] = include_bytes!("../../rust/amdgpu.bc");

/// A sysroot for one target.
#[derive(Clone, Debug)]
pub struct Sysroot<'a> {
    pub rustc: &'a Rustc,
    pub triple: &'a Triple,
    pub folder: PathBuf,
}

impl Sysroot<'_> {
    /// Returns the folder of its crates.
    fn crates(&self) -> PathBuf {
        let folder = self.folder.join("lib/rustlib").join(self.triple.as_str());
        folder.join("lib")
    }

    /// Returns the list of sources that is written with a crate of the sysroot, and stands for the crate in keys: `core` has 40
    /// megabytes.
    pub fn list(&self, name: &str) -> PathBuf {
        self.crates().join(format!("{name}.d"))
    }

    /// Returns the source of a crate of the sysroot.
    pub fn source(&self, name: &str) -> PathBuf {
        match name {
            "core" => self.rustc.library.join("core/src/lib.rs"),
            _ => self.folder.join(format!("{name}.rs")),
        }
    }

    /// Makes a crate of the sysroot, one of `core` and `compiler_builtins`.
    #[must_use]
    pub fn compile(&self, name: &str) -> Command {
        // Without code of its own, the processor matters only to what is asked of it.
        let processor = match self.triple.is_amdgpu() {
            true => "gfx90a",
            false => "sm_80",
        };
        let mut list = OsString::from("--emit=link,dep-info=");
        list.push(files::part(&self.list(name)));
        let command = Command::new(&self.rustc.program)
            .variable("RUSTC_BOOTSTRAP", "1")
            .without_variables(&self.rustc.removed)
            // rustc hashes its folder into the crate. From this one, all packages that share a sysroot make the same crate.
            .starting_in(self.crates())
            .args([
                "--crate-name",
                name,
                "--crate-type",
                "rlib",
                "--edition",
                "2024",
            ])
            .args(["--target", self.triple.as_str()])
            .arg(format!("-Ctarget-cpu={processor}"))
            .args(["-Copt-level=3", "-Ccodegen-units=1", "-Clinker-plugin-lto"])
            .args(["-Cmetadata=offload", "-Cextra-filename=-offload"])
            .args(shared_options(self.rustc))
            .args(["-Zforce-unstable-if-unmarked", "--cap-lints", "allow"]);
        match name {
            "core" => command.arg("-Zcross-crate-inline-threshold=always"),
            _ => command.arg("--sysroot").arg(&self.folder),
        }
        .arg(list)
        .arg("--out-dir")
        .arg(self.crates())
        .arg(self.source(name))
    }
}

/// Returns options of everything that is compiled for a GPU.
fn shared_options(rustc: &Rustc) -> Vec<&'static str> {
    let mut options = vec!["-Zunstable-options", "-Cpanic=immediate-abort"];
    if rustc.threads_jumps {
        options.push("-Zmir-enable-passes=-JumpThreading");
    }
    options
}

/// Removes what Cargo made of a crate of kernels in `folder`, but not of what the crate depends on.
///
/// Cargo keeps a crate for each set of features, profile and dependencies, and starts no rustc for one that it has. The file of
/// [`kernels`] would then be that of another set.
#[must_use]
pub fn forget(sysroot: &Sysroot<'_>, kernels: &KernelCrate, folder: &Path) -> Command {
    let rustc = sysroot.rustc;
    cargo(rustc, &[])
        .args(["clean", "--quiet", "--release", "--package"])
        .arg(&kernels.package)
        .arg("--manifest-path")
        .arg(kernels.manifest())
        .args(in_folder(folder))
        .arg(format!("--target={}", sysroot.triple))
        .args(&rustc.outer.options)
}

/// Starts a command of Cargo, which calls rustc with `flags` for what is not of the host, and without what Cargo's settings add for
/// hosts: wrappers and `rustflags`.
fn cargo(rustc: &Rustc, flags: &[String]) -> Command {
    // Errors show the command, in which spaces are easier to read.
    let (name, separator) = match flags.iter().any(|flag| flag.contains(char::is_whitespace)) {
        true => ("CARGO_ENCODED_RUSTFLAGS", "\x1f"),
        false => ("RUSTFLAGS", " "),
    };
    let command = Command::new(&rustc.cargo);
    let command = match &rustc.outer.settings_folder {
        Some(folder) => command.starting_in(folder.clone()),
        None => command,
    };
    command
        .variable("RUSTC", &rustc.program)
        .variable("RUSTC_WRAPPER", "")
        .variable("RUSTC_WORKSPACE_WRAPPER", "")
        .variable(name, flags.join(separator))
        .without_variables(&rustc.removed)
        .linking_programs()
}

/// Returns the options by which Cargo builds in a folder, with nothing elsewhere: the outer Cargo holds a lock of its own
/// folders, also of `build.build-dir`.
fn in_folder(folder: &Path) -> [OsString; 4] {
    let path = quoted(&folder.to_string_lossy());
    [
        "--target-dir".into(),
        folder.into(),
        "--config".into(),
        format!("build.build-dir={path}").into(),
    ]
}

/// Compiles a crate of kernels and what it depends on, by Cargo, to the bitcode of all of it in the file `output`. Cargo
/// builds in `folder`.
#[must_use]
pub fn kernels(
    sysroot: &Sysroot<'_>,
    kernels: &KernelCrate,
    target: &Target,
    folder: &Path,
    output: &Path,
) -> Command {
    let (rustc, triple) = (sysroot.rustc, sysroot.triple);
    let mut flags = vec![
        format!("--sysroot={}", sysroot.folder.display()),
        format!("-Ctarget-cpu={}", target.id.processor()),
        // The library that Cargo asks for has bitcode. Otherwise rustc generates code, which the build does not use, of kernels that
        // lack the functions of `functions`; LLVM 22 fails at some of them.
        "-Clinker-plugin-lto".to_owned(),
        // An alias of a kernel for AMD GPUs has no descriptor, so that it cannot be launched.
        "-Zmerge-functions=disabled".to_owned(),
        // The profile may ask for it by package: `ptxas` refuses it in optimized code.
        "-Cdebuginfo=0".to_owned(),
    ];
    flags.extend(shared_options(rustc).into_iter().map(str::to_owned));
    flags.extend(["-Zcrate-attr=feature(abi_gpu_kernel)", "-Aunused_features"].map(str::to_owned));
    flags.extend(target.own.flags.iter().cloned());
    let level = match target.own.opt_level.as_str() {
        level @ ("s" | "z") => quoted(level),
        level => level.to_owned(),
    };
    let profile = [
        format!("opt-level={level}"),
        "lto=\"fat\"".to_owned(),
        "codegen-units=1".to_owned(),
        "incremental=false".to_owned(),
        "debug=false".to_owned(),
    ];
    let profile = profile.map(|setting| format!("profile.release.{setting}"));
    let features = match kernels.features.as_slice() {
        [] => None,
        features => Some(format!("--features={}", features.join(","))),
    };
    let mut emit = OsString::from("--emit=llvm-bc=");
    emit.push(output);
    cargo(rustc, &flags)
        .variable("RUSTC_BOOTSTRAP", "1")
        .args([
            "rustc",
            "--quiet",
            "--lib",
            "--crate-type=staticlib",
            "--release",
        ])
        .arg("--manifest-path")
        .arg(kernels.manifest())
        .args(in_folder(folder))
        .arg(format!("--target={triple}"))
        .args(&rustc.outer.options)
        .args((!kernels.has_default_features).then_some("--no-default-features"))
        .args(features)
        .args(
            profile
                .into_iter()
                .flat_map(|setting| ["--config".to_owned(), setting]),
        )
        .arg("--")
        .arg(emit)
}

/// Returns the file in which Cargo lists what it read for [`kernels`].
pub fn dependencies(kernels: &KernelCrate, triple: &Triple, folder: &Path) -> PathBuf {
    let folder = folder.join(triple.as_str()).join("release");
    folder.join(format!("lib{}.d", kernels.library))
}

/// Returns a text as a basic string of TOML.
pub fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|char| match char {
        '"' | '\\' => format!("\\{char}"),
        char if char.is_control() => format!("\\u{:04X}", u32::from(char)),
        char => char.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Links the functions in the bitcode `functions` into that of a crate of kernels, inlines them, and limits the work-items of kernels as
/// the file `attributes` says.
#[must_use]
pub fn join(
    clang: &Path,
    target: &Target,
    [input, functions, attributes]: [&Path; 3],
    output: &Path,
) -> Command {
    // Without optimization nothing is inlined, and the limits are not read.
    let level = match target.own.opt_level.as_str() {
        "0" => "1",
        level => level,
    };
    let processor = target.id.to_string();
    let command = Command::new(clang)
        .arg("--no-default-config")
        .arg(format!("--target={}", target.triple))
        .arg(target_option(&target.triple, &processor))
        .args(["-nogpulib", "-x", "ir", "-emit-llvm"])
        .arg(format!("-O{level}"));
    let command = match target.triple.is_nvptx() {
        true => command.args(ptxas::options(&processor)),
        false => command,
    };
    let mut file = OsString::from("-forceattrs-csv-path=");
    file.push(attributes);
    command
        .args(["-Xclang", "-mlink-builtin-bitcode", "-Xclang"])
        .arg(functions)
        .arg("-mllvm")
        .arg(file)
        .arg("-c")
        .arg(input)
        .arg("-o")
        .arg(files::part(output))
}
