//! `<offload/gpu.h>`: every function of it in the code that compilers make, for each vendor and release of clang, on
//! both sides; and modules that need no SDK because of it.

use crate::support;

use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::cuda_package::{OUT, declare};
use support::package::{Package, text};

const KERNELS: &str = include_str!("gpu_header/kernels.h");
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
    declare(package, keys);
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

const AMD_IR: &[(&str, &[&str])] = &[
    (
        "thread",
        &[
            "@llvm.amdgcn.workitem.id.x",
            "@llvm.amdgcn.workitem.id.y",
            "@llvm.amdgcn.workitem.id.z",
        ],
    ),
    (
        "block",
        &[
            "@llvm.amdgcn.workgroup.id.x",
            "@llvm.amdgcn.workgroup.id.y",
            "@llvm.amdgcn.workgroup.id.z",
        ],
    ),
    ("lane", &["@llvm.amdgcn.mbcnt.lo"]),
    (
        "barrier",
        &[
            "fence syncscope(\"workgroup\") release",
            "@llvm.amdgcn.s.barrier",
            "fence syncscope(\"workgroup\") acquire",
        ],
    ),
    (
        "warp_barrier",
        &[
            "fence syncscope(\"wavefront\") release",
            "@llvm.amdgcn.wave.barrier",
        ],
    ),
    ("fence_block", &["fence syncscope(\"workgroup\") seq_cst"]),
    ("fence", &["fence syncscope(\"agent\") seq_cst"]),
    ("fence_system", &["fence seq_cst"]),
    ("votes", &["@llvm.amdgcn.icmp.i64"]),
    (
        "atomics_int",
        &[
            "atomicrmw add",
            "atomicrmw min",
            "atomicrmw max",
            "atomicrmw xchg",
            "atomicrmw and",
            "atomicrmw or",
            "atomicrmw xor",
            "cmpxchg",
            "syncscope(\"agent",
            "monotonic",
            "!seq_cst",
        ],
    ),
    (
        "atomics_unsigned_long_long",
        &["atomicrmw umin", "atomicrmw umax", "i64"],
    ),
    ("atomics_float", &["atomicrmw fadd", "float"]),
    ("atomics_double", &["atomicrmw fadd", "double"]),
    ("root", &["@llvm.sqrt.f32"]),
    ("inverse_root", &["@llvm.sqrt.f32", "fdiv"]),
    (
        "floats",
        &["@llvm.fma.f32", "@llvm.minnum.f32", "@llvm.round.f32"],
    ),
    (
        "doubles",
        &["@llvm.fma.f64", "@llvm.copysign.f64", "@llvm.rint.f64"],
    ),
    (
        "fast",
        &[
            "@llvm.amdgcn.sin.f32",
            "@llvm.amdgcn.cos.f32",
            "@llvm.exp2.f32",
            "@llvm.log2.f32",
        ],
    ),
    ("memory", &["addrspace(3)", "@llvm.amdgcn.s.barrier"]),
];

#[test]
fn reads_and_computes_what_amd_defines() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in RELEASES {
        // clang 16 does not know gfx942.
        let targets: &[&str] = match release {
            16 => &["gfx90a", "gfx1100"],
            _ => &["gfx90a", "gfx942", "gfx1100"],
        };
        if build(&package, &format!("{HIP}targets = {targets:?}\n"), release).is_none() {
            return;
        }
        for target in targets {
            let title = format!("clang {release}, {target}");
            check(&title, &ir(&package, release, target), AMD_IR);
            let code = disassembly(&package, release, target);
            let shuffles = [
                "shuffle",
                "shuffle_up",
                "shuffle_down",
                "shuffle_xor",
                "shuffle_double",
            ];
            let facts = shuffles.map(|name| (name, &["ds_bpermute_b32", "!v_readlane"][..]));
            check(&title, &code, &facts);
            let lanes = if *target == "gfx1100" { ", 32" } else { ", 64" };
            check(&title, &code, &[("width", &["mov_b32", lanes])]);
            let image = package
                .at(OUT)
                .join(format!("offload/kernels/{target}/image"));
            let notes = support::run(llvm(release, "llvm-readelf").arg("--notes").arg(image));
            let bounds = notes
                .split(".symbol:")
                .filter(|kernel| kernel.contains(".max_flat_workgroup_size: 128\n"));
            let is_bounded = |kernel: &str| kernel.contains(".name:           bounded");
            let bounds: Vec<bool> = bounds.map(is_bounded).collect();
            assert_eq!(bounds, [true, true], "{title}: {notes}");
        }
    }
}

