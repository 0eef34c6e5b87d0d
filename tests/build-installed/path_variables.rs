//! Variables in values of the manifest: roots of SDKs, and folders of Cargo.

use crate::support;

use std::fs;
use std::process::Command;
use support::package::Package;

const KEYS: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"compute_80\"]\n";

fn package(keys: &str) -> Option<Package> {
    support::tool("llvm22", &["clang-22", "clang"])?;
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.cu", "__global__ void k() {}\n");
    package.put("cuda/include/cuda_runtime.h", "");
    package.put("rocm/include/hip/hip_runtime.h", "");
    package.declare(&format!("{KEYS}{keys}"));
    Some(package)
}

/// A dry run with both SDKs.
fn script(package: &Package) -> Command {
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", "clang-22")
        .env("OFFLOAD_DRY_RUN", "1")
        .env("CUDA_PATH", package.at("cuda"))
        .env("ROCM_PATH", package.at("rocm"));
    script
}

fn plan(package: &Package, script: &mut Command) -> String {
    let output = script.output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    plan.replace(&format!("{}/", package.folder.root().display()), "")
}

#[test]
fn puts_the_roots_of_sdks_and_folders_of_cargo_in_values() {
    let keys = "include = [\"${CUDA}/extras\", \"own\"]\n\
        flags = [\"-I${ROCM}/x\", \"-DHERE=${CARGO_MANIFEST_DIR}/$\", \"-DPLAIN=$${CUDA}\"]\n\
        [package.metadata.offload.target.compute_80]\nflags = [\"-I${OUT_DIR}/made\"]\n";
    let Some(package) = package(keys) else { return };
    let plan = |script: &mut Command| plan(&package, script);
    let made = plan(&mut script(&package));
    assert!(made.contains(" -I cuda/extras -I own "), "{made}");
    for flags in [
        " -Irocm/x '-DHERE=$' ",
        " '-DPLAIN=${CUDA}' -Itarget/build/pack-0123/out/made ",
    ] {
        assert!(made.contains(flags), "{flags}: {made}");
    }
    // The toolkit of nvcc, whatever variables say.
    package.put("other/include/cuda_runtime.h", "");
    let nvcc = "#!/bin/sh\necho release 13.5\n";
    package.put("other/bin/nvcc", nvcc);
    package.put("other/bin/nvlink", nvcc);
    let nvcc = plan(script(&package).env("OFFLOAD_COMPILER", package.at("other/bin/nvcc")));
    assert!(nvcc.contains("other/extras"), "{nvcc}");
}

#[test]
fn puts_metadata_of_dependencies_in_values() {
    let keys = "include = [\"${DEP_SPPARK_ROOT}\", \"${DEP_BLST_C_SRC}/x\"]\n";
    let Some(package) = package(keys) else { return };
    let mut with = script(&package);
    with.env("DEP_BLST_C_SRC", package.at("blst"));
    let error = package.fails(&mut with);
    assert_eq!(
        error,
        "Cargo.toml:8:1: `${DEP_SPPARK_ROOT}`: `DEP_SPPARK_ROOT` is not set (dependencies set `${DEP_BLST_C_SRC}`)\n\
         hint: add the package that prints it to [dependencies]: Cargo sets DEP_<LINKS>_<KEY> for packages with the key `links`"
    );
    with.env("DEP_SPPARK_ROOT", package.at("sppark"));
    let made = plan(&package, &mut with);
    assert!(made.contains(" -I sppark -I blst/x "), "{made}");
}

