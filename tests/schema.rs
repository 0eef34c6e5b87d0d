//! What keys of the manifest mean together: missing tools, variables and methods of the build script, patterns.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod support;

use std::fs;
use support::cuda_package::{CUDA, OUT, declare, package, targets};
use support::package::{Package, text};

/// What a build without some tools comes to.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// With this as the first line.
    Error(String),
    /// With images for these, and a warning for the others.
    Built(Vec<&'static str>),
    /// A crate without images, and a warning.
    Stub,
}

fn outcome(package: &Package, names: &[&str], missing: &str, compiler: &str) -> Outcome {
    let mut script = package.script();
    script
        .env("CUDA_PATH", "/nonexistent")
        .env("OFFLOAD_COMPILER", package.at(compiler));
    // Variables are over the manifest; none is as if the key were not there.
    let output = script.env("OFFLOAD_MISSING", missing).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = |level: &str| {
        let start = format!("cargo::{level}=");
        let line = told.lines().find_map(|line| line.strip_prefix(&start));
        line.map(|line| line.replace(&format!("{}/", package.folder.path().display()), ""))
    };
    if !output.status.success() {
        return Outcome::Error(first("error").unwrap_or_default());
    }
    let built: Vec<&str> = ["sm_80", "compute_80"]
        .into_iter()
        .filter(|name| told.contains(&format!("cargo::rustc-cfg=offload_target_{name}\n")))
        .collect();
    assert_eq!(first("warning").is_some(), built != names, "{told}");
    let is_stub = told.contains("cargo::rustc-cfg=offload_stub\n");
    assert_eq!(is_stub, built.is_empty(), "{told}");
    match is_stub {
        true => Outcome::Stub,
        false => Outcome::Built(built),
    }
}

#[test]
fn does_without_what_is_missing_as_the_manifest_says() {
    let Some(package) = package("") else { return };
    let one = "module `kernels`: no image for `sm_80`: `ptxas` not found (searched: /nonexistent/bin, \
               /usr/local/cuda/bin, PATH)";
    let compiler = "`compiler`: `nowhere/clang` is not an executable file";
    let error = |text: &str| Outcome::Error(text.to_owned());
    let both = ["sm_80", "compute_80"];
    // No compiler; the tool of one target; the tools of all.
    for (compiler, names, expected) in [
        (
            "nowhere/clang",
            &both[..],
            [
                error(compiler),
                error(compiler),
                error(compiler),
                Outcome::Stub,
            ],
        ),
        (
            "llvm/bin/clang",
            &both,
            [
                Outcome::Built(vec!["compute_80"]),
                Outcome::Built(vec!["compute_80"]),
                error(one),
                Outcome::Built(vec!["compute_80"]),
            ],
        ),
        (
            "llvm/bin/clang",
            &both[..1],
            [error(one), error(one), error(one), Outcome::Stub],
        ),
        (
            "llvm/bin/clang",
            &both[1..],
            std::array::from_fn(|_| Outcome::Built(vec!["compute_80"])),
        ),
    ] {
        declare(&package, &format!("{CUDA}{}", targets(names)));
        for (missing, expected) in ["", "skip", "error", "stub"].iter().zip(expected) {
            let found = outcome(&package, names, missing, compiler);
            assert_eq!(found, expected, "{names:?} {missing}");
        }
    }
}

#[test]
fn warns_of_patterns_that_leave_out_nothing() {
    let target = "[package.metadata.offload.target.compute_80]\nexclude = [\"kernels/*.hip\"]\n";
    let keys = format!(
        "{CUDA}{}exclude = [\"kernels/no*.cu\", \"./kernels/more.cu\"]\n{target}",
        targets(&["compute_80"])
    );
    let Some(package) = package(&keys) else {
        return;
    };
    package.put("kernels/more.cu", "error");
    let told = package.builds();
    let warnings: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("cargo::warning"))
        .collect();
    assert_eq!(
        warnings,
        [
            "cargo::warning=Cargo.toml:9:1: `exclude`: `kernels/no*.cu` leaves out no source",
            "cargo::warning=Cargo.toml:11:1: `exclude`: `kernels/*.hip` leaves out no source",
        ]
    );
}

#[test]
fn takes_other_build_systems_variables_for_the_language_that_counts() {
    let Some(package) = package("") else { return };
    declare(
        &package,
        &format!(
            "{}{}",
            CUDA.replace("\"cuda\"", "\"hip\""),
            targets(&["gfx90a"])
        ),
    );
    let mut script = package.script();
    script
        .env("OFFLOAD_LANGUAGE", "cuda")
        .env("CUDAARCHS", "80-virtual")
        .env("GPU_TARGETS", "gfx942");
    let told = text(&script.output().unwrap());
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_compute_80\n"),
        "{told}"
    );
    assert!(fs::read(package.at(OUT).join("offload/kernels/images")).is_ok());
}

#[test]
fn names_the_line_of_keys_without_effect_and_of_features_that_are_none() {
    let Some(package) = package("") else { return };
    fs::write(package.at("k.hsaco"), "").unwrap();
    let keys = "language = \"prebuilt\"\nsources = [\"k.hsaco\"]\ntargets = [\"gfx90a\"]\n";
    let fails = |more: &str| {
        declare(&package, &format!("{keys}{more}\n"));
        package.fails(&mut package.script())
    };
    assert_eq!(
        fails("include = [\".\"]"),
        "Cargo.toml:8:1: `include` has no effect on modules of `prebuilt`"
    );
    assert_eq!(
        fails("feature = \"gpu\"\n[features]\ngpus = []"),
        "Cargo.toml:8:1: the package has no feature `gpu`; did you mean `gpus`?"
    );
}
