//! `<offload/gpu.h>`: every function of it in the code that compilers make, for each vendor and release of clang, on
//! both sides; and modules that need no SDK because of it.

mod amd;
mod nvidia;
mod sdk;

use crate::support;
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::package::{OUT, Package, text};

const KERNELS: &str = include_str!("kernels.h");

const RELEASES: [u32; 3] = [16, 19, 22];

const HIP: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\n";

const CUDA: &str = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\n";

/// A package with one source for both languages.
fn package(source: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", source);
    package.put("kernels/k.cu", source);
    Some(package)
}

/// The build script with a clang of that release, and no SDK in its environment.
fn script(package: &Package, release: u32) -> Option<Command> {
    let clang = support::tool(&format!("llvm{release}"), &["clang"])?;
    let mut script = package.script();
    // Debian's clang 16 may come without a linker of its release.
    let path = format!("/usr/bin:/bin:{}", package.at("llvm/bin").display());
    script.env("OFFLOAD_COMPILER", clang).env("PATH", path);
    Some(script)
}

fn build(package: &Package, keys: &str, release: u32) -> Option<()> {
    package.declare(keys);
    text(&script(package, release)?.output().unwrap());
    Some(())
}

fn llvm(release: u32, program: &str) -> Command {
    Command::new(format!("/usr/lib/llvm-{release}/bin/{program}"))
}

/// The text of a function in LLVM IR, PTX or disassembly.
fn body<'t>(text: &'t str, name: &str) -> &'t str {
    let heads = [
        format!("@{name}("),
        format!(".entry {name}("),
        format!("<{name}>:"),
    ];
    for (head, end) in heads.iter().zip(["\n}", "\n}", "\n\n"]) {
        for (at, _) in text.match_indices(head.as_str()) {
            let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
            let is_definition = !head.starts_with('@') || text[start..].starts_with("define");
            if is_definition {
                let rest = &text[start..];
                return &rest[..rest.find(end).unwrap_or(rest.len())];
            }
        }
    }
    panic!("no `{name}` in:\n{text}");
}

/// Checks that the code of each kernel has all these words, and none that starts with `!`.
fn check(title: &str, text: &str, facts: &[(&str, &[&str])]) {
    for (kernel, words) in facts {
        let code = body(text, kernel);
        for word in *words {
            let (word, expected) = match word.strip_prefix('!') {
                Some(word) => (word, false),
                None => (*word, true),
            };
            assert_eq!(
                code.contains(word),
                expected,
                "{title}: `{word}` in `{kernel}`:\n{code}"
            );
        }
    }
}

/// LLVM IR of the source for one target.
fn ir(package: &Package, release: u32, target: &str) -> String {
    let folder = package.at(OUT).join("offload/kernels").join(target);
    support::run(
        llvm(release, "llvm-dis")
            .args(["-o", "-"])
            .arg(folder.join("kernels-k.hip.bc")),
    )
}

fn disassembly(package: &Package, release: u32, target: &str) -> String {
    let folder = package.at(OUT).join("offload/kernels").join(target);
    support::run(
        llvm(release, "llvm-objdump")
            .arg("-d")
            .arg(folder.join("image")),
    )
}

#[test]
fn launches_kernels_without_an_sdk() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in RELEASES {
        for (keys, target, vendor) in [(HIP, "gfx90a", "hip"), (CUDA, "compute_80", "cuda")] {
            let keys = format!("{keys}host = true\ntargets = [\"{target}\"]\n");
            if build(&package, &keys, release).is_none() {
                return;
            }
            let module = fs::read(package.at(OUT).join("offload/kernels/module.o")).unwrap();
            let module = object::File::parse(&*module).unwrap();
            let symbols: BTreeMap<_, _> = module
                .symbols()
                .filter(|symbol| symbol.is_global())
                .map(|symbol| (symbol.name().unwrap().to_owned(), symbol.is_undefined()))
                .collect();
            let camel = if vendor == "hip" { "hip" } else { "cuda" };
            for (name, is_undefined) in [
                ("launch".to_owned(), false),
                (format!("__{camel}PushCallConfiguration"), true),
                (format!("__{camel}PopCallConfiguration"), true),
                (format!("{camel}LaunchKernel"), true),
                (format!("{camel}GetLastError"), true),
            ] {
                assert_eq!(
                    symbols.get(&name),
                    Some(&is_undefined),
                    "clang {release}: {name}: {symbols:?}"
                );
            }
        }
    }
}