/// Offsets of sizes as LLVM's AMDGPUUsage has them: of implicit kernel arguments since code object version 5
/// (`hidden_group_size_x` and others), of the dispatch packet before.
#[test]
fn reads_sizes_where_the_code_object_version_has_them() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for (release, version) in [
        (16, "4"),
        (16, "5"),
        (19, "4"),
        (19, "5"),
        (22, "4"),
        (22, "5"),
    ] {
        let keys =
            format!("{HIP}targets = [\"gfx90a\"]\nflags = [\"-mcode-object-version={version}\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        let text = ir(&package, release, "gfx90a");
        let (base, sizes, other) = match version {
            "4" => (
                "@llvm.amdgcn.dispatch.ptr",
                [4, 6, 8],
                "!@llvm.amdgcn.implicitarg.ptr",
            ),
            _ => (
                "@llvm.amdgcn.implicitarg.ptr",
                [12, 14, 16],
                "!@llvm.amdgcn.dispatch.ptr",
            ),
        };
        let title = format!("clang {release}, code object version {version}");
        for (kernel, offset) in ["size_x", "size_y", "size_z"].iter().zip(sizes) {
            check(
                &title,
                &text,
                &[(
                    kernel,
                    &[base, &format!("i64 {offset}\n"), "load i16", other],
                )],
            );
        }
        // Threads of the grid, in the packet, by those of a block; LLVM 22 knows that this is the number of blocks.
        for (kernel, place) in ["grid_x", "grid_y", "grid_z"].iter().zip([0, 1, 2]) {
            let packet = format!("i64 {}\n", 12 + 4 * place);
            let argument = format!("i64 {}\n", 4 * place);
            let facts: &[&str] = match (release, version, place) {
                (22, "5", 0) => &[base, "!udiv", "load i32", "!i64", other],
                (22, "5", _) => &[base, "!udiv", "load i32", &argument, other],
                _ => &[
                    "@llvm.amdgcn.dispatch.ptr",
                    &packet,
                    "load i32",
                    "udiv",
                    base,
                ],
            };
            check(&title, &text, &[(kernel, facts)]);
        }
    }
}

