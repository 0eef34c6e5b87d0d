//! Words in `targets`, and in variables of other build systems, that stand for several targets; generic processors.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::package::{OUT, Package, text};

fn package(language: &str, extension: &str, targets: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put(
        &format!("kernels/k.{extension}"),
        "#include <offload/gpu.h>\n__global__ void k(int *x) { *x = 1; }\n",
    );
    let sources = format!("sources = [\"kernels/*.{extension}\"]\n");
    package.declare(&format!(
        "language = \"{language}\"\n{sources}targets = [{targets}]\n"
    ));
    Some(package)
}

fn program(package: &Package, path: &str, prints: &str) {
    let text = format!("#!/bin/sh\ncat <<'END'\n{prints}\nEND\n");
    package.put(path, &text);
}

/// The processors for which the plan compiles.
fn processors(script: &mut Command) -> Vec<String> {
    let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    let words = plan.split_whitespace();
    let option = |word: &str| {
        let word = word.strip_prefix("--offload-arch=");
        word.map(str::to_owned)
    };
    let found: BTreeSet<String> = words.filter_map(option).collect();
    assert!(!found.is_empty(), "{plan}");
    found.into_iter().collect()
}

#[test]
fn compiles_for_all_processors_that_clang_and_ptxas_know() {
    let Some(package) = package("cuda", "cu", "\"sm_80\"") else {
        return;
    };
    // sm_199 is unknown to clang, sm_70 to this ptxas.
    let help = "Usage\n\n--old\n    'sm_70'\n\n--gpu-name <name>\n    'compute_80','sm_75','sm_80','sm_86','sm_90',\n    \
                'sm_90a','sm_199'.\n\n--help";
    program(&package, "cuda/bin/ptxas", help);
    let script = |archs: &str| {
        let mut script = package.script();
        script.env("CUDA_PATH", package.at("cuda"));
        script.env("CUDAARCHS", archs);
        script
    };
    assert_eq!(
        processors(&mut script("all-major")),
        ["sm_75", "sm_80", "sm_90"]
    );
    let all = ["sm_75", "sm_80", "sm_86", "sm_90"];
    assert_eq!(processors(&mut script("all")), all);
    assert_eq!(
        processors(&mut script("all;90a")),
        [&all[..], &["sm_90a"]].concat()
    );
    // PTX of the newest.
    let mut script = script("all-major");
    let plan = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    assert!(plan.contains("offload/kernels/compute_90/image"), "{plan}");
    assert!(!plan.contains("compute_80"), "{plan}");
    // nvcc says it itself.
    program(
        &package,
        "cuda/bin/nvcc",
        "sm_75\nsm_86\nsm_100\nrelease 13.5",
    );
    program(&package, "cuda/bin/nvlink", "");
    let help = "\n--gpu-name <name>\n    'sm_75','sm_86','sm_100'.\n\n--help";
    program(&package, "cuda/bin/ptxas", help);
    script.env("OFFLOAD_COMPILER", "nvcc");
    let plan = script.output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    for target in ["sm_75", "sm_100", "compute_100"] {
        let folder = format!("/offload/kernels/{target}/");
        assert!(plan.contains(&folder), "{plan}");
    }
    assert!(!plan.contains("sm_86"), "{plan}");
    // None can be asked.
    script.env("CUDA_PATH", "").env("PATH", "");
    let error = package.fails(&mut script);
    let start = "CUDAARCHS: `all`: no compiler lists its processors";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn takes_variables_of_other_build_systems_as_these_do() {
    let Some(ptx) = package("cuda", "cu", "\"compute_80\"") else {
        return;
    };
    let mut script = ptx.script();
    let output = script
        .env("OFFLOAD_DRY_RUN", "1")
        .env("CUDA_COMPUTE_CAP", "90")
        .output()
        .unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    assert!(plan.contains("offload/kernels/compute_90/image"), "{plan}");
    let Some(amd) = package("hip", "hip", "\"gfx90a\", \"gfx1100\"") else {
        return;
    };
    let all = processors(amd.script().env("GPU_TARGETS", "all"));
    assert_eq!(all, ["gfx1100", "gfx90a"]);
    // Variables of our own come first, also if only one of them holds for this target of Cargo.
    for name in [
        "OFFLOAD_TARGETS",
        "OFFLOAD_TARGETS_x86_64_unknown_linux_gnu",
    ] {
        let mut script = amd.script();
        script.env("GPU_TARGETS", "gfx906").env(name, "gfx942");
        assert_eq!(processors(&mut script), ["gfx942"], "{name}");
    }
    // A launcher in front of a compiler.
    let mut script = amd.script();
    let clang = amd.at("llvm/bin/clang");
    script
        .env_remove("OFFLOAD_COMPILER")
        .env("HIPCXX", format!("distcc {}", clang.display()))
        .env("OFFLOAD_LAUNCHER", "none")
        .env("OFFLOAD_DRY_RUN", "1");
    let plan = String::from_utf8(script.output().unwrap().stderr).unwrap();
    assert!(
        plan.contains("--offload-arch=gfx90a") && !plan.contains("distcc"),
        "{plan}"
    );
}

#[test]
fn makes_images_for_generic_processors() {
    let Some(package) = package("hip", "hip", "\"gfx11-generic\", \"gfx9-generic:xnack-\"") else {
        return;
    };
    let newer = support::tool("llvm22", &["clang"]);
    let older = Path::new("/usr/lib/llvm-19/bin/clang").to_owned();
    for clang in [Some(older), newer].into_iter().flatten() {
        for host in ["false", "true"] {
            let mut script = package.script();
            script
                .env("OFFLOAD_COMPILER", &clang)
                .env("OFFLOAD_HOST", host);
            let told = text(&script.output().unwrap());
            for name in ["gfx11_generic", "gfx9_generic_xnack_off"] {
                let cfg = format!("cargo::rustc-cfg=offload_target_{name}\n");
                assert!(told.contains(&cfg), "{told}");
            }
            let image = package.at(OUT).join("offload/kernels/gfx11-generic/image");
            let image = fs::read(image).unwrap();
            // Version 6 of code objects: `ELFABIVERSION_AMDGPU_HSA_V6`.
            assert_eq!(image[8], 4);
        }
    }
    // One that the user chooses.
    let mut script = package.script();
    script
        .env("OFFLOAD_FLAGS", "-mcode-object-version=5")
        .env("OFFLOAD_DRY_RUN", "1");
    let plan = script.output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    assert!(!plan.contains("-mcode-object-version=6"), "{plan}");
}