#[test]
fn says_what_is_not_there() {
    let Some(package) = package("") else { return };
    let amd = "on AMD GPUs it needs ROCm's device libraries: include <hip/hip_runtime.h>";
    let nvidia = "on NVIDIA GPUs it needs CUDA's device library: include <cuda_runtime.h>";
    let cases = [
        (
            22,
            HIP,
            "gfx90a",
            "*x = sinf(*x);",
            format!("'sinf' is unavailable: {amd}"),
        ),
        (
            22,
            CUDA,
            "compute_80",
            "*x = pow(*x, 2.5);",
            format!("'pow' is unavailable: {nvidia}"),
        ),
        (
            22,
            HIP,
            "gfx90a",
            "printf(\"%f\", *x);",
            format!("'printf' is unavailable: {amd}"),
        ),
        (
            16,
            HIP,
            "gfx90a",
            "*x = sqrt(double(*x));",
            "on AMD GPUs it needs clang 18 or later".to_owned(),
        ),
        (
            22,
            HIP,
            "gfx1100",
            "*x = __shfl_sync(0xffffffff, *x, 0);",
            "masks have 64 bits on AMD GPUs: write ~0ull".to_owned(),
        ),
        (
            22,
            CUDA,
            "compute_80",
            "atomicMin(x, 1.0f);",
            "atomicMin takes integers of 4 and 8 bytes".to_owned(),
        ),
        (
            22,
            HIP,
            "gfx90a",
            "struct { int a[3]; } y = {}; __shfl(y, 0);",
            "shuffles move plain values of up to 8 bytes".to_owned(),
        ),
        (
            22,
            HIP,
            "gfx90a",
            "*x = *new float(*x);",
            "memory cannot be allocated in kernels for AMD GPUs without ROCm".to_owned(),
        ),
    ];
    for (release, keys, target, statement, expected) in cases {
        let source = format!(
            "#include <offload/gpu.h>\n#include <new>\nextern \"C\" __global__ void k(float *x) {{ {statement} }}\n"
        );
        package.put("kernels/k.hip", &source);
        package.put("kernels/k.cu", &source);
        package.declare(&format!("{keys}targets = [\"{target}\"]\n"));
        let Some(mut script) = script(&package, release) else {
            return;
        };
        let error = package.fails(&mut script);
        assert!(error.contains(&expected), "{statement}\n{error}");
    }
}

/// Headers of the host's C and C++ libraries, after this one.
#[test]
fn leaves_the_hosts_headers_alone() {
    let headers = [
        "algorithm",
        "cmath",
        "complex",
        "cstdint",
        "cstdio",
        "cstdlib",
        "math.h",
        "new",
        "vector",
    ];
    let includes = headers.map(|name| format!("#include <{name}>\n")).concat();
    let host = "double on_host(double x) { return std::sqrt(x) + sin(x) + std::min(x, 1.0) + fabs(x) + abs(-1); }\n\
        __host__ __device__ float on_both(float x) { return fminf(x, 1.0f); }\n";
    let source = format!("#include <offload/gpu.h>\n{includes}{host}{PLACE}");
    let Some(package) = package(&source) else {
        return;
    };
    for release in support::share(RELEASES, 0, 2) {
        for (keys, target) in [(HIP, "gfx90a"), (CUDA, "compute_80")] {
            let keys = format!("{keys}host = true\ntargets = [\"{target}\"]\n");
            if build(&package, &keys, release).is_none() {
                return;
            }
        }
    }
}

/// The example of the document, with and without its host code, and compiled by `nvcc`, for which the header is CUDA's.
#[test]
fn compiles_the_documents_example() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gpu-header.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, example) = document.split_once("```cpp\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let Some(package) = package(example) else {
        return;
    };
    for release in support::share(RELEASES, 1, 2) {
        for (keys, target) in [(HIP, "gfx1100"), (CUDA, "compute_80")] {
            let keys = format!("{keys}host = true\ntargets = [\"{target}\"]\n");
            if build(&package, &keys, release).is_none() {
                return;
            }
        }
    }
    let Some(cuda) = support::cuda_package::cuda() else {
        return;
    };
    let (kernel, _) = example.split_once("extern \"C\" int sum_launch").unwrap();
    // CUDA has no function for that.
    let kernel = kernel.replace("__lane_id()", "threadIdx.x % warpSize");
    package.put(
        "kernels/k.cu",
        &kernel.replace("__shfl_down(", "__shfl_down_sync(~0u, "),
    );
    package.declare(&format!(
        "{CUDA}compiler = \"nvcc\"\ntargets = [\"sm_90\"]\n"
    ));
    let mut script = package.script();
    script.env("CUDA_PATH", cuda).env_remove("OFFLOAD_COMPILER");
    text(&script.output().unwrap());
}

const PLACE: &str = "extern \"C\" __global__ void place(unsigned *x) { *x = threadIdx.x; }\n";

#[test]
fn compiles_again_after_a_change_of_the_header_and_only_then() {
    let source = format!("#include <offload/gpu.h>\n{PLACE}");
    let Some(first) = package(&source) else {
        return;
    };
    let keys = format!("{HIP}targets = [\"gfx90a\"]\n");
    if build(&first, &keys, 19).is_none() {
        return;
    }
    let name = "offload/kernels/gfx90a/kernels-k.hip.bc";
    let output = |package: &Package| package.at(OUT).join(name);
    let time = |package: &Package| fs::metadata(output(package)).unwrap().modified().unwrap();
    let key = fs::read_to_string(output(&first).with_extension("bc.key")).unwrap();
    for header in ["offload/gpu.h", "offload/gpu/amd.h", "offload/gpu/index.h"] {
        assert!(
            key.lines()
                .any(|line| line.ends_with(&format!("kernel-headers/{header}"))),
            "{key}"
        );
    }
    let before = time(&first);
    build(&first, &keys, 19);
    assert_eq!(time(&first), before);
    // An older version of this crate wrote another one, and compiled with it.
    let digest = key
        .lines()
        .find(|line| line.ends_with("gpu/index.h"))
        .unwrap();
    let older = key.replace(
        digest,
        &digest.replacen(|c: char| c.is_ascii_hexdigit(), "x", 1),
    );
    fs::write(output(&first).with_extension("bc.key"), older).unwrap();
    build(&first, &keys, 19);
    assert!(time(&first) > before);

    // Another checkout makes the same images.
    let second = package(&source).unwrap();
    build(&second, &keys, 19);
    let image =
        |package: &Package| fs::read(package.at(OUT).join("offload/kernels/images")).unwrap();
    assert_eq!(image(&first), image(&second));
}
