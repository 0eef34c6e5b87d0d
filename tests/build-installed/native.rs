//! `native` among the targets: which programs are asked for the GPUs of this machine, and what their answers make.
//! They are scripts here, which print what the real ones were seen to print.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::package::{OUT, Package, text};

const HIP: &str =
    "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const KERNEL: &str = "#define __global__ __attribute__((global))\n#ifndef ADD\n#define ADD 1\n#endif\n\
    extern \"C\" __global__ void add(int *x) { *x += ADD; }\n";
const FAILS: &str = "echo \"Failed to 'dlopen' libcuda.so.1\" >&2; exit 1";
/// Without a driver it says so on standard output.
const SMI_FAILS: &str = "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9";

/// A package, and programs that find no GPU.
fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", KERNEL);
    package.put("kernels/k.cu", KERNEL);
    package.declare(keys);
    // It succeeds, and says nothing.
    program(&package, "llvm/bin/amdgpu-arch", ":");
    program(&package, "tools/rocm_agent_enumerator", "echo gfx000");
    program(&package, "llvm/bin/nvptx-arch", FAILS);
    program(&package, "tools/nvidia-smi", SMI_FAILS);
    Some(package)
}

/// One that notes how it is started.
fn program(package: &Package, path: &str, text: &str) {
    let log = package.at("asked");
    package.put(
        path,
        &format!(
            "#!/bin/sh\necho {path} \"$@\" >> '{}'\n{text}\n",
            log.display()
        ),
    );
}

fn build(package: &Package) -> Command {
    let mut script = package.script();
    script.env(
        "PATH",
        format!("{}:/usr/bin:/bin", package.at("tools").display()),
    );
    script
}

