//! What keys of the manifest mean together: missing tools, variables and methods of the build script, patterns.

use crate::support;

use std::fs;
use support::cuda_package::{CUDA, package, targets};
use support::package::{OUT, Package, text};

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
        line.map(|line| line.replace(&format!("{}/", package.folder.root().display()), ""))
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = said.replace(&format!("{}/", package.folder.root().display()), "");
        let first = said.lines().next().unwrap_or_default();
        return Outcome::Error(first.trim_start_matches("Error: ").to_owned());
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
               /usr/local/cuda/bin, PATH) [OFF605]";
    let compiler =
        "OFFLOAD_COMPILER: `compiler`: `nowhere/clang` is not an executable file [OFF601]";
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
                error(one),
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
        package.declare(&format!("{CUDA}{}", targets(names)));
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
        "{CUDA}{}exclude = [\"kernels/no*.cu\", \"./kernels/more.cu\", \"m*.cu\"]\n{target}",
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
            // bindgen_cuda's patterns are of names.
            "cargo::warning=Cargo.toml:9:1: `exclude`: `m*.cu` leaves out no source; did you mean `*/m*.cu`?",
            "cargo::warning=Cargo.toml:11:1: `exclude`: `kernels/*.hip` leaves out no source",
        ]
    );
}

#[test]
fn takes_other_build_systems_variables_for_the_language_that_counts() {
    let Some(package) = package("") else { return };
    package.declare(&format!(
        "{}{}",
        CUDA.replace("\"cuda\"", "\"hip\""),
        targets(&["gfx90a"])
    ));
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
        package.declare(&format!("{keys}{more}\n"));
        package.fails(&mut package.script())
    };
    assert_eq!(
        fails("include = [\".\"]"),
        "Cargo.toml:8:1: `include` has no effect on modules of `prebuilt` [OFF502]"
    );
    assert_eq!(
        fails("feature = \"gpu\"\n[features]\ngpus = []"),
        "Cargo.toml:8:1: the package has no feature `gpu`; did you mean `gpus`? [OFF505]"
    );
}

#[test]
fn says_what_was_searched_and_how_to_get_it() {
    let Some(package) = package("") else { return };
    let sources = "sources = [\"kernels/*.cu\"]\n";
    let without = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    let fails = |keys: &str, shim: bool| {
        package.declare(keys);
        let mut script = package.script();
        script
            .env("CUDA_PATH", "/nonexistent")
            .env("ROCM_PATH", "/nonexistent")
            .env("OFFLOAD_MISSING", "error");
        if !shim {
            script
                .env_remove("OFFLOAD_COMPILER")
                .env("PATH", "/nowhere");
        }
        package.fails(&mut script)
    };
    let apt = "Debian, Ubuntu: `apt install ";
    let cuda =
        |target: &str| format!("language = \"cuda\"\n{sources}{without}targets = [\"{target}\"]\n");
    // A compiler; one of NVIDIA's; headers.
    let error = fails(&cuda("sm_80"), false);
    let (searched, hint) = error.split_once('\n').unwrap();
    assert_eq!(
        searched,
        "module `kernels`: no compiler for `cuda`: searched PATH for clang-24 to clang-16 and clang, found none [OFF601]"
    );
    assert!(
        hint.starts_with(&format!(
            "hint: install clang ({apt}clang-19 lld-19 llvm-19`; Fedora: "
        )),
        "{hint}"
    );
    assert!(
        hint.ends_with(
            "; with nvcc installed, set `compiler = \"nvcc\"`; or name another clang with `compiler` or OFFLOAD_COMPILER; \
             or build without device code: OFFLOAD_MISSING=stub"
        ),
        "{hint}"
    );
    let error = fails(&cuda("sm_80"), true);
    assert!(
        error.contains("`ptxas` not found (searched: /nonexistent/bin, "),
        "{error}"
    );
    assert!(
        error.contains(
            "PyPI, CUDA 12: `pip install nvidia-cuda-nvcc-cu12`), and set CUDA_PATH to its root"
        ),
        "{error}"
    );
    let error = fails(&cuda("sm_80").replace(without, ""), true);
    assert!(
        error.contains("`include/cuda_runtime.h` not found (searched: /nonexistent, "),
        "{error}"
    );
    assert!(
        error.contains(
            "hint: install NVIDIA's CUDA toolkit (Debian's non-free, Ubuntu: `apt install nvidia-cuda-toolkit`; "
        ),
        "{error}"
    );
    let hip = |flags: &str| format!("language = \"hip\"\n{sources}{flags}targets = [\"gfx90a\"]\n");
    let rocm = fails(&hip(""), true);
    let found_here =
        !rocm.contains("`include/hip/hip_runtime.h` not found (searched: /nonexistent, ");
    assert!(
        found_here
            || rocm.contains(&format!(
                "device libraries ({apt}libamdhip64-dev rocm-device-libs-17`; Debian 14, Ubuntu 26.04: `"
            )),
        "{rocm}"
    );
    // The tools beside clang, of its release: the name of this one does not tell it, but its headers do.
    fs::remove_file(package.at("llvm/bin/ld.lld")).unwrap();
    // What a clang says that does not find a program; the one behind this script would find its own.
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    let says = "#!/bin/sh\ncase $1 in -print-prog-name=*) echo \"${1#*=}\"; exit;; esac\n";
    package.put("llvm/bin/clang", &shim.replacen("#!/bin/sh\n", says, 1));
    package.put(
        "kernels/k.c",
        "void f(int *x) {\n#pragma omp target map(tofrom : *x)\n  *x += 1;\n}\n",
    );
    let openmp = "language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\"]\n";
    for keys in [&hip(without), openmp] {
        let error = fails(keys, true);
        assert!(
            error.contains("`ld.lld` not found (searched: llvm/bin) [OFF605]\n"),
            "{error}"
        );
        assert!(
            error.contains(&format!(
                "hint: install lld of clang's release ({apt}lld-19`; "
            )),
            "{error}"
        );
    }
    fs::remove_file(package.at("llvm/bin/llvm-link")).unwrap();
    let error = fails(&cuda("compute_80"), true);
    assert!(
        error.contains("`llvm-link` not found (searched: "),
        "{error}"
    );
    assert!(
        error.contains(&format!(
            "hint: install the LLVM tools of clang's release ({apt}llvm-19`; "
        )),
        "{error}"
    );
    let openmp = "language = \"openmp\"\nsources = [\"kernels/k.cu\"]\n";
    let flags = "flags = [\"-xc\"]\ntargets = [\"gfx90a\"]\n";
    fs::remove_file(package.at("llvm/lib")).unwrap();
    let error = fails(&format!("{openmp}{flags}"), false);
    assert!(
        error.contains(&format!(
            "{apt}clang-19 lld-19 llvm-19 libomp-19-dev`; Fedora: "
        )),
        "{error}"
    );
}