#[test]
fn shuffles_where_a_half_of_a_warp_cannot_read_the_other() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in RELEASES {
        let keys = format!("{HIP}targets = [\"gfx1100\"]\nflags = [\"-mwavefrontsize64\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        let code = disassembly(&package, release, "gfx1100");
        check(
            &format!("clang {release}"),
            &code,
            &[
                ("shuffle_xor", &["v_readlane_b32", "!ds_bpermute"]),
                ("width", &["64"]),
            ],
        );
    }
    // The lanes themselves, on the CPU.
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/build-plan/gpu_header/lanes.cpp");
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let run = |options: &[&str]| {
        let program = package.at("lanes");
        let mut clang = Command::new("clang-19");
        clang
            .args(["-x", "c++", "-std=c++11"])
            .args(options)
            .arg("-I")
            .arg(&headers);
        support::run(clang.arg(&source).arg("-o").arg(&program));
        let output = Command::new(program).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    for options in [
        &["-DLANES=32"][..],
        &["-DLANES=64"],
        &["-DLANES=64", "-DHALVES", "-D__GFX10__"],
        &["-DLANES=64", "-DHALVES", "-D__GFX11__"],
    ] {
        assert_eq!(run(options), (true, String::new()), "{options:?}");
    }
    // That is what the program finds.
    assert!(!run(&["-DLANES=64", "-DHALVES"]).0);
}

const PTX: &[(&str, &[&str])] = &[
    ("thread", &["%tid.x", "%tid.y", "%tid.z"]),
    ("block", &["%ctaid.x", "%ctaid.y", "%ctaid.z"]),
    ("size_x", &["%ntid.x"]),
    ("size_y", &["%ntid.y"]),
    ("size_z", &["%ntid.z"]),
    ("grid_x", &["%nctaid.x"]),
    ("grid_y", &["%nctaid.y"]),
    ("grid_z", &["%nctaid.z"]),
    ("whole", &["%ntid.x", "%ntid.y", "%tid.z"]),
    ("lane", &["%laneid"]),
    ("width", &["32"]),
    ("bounded", &[".maxntid"]),
    ("barrier", &["bar.sync"]),
    ("warp_barrier", &["bar.warp.sync"]),
    ("fence_block", &["membar.cta"]),
    ("fence", &["membar.gl"]),
    ("fence_system", &["membar.sys"]),
    ("ticks", &["%clock64"]),
    ("shuffle", &["shfl.sync.idx.b32", "activemask.b32"]),
    ("shuffle_up", &["shfl.sync.up.b32"]),
    // Groups of 16 lanes: bit 4 of a lane says its group.
    ("shuffle_down", &["shfl.sync.down.b32", ", 4127,"]),
    ("shuffle_xor", &["shfl.sync.bfly.b32", ", 31,"]),
    ("shuffle_double", &["shfl.sync.bfly.b32"]),
    ("votes", &["vote.sync.ballot.b32", "activemask.b32"]),
    ("any", &["vote.sync.any.pred"]),
    ("all", &["vote.sync.all.pred"]),
    (
        "atomics_int",
        &[
            "atom.global.add.u32",
            "atom.global.min.s32",
            "atom.global.max.s32",
            "exch.b32",
            "cas.b32",
            "and.b32",
            "or.b32",
            "xor.b32",
        ],
    ),
    (
        "atomics_unsigned_long_long",
        &["atom.global.add.u64", "atom.global.min.u64", "cas.b64"],
    ),
    ("atomics_float", &["atom.global.add.f32"]),
    ("atomics_double", &["atom.global.add.f64"]),
    ("root", &["sqrt.rn.f32"]),
    ("roots", &["sqrt.rn.f64", "rcp.rn.f64"]),
    ("inverse_root", &["rsqrt.approx.f32"]),
    (
        "floats",
        &[
            "fma.rn.f32",
            "min.f32",
            "max.f32",
            "cvt.rmi.f32.f32",
            "cvt.rpi.f32.f32",
            "cvt.rni.f32.f32",
        ],
    ),
    ("doubles", &["fma.rn.f64", "min.f64", "cvt.rmi.f64.f64"]),
    (
        "fast",
        &[
            "sin.approx.f32",
            "cos.approx.f32",
            "ex2.approx.f32",
            "lg2.approx.f32",
            "div.approx.f32",
        ],
    ),
    (
        "bits",
        &[
            "popc.b64",
            "clz.b32",
            "brev.b64",
            "mul.hi.s32",
            "mul.hi.u32",
        ],
    ),
    ("prints", &["vprintf"]),
    ("allocates", &["malloc", "free"]),
    ("memory", &["dynamic", "bar.sync"]),
];

#[test]
fn reads_and_computes_what_nvidia_defines() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in RELEASES {
        let keys = format!("{CUDA}targets = [\"compute_80\", \"compute_90\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        for target in ["compute_80", "compute_90"] {
            let image = package
                .at(OUT)
                .join(format!("offload/kernels/{target}/image"));
            let ptx = fs::read_to_string(image).unwrap();
            check(&format!("clang {release}, {target}"), &ptx, PTX);
            assert!(
                ptx.contains(".extern .shared .align 4 .b8 dynamic[]"),
                "{ptx}"
            );
        }
        if support::tool("cuda", &["ptxas"]).is_some() {
            // ptxas takes all of it, and each kernel is in the image: the build checks them.
            declare(
                &package,
                &format!("{CUDA}targets = [\"sm_80\", \"sm_90\"]\n"),
            );
            let mut script = script(&package, release).unwrap();
            text(&with_ptxas(&mut script).output().unwrap());
        }
    }
}