/// What was asked since the last call.
fn asked(package: &Package) -> Vec<String> {
    let log = fs::read_to_string(package.at("asked")).unwrap_or_default();
    let _ = fs::remove_file(package.at("asked"));
    log.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The targets for which there is an image, as Rust asks for them.
fn built(script: &mut Command) -> Vec<String> {
    let told = text(&script.output().unwrap());
    let names = told
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rustc-cfg=offload_target_"));
    let names: Vec<String> = names.map(str::to_owned).collect();
    for name in &names {
        assert!(
            told.contains(&format!(
                "cargo::rustc-check-cfg=cfg(offload_target_{name})\n"
            )),
            "{told}"
        );
    }
    names
}

#[test]
fn builds_for_the_gpus_of_this_machine() {
    let Some(package) = package(&format!("{HIP}targets = [\"native\"]\n")) else {
        return;
    };
    program(
        &package,
        "llvm/bin/amdgpu-arch",
        "echo gfx90a:sramecc+:xnack-; echo gfx1100; echo gfx90a:sramecc+:xnack-",
    );
    assert_eq!(
        built(&mut build(&package)),
        ["gfx90a_sramecc_on_xnack_off", "gfx1100"]
    );
    // A variable is for modules of any language, with `native` in it, too.
    assert_eq!(
        built(build(&package).env("OFFLOAD_TARGETS", "native;sm_80")),
        ["gfx90a_sramecc_on_xnack_off", "gfx1100"]
    );
    asked(&package);
    built(&mut build(&package));
    // The first that knows is enough, and nobody asks for another vendor's.
    assert_eq!(asked(&package), ["llvm/bin/amdgpu-arch"]);
    let image = package
        .at(OUT)
        .join("offload/kernels/gfx90a-sramecc+-xnack-/image");
    assert!(image.is_file());

    program(&package, "llvm/bin/amdgpu-arch", ":");
    program(
        &package,
        "tools/rocm_agent_enumerator",
        "echo gfx000; echo gfx942; echo gfx942",
    );
    assert_eq!(built(&mut build(&package)), ["gfx942"]);
    assert_eq!(
        asked(&package),
        ["llvm/bin/amdgpu-arch", "tools/rocm_agent_enumerator"]
    );
    // It lies in a ROCm tree that is not in PATH.
    fs::create_dir_all(package.at("rocm/bin")).unwrap();
    fs::rename(
        package.at("tools/rocm_agent_enumerator"),
        package.at("rocm/bin/rocm_agent_enumerator"),
    )
    .unwrap();
    assert_eq!(
        built(build(&package).env("ROCM_PATH", package.at("rocm"))),
        ["gfx942"]
    );
    asked(&package);

    // Beside others, which it may find again; with keys for it.
    program(
        &package,
        "llvm/bin/amdgpu-arch",
        "echo gfx942; echo gfx1100",
    );
    let tables = "[package.metadata.offload.target.native]\ndefine = { ADD = 5, OTHER = 1 }\n\
        [package.metadata.offload.target.gfx1100]\ndefine = { ADD = 7 }\n\
        [package.metadata.offload.target.gfx906]\ndefine = { ADD = 8 }\n";
    package.declare(&format!(
        "{HIP}targets = [\"gfx90a\", \"native\", \"gfx942\"]\n{tables}"
    ));
    assert_eq!(built(&mut build(&package)), ["gfx90a", "gfx1100", "gfx942"]);
    let starts = fs::read_to_string(package.at("starts")).unwrap();
    let of = |arch: &str| {
        starts
            .lines()
            .rfind(|line| line.contains(&format!("--offload-arch={arch} ")))
            .unwrap()
    };
    assert!(
        of("gfx1100").contains("-DADD=7 -DOTHER=1"),
        "{}",
        of("gfx1100")
    );
    assert!(!of("gfx942").contains("-DADD"), "{}", of("gfx942"));
    // A variable names others, and nobody is asked.
    asked(&package);
    package.declare(&format!("{HIP}targets = [\"native\"]\n"));
    assert_eq!(
        built(build(&package).env("OFFLOAD_TARGETS", "gfx906")),
        ["gfx906"]
    );
    assert_eq!(asked(&package), [""; 0]);
    assert_eq!(
        built(build(&package).env("GPU_TARGETS", "native;gfx906")),
        ["gfx942", "gfx1100", "gfx906"]
    );
}

#[test]
fn does_not_warn_of_patterns_of_kernels_that_gpus_of_other_machines_lack() {
    let keys =
        |target: &str| format!("{HIP}targets = [\"{target}\"]\noptional-kernels = [\"other\"]\n");
    let Some(package) = package(&keys("native")) else {
        return;
    };
    program(&package, "llvm/bin/amdgpu-arch", "echo gfx90a");
    let told = text(&build(&package).output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    package.declare(&keys("gfx90a"));
    let told = text(&build(&package).output().unwrap());
    assert!(told.contains("`other` matches no missing kernel"), "{told}");
}

#[test]
fn asks_each_program_once_in_a_build() {
    let Some(cuda) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let cu = HIP.replace("hip", "cuda").replace("*.cuda", "*.cu");
    let module = |name: &str, keys: &str| {
        format!(
            "[[package.metadata.offload.module]]\nname = \"{name}\"\n{keys}targets = [\"native\"]\n"
        )
    };
    let keys = [module("one", HIP), module("two", HIP), module("three", &cu)].concat();
    let Some(package) = package(&keys) else {
        return;
    };
    program(&package, "llvm/bin/amdgpu-arch", "echo gfx1100");
    program(&package, "tools/nvidia-smi", "echo 9.0; echo 8.6; echo 9.0");
    let mut script = build(&package);
    script.env("CUDA_PATH", cuda.ancestors().nth(2).unwrap());
    assert_eq!(built(&mut script), ["gfx1100", "gfx1100", "sm_90", "sm_86"]);
    assert_eq!(
        asked(&package),
        [
            "llvm/bin/amdgpu-arch",
            "llvm/bin/nvptx-arch",
            "tools/nvidia-smi --query-gpu=compute_cap --format=csv,noheader"
        ]
    );
    // One that answers is not doubted.
    program(&package, "llvm/bin/nvptx-arch", "echo sm_80");
    assert_eq!(built(&mut script), ["gfx1100", "gfx1100", "sm_80"]);
    assert_eq!(
        asked(&package),
        ["llvm/bin/amdgpu-arch", "llvm/bin/nvptx-arch"]
    );
}

#[test]
fn names_tables_of_gpus_that_no_machine_has() {
    let keys = format!("{HIP}targets = [\"native\"]\n");
    let table = "[package.metadata.offload.target.gfx90b]\ndefine = { ADD = 5 }\n";
    let Some(package) = package(&format!("{keys}{table}")) else {
        return;
    };
    program(&package, "llvm/bin/amdgpu-arch", "echo gfx1100");
    let error = package.fails(&mut build(&package));
    let expected = "[package.metadata.offload.target.\"gfx90b\"]: `gfx90b` is not a known processor; did you mean `gfx90a`? [OFF504]";
    assert_eq!(error, expected);
    // One of another machine.
    package.declare(&format!("{keys}{}", table.replace("90b", "90a")));
    let told = text(&build(&package).output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
}

#[test]
fn says_what_was_asked_when_there_is_no_gpu() {
    let Some(package) = package(&format!("{HIP}targets = [\"gfx90a\", \"native\"]\n")) else {
        return;
    };
    let none = "Cargo.toml:8:1: `native`: no GPU found: `llvm/bin/amdgpu-arch` listed no GPU; \
        `tools/rocm_agent_enumerator` listed no GPU [OFF607]\n\
        hint: name the processors: OFFLOAD_TARGETS=gfx90a replaces `targets`";
    assert_eq!(package.fails(&mut build(&package)), none);
    // It is no reason to do without device code.
    assert_eq!(
        package.fails(build(&package).env("OFFLOAD_MISSING", "stub")),
        none
    );
    package.declare(&format!(
        "{}targets = [\"native\"]\n",
        HIP.replace("hip", "cuda").replace("*.cuda", "*.cu")
    ));
    assert_eq!(
        package.fails(&mut build(&package)),
        "Cargo.toml:8:1: `native`: no GPU found: `llvm/bin/nvptx-arch` failed (exit status: 1); \
         `tools/nvidia-smi --query-gpu=compute_cap --format=csv,noheader` failed (exit status: 9) [OFF607]\n\
         hint: name the processors: OFFLOAD_TARGETS=sm_80 replaces `targets`"
    );
    // Documentation asks nobody; neither does a module whose feature is off.
    asked(&package);
    let told = text(&build(&package).env("DOCS_RS", "1").output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    text(
        &build(&package)
            .env("OFFLOAD_FEATURE", "gpu")
            .output()
            .unwrap(),
    );
    assert_eq!(asked(&package), [""; 0]);
    assert!(Path::new(&package.at(OUT)).is_dir());
}
