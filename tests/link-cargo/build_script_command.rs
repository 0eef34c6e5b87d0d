//! `cargo offload build-script`: a package whose build script has no dependencies.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support;
use crate::support::package::{CPU, Package, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cargo-offload");

/// Returns the command in place of a build script, with the variables that Cargo sets for it.
fn in_place_of(script: &Command) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("build-script").env_clear();
    for (name, value) in script.get_envs() {
        command.env(name, value.unwrap());
    }
    command.current_dir(script.get_current_dir().unwrap());
    command
}

/// Returns what a build script wrote: images, libraries and generated files, but not what it remembers of inputs.
fn written(package: &Package) -> Vec<(String, Vec<u8>)> {
    let mut files = package.files();
    files.retain(|path| [".a", ".o", ".rs"].iter().any(|end| path.ends_with(end)));
    let read = |path: String| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn does_what_the_build_dependency_does() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let told = package.builds();
    let files = written(&package);
    assert!(files.len() > 2 && package.has_library(), "{files:?}");
    let compiles = package.starts();
    fs::remove_dir_all(package.at("target")).unwrap();
    let mut command = in_place_of(&package.script());
    let output = command.output().unwrap();
    let program = fs::canonicalize(PROGRAM).unwrap();
    let watched = format!("cargo::rerun-if-changed={}\n", program.display());
    assert_eq!(text(&output), format!("{told}{watched}"));
    assert_eq!(written(&package), files);
    assert_eq!(package.starts(), 2 * compiles);
    // Nothing changed, so nothing is compiled again.
    text(&command.output().unwrap());
    assert_eq!(package.starts(), 2 * compiles);
}

#[test]
fn fails_as_the_build_dependency_does() {
    let Some(package) = Package::new("sources = [\"kernels/*.c\"]\ntargets = [\"gfx0\"]\n") else {
        return;
    };
    let error = package.fails(&mut package.script());
    assert!(error.contains("`gfx0`"), "{error}");
    assert_eq!(package.fails(&mut in_place_of(&package.script())), error);
    package.put("kernels/k.c", "#error no\n");
    let mut command = in_place_of(&package.script());
    let plan = command.env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu");
    let dry = package.fails(plan.env("OFFLOAD_DRY_RUN", package.at("plans")));
    assert!(dry.starts_with("OFFLOAD_DRY_RUN is set"), "{dry}");
    // Outside a build script.
    let output = Command::new(PROGRAM)
        .arg("build-script")
        .env_remove("CARGO_MANIFEST_DIR")
        .output();
    let output: Output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with(
            "Error: `CARGO_MANIFEST_DIR` is not set [OFF500]\nhint: Cargo sets it for build scripts"
        ),
        "{error}"
    );
}

/// Builds a package by the build script of `docs/build-scripts.md`.
#[test]
fn builds_a_package_without_a_build_dependency() {
    if support::tool("llvm22", &["clang"]).is_none() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/build-scripts.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## Without a build-dependency\n").unwrap();
    let (_, script) = section.split_once("```rust\n").unwrap();
    let (script, _) = script.split_once("```\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("build.rs", script);
    put(
        "Cargo.toml",
        "[package]\nname = \"pack\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
         [package.metadata.offload]\nlanguage = \"hip\"\nsources = [\"k.hip\"]\ntargets = [\"gfx90a\"]\n",
    );
    put(
        "lib.rs",
        "include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\"));\n",
    );
    put(
        "k.hip",
        "#include <offload/gpu.h>\nextern \"C\" __global__ void k(float *x) { *x = 1; }\n",
    );
    let build = |tools: &Path| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [tools.to_owned()].into_iter();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--offline", "--verbose"])
            .current_dir(folder.path())
            .env("PATH", path.unwrap())
            .env_remove("CARGO_TARGET_DIR");
        let output = cargo.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), said)
    };
    let tools = Path::new(PROGRAM).parent().unwrap();
    let (is_built, said) = build(tools);
    assert!(is_built && said.contains("Compiling pack"), "{said}");
    let (is_built, said) = build(tools);
    assert!(is_built && said.contains("Fresh pack"), "{said}");
}