#[test]
fn finds_sources_that_the_build_script_or_a_dependency_wrote() {
    let Some(package) = package("") else { return };
    let keys = "language = \"cuda\"\ntargets = [\"compute_80\"]\n\
        sources = [\"kernels/*.cu\", \"${OUT_DIR}/one.cu\", \"${OUT_DIR}/more/**/*.cu\", \"${DEP_GEN_SRC}/*.cu\"]\n";
    package.declare(keys);
    let out = "target/build/pack-0123/out";
    // They need no SDK.
    let kernel = "#include <offload/gpu.h>\nstatic __global__ void k(int *x) { *x = 1; }\n";
    for made in ["one", "more/two", "more/deep/three", "offload/other"] {
        package.put(&format!("{out}/{made}.cu"), kernel);
    }
    package.put("kernels/k.cu", kernel);
    package.put("a[b]*/four.cu", kernel);
    let mut script = script(&package);
    script.env("DEP_GEN_SRC", package.at("a[b]*"));
    let made = plan(&package, &mut script);
    for source in [
        "kernels/k.cu",
        "target/build/pack-0123/out/one.cu",
        "target/build/pack-0123/out/more/two.cu",
        "target/build/pack-0123/out/more/deep/three.cu",
        "a[b]*/four.cu",
    ] {
        assert!(
            made.contains(&format!("# {source} for compute_80\n")),
            "{source}: {made}"
        );
    }
    // A wildcard searches Cargo's target folder only if it is for files of a folder in it, and no intermediate files.
    package.declare(&keys.replace("\"kernels/*.cu\", ", "\"**/*.cu\", "));
    let wide = plan(&package, &mut script);
    assert_eq!(wide.matches(".cu for compute_80\n").count(), 5, "{wide}");
    package.declare(&keys.replace("${OUT_DIR}/one.cu", "${OUT_DIR}/**/*.cu"));
    let own = plan(&package, &mut script);
    assert_eq!(own.matches(".cu for compute_80\n").count(), 5, "{own}");
    // Cargo would run a build script again that writes to a folder that is watched.
    let told = support::package::text(&script.env_remove("OFFLOAD_DRY_RUN").output().unwrap());
    let watched = |folder: &str| {
        let line = format!("cargo::rerun-if-changed={}\n", package.at(folder).display());
        told.contains(&line)
    };
    assert!(watched("kernels") && watched("a[b]*"), "{told}");
    assert!(!watched(out) && !watched(&format!("{out}/more")), "{told}");
    // A module whose SDK is missing still has sources.
    package.declare(&keys.replace("${OUT_DIR}/one", "${CUDA}/one"));
    assert_eq!(
        package.fails(&mut script),
        "Cargo.toml:7:1: `${CUDA}/one.cu`: unknown variable `${CUDA}` (expected one of `${OUT_DIR}`, `${CARGO_MANIFEST_DIR}`)"
    );
}

#[test]
fn says_which_value_names_an_sdk_that_is_missing() {
    let Some(package) = package("include = [\"a\", \"${CUDA}/extras\"]\n") else {
        return;
    };
    fs::remove_file(package.at("cuda/include/cuda_runtime.h")).unwrap();
    let error = package.fails(&mut script(&package));
    let start =
        "Cargo.toml:8:1: `${CUDA}/extras`: `include/cuda_runtime.h` not found (searched: cuda, ";
    assert!(error.starts_with(start), "{error}");
    let hint = " name others) [OFF604]\nhint: install NVIDIA's CUDA toolkit (";
    assert!(error.contains(hint), "{error}");
    for (name, value) in [("OFFLOAD_MISSING", "stub"), ("DOCS_RS", "1")] {
        let mut script = script(&package);
        script.env_remove("OFFLOAD_DRY_RUN").env(name, value);
        let told = support::package::text(&script.output().unwrap());
        assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    }
    package.declare(&format!("{KEYS}flags = [\"-I${{Cuda}}/x\"]\n"));
    assert_eq!(
        package.fails(&mut script(&package)),
        "Cargo.toml:8:1: `-I${Cuda}/x`: unknown variable `${Cuda}` (expected one of `${CUDA}`, `${ROCM}`, `${OUT_DIR}`, \
         `${CARGO_MANIFEST_DIR}`); did you mean `CUDA`?"
    );
}