/// The same script, for which NVIDIA's assembler is in `PATH`, and no toolkit is named.
fn with_ptxas(script: &mut Command) -> &mut Command {
    let folder = support::tool("cuda", &["ptxas"]).unwrap();
    let folder = folder.parent().unwrap().display().to_string();
    let path = script.get_envs().find(|(name, _)| *name == "PATH");
    let path = path.unwrap().1.unwrap().to_str().unwrap().to_owned();
    script.env("PATH", format!("{path}:{folder}"))
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
        declare(&package, &format!("{keys}targets = [\"{target}\"]\n"));
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
    for release in RELEASES {
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
    for release in RELEASES {
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
    declare(
        &package,
        &format!("{CUDA}compiler = \"nvcc\"\ntargets = [\"sm_90\"]\n"),
    );
    let mut script = package.script();
    script.env("CUDA_PATH", cuda).env_remove("OFFLOAD_COMPILER");
    text(&script.output().unwrap());
}

/// A tree of ROCm whose header says of each thread that it is the seventh.
fn rocm(package: &Package) -> std::path::PathBuf {
    let version = "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=4\nHIP_VERSION_PATCH=1\n";
    package.put("rocm/share/hip/version", version);
    package.put(
        "rocm/include/hip/hip_runtime.h",
        "#pragma once\n#define HIP_INCLUDE_HIP_HIP_RUNTIME_H\n#define __global__ __attribute__((global))\n\
         #define __device__ __attribute__((device))\nstruct Seventh { unsigned x; };\n\
         static const __device__ Seventh threadIdx = {7};\n",
    );
    package.at("rocm")
}

const PLACE: &str = "extern \"C\" __global__ void place(unsigned *x) { *x = threadIdx.x; }\n";

#[test]
fn needs_no_sdk_and_uses_none_that_is_installed() {
    let Some(package) = package(&format!("#include <offload/gpu.h>\n{PLACE}")) else {
        return;
    };
    let root = rocm(&package);
    declare(&package, &format!("{HIP}targets = [\"gfx90a\"]\n"));
    let plan = |root: Option<&Path>| {
        let mut script = script(&package, 22)?;
        script.env("OFFLOAD_DRY_RUN", "1");
        script.envs(root.map(|root| ("ROCM_PATH", root)));
        let output = script.output().unwrap();
        Some(String::from_utf8(output.stderr).unwrap())
    };
    let Some(without) = plan(None) else { return };
    assert!(without.contains(" -nogpuinc -nogpulib "), "{without}");
    assert!(
        without.contains("# headers of kernels, in this process: "),
        "{without}"
    );
    assert_eq!(plan(Some(&root)).unwrap(), without);

    // A source with the SDK's header needs it. There is ROCm in `/usr` here, and no CUDA.
    package.put(
        "kernels/k.cu",
        "#include <offload/gpu.h>\n#include <cuda_runtime.h>\n",
    );
    declare(&package, &format!("{CUDA}targets = [\"compute_80\"]\n"));
    let missing = package.fails(&mut script(&package, 22).unwrap());
    let hint = "or do without: include `<offload/gpu.h>` in each source, or set `flags = ";
    assert!(missing.contains(hint), "{missing}");

    // Beside it a source without.
    let own = format!(
        "#include <offload/gpu.h>\n{}",
        PLACE.replace("place", "other")
    );
    package.put("kernels/other.hip", &own);
    let both = format!("#include <offload/gpu.h>\n#include <hip/hip_runtime.h>\n{PLACE}");
    package.put("kernels/k.hip", &both);
    let keys = format!("{HIP}targets = [\"gfx90a\"]\nflags = [\"-nogpulib\"]\n");
    declare(&package, &keys);
    let plan = plan(Some(&root)).unwrap();
    let line = |name: &str| {
        plan.lines()
            .find(|line| line.contains(&format!("-c {}", package.at(name).display())))
            .unwrap()
    };
    assert!(!line("kernels/k.hip").contains("-nogpuinc"), "{plan}");
    assert!(
        line("kernels/other.hip").contains(" -nogpulib -nogpuinc "),
        "{plan}"
    );
    text(
        &script(&package, 22)
            .unwrap()
            .env("ROCM_PATH", &root)
            .output()
            .unwrap(),
    );
    let code = disassembly(&package, 22, "gfx90a");
    check(
        "the SDK's header is the one that counts",
        &code,
        &[("place", &["v_mov_b32_e32 v1, 7"]), ("other", &["!, 7"])],
    );
}

/// CUDA's own headers, which clang includes first, and the kernels of this file.
#[test]
fn is_cudas_own_header_beside_the_toolkit() {
    let Some(cuda) = support::cuda_package::cuda() else {
        return;
    };
    let source = KERNELS
        .replace(
            "#include <offload/gpu.h>",
            "#include <cuda_runtime.h>\n#include <offload/gpu.h>",
        )
        // What CUDA has under other names, or for newer processors only.
        .replace("__lane_id()", "(threadIdx.x % 32)")
        .lines()
        .filter(|line| !line.contains("__shfl(x") && !line.contains("votes"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let start = source.find("KERNEL shuffle_up").unwrap();
    let end = source.find("extern __shared__").unwrap();
    let source = format!("{}{}", &source[..start], &source[end..]);
    let Some(package) = package(&source) else {
        return;
    };
    declare(&package, &format!("{CUDA}targets = [\"compute_90\"]\n"));
    let Some(mut script) = script(&package, 22) else {
        return;
    };
    text(&script.env("CUDA_PATH", cuda).output().unwrap());
    let ptx = fs::read_to_string(package.at(OUT).join("offload/kernels/compute_90/image")).unwrap();
    check(
        "with CUDA's headers",
        &ptx,
        &[("thread", &["%tid.x", "%tid.y", "%tid.z"])],
    );
}

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
