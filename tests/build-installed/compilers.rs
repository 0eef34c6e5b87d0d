//! Every clang from 16 on, and which of them is taken.

use crate::support;

use offload_formats::container::kernels::kernels;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use support::package::{OUT, Package, text};

const HIP: &str =
    "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const CUDA: &str = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
    targets = [\"sm_80\", \"sm_90\"]\n";
const HEADER: &str = "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    __device__ int twice(int x);\n";
const KERNEL: &str = "#include \"k.h\"\nextern \"C\" __global__ void scale(int *x, long by) { *x = twice(*x) * by; }\n";
const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return 2 * x; }\n";
/// Words of `OFFLOAD_REQUIRE`.
const CLANGS: [&str; 3] = ["llvm16", "llvm19", "llvm22"];

fn package() -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put("kernels/k.hip", KERNEL);
    package.put("kernels/helper.hip", HELPER);
    package.put(
        "kernels/k.cu",
        &KERNEL.replace("#include \"k.h\"", &HELPER.replace("\"k.h\"", "\"k.h\"\n")),
    );
    // Debian's clang 16 may come without a linker of its release.
    let lld = support::tool("llvm19", &["ld.lld"])?;
    fs::create_dir_all(package.at("lld")).unwrap();
    symlink(lld, package.at("lld/ld.lld")).unwrap();
    Some(package)
}

fn script(package: &Package, path: &str, text: &str) {
    let log = package.at("starts");
    package.put(
        path,
        &format!("#!/bin/sh\necho \"$@\" >> '{}'\n{text}\n", log.display()),
    );
}

/// The build script with this clang, and a linker for AMD.
fn with(package: &Package, clang: &str) -> Command {
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", clang).env(
        "PATH",
        format!("/usr/bin:/bin:{}", package.at("lld").display()),
    );
    script
}

/// The arguments of the one kernel of an image.
fn arguments(package: &Package, target: &str) -> Vec<(u32, u32)> {
    let kernels = kernels(&fs::read(package.image(target)).unwrap()).unwrap();
    let [kernel] = kernels.as_slice() else {
        panic!("{kernels:?}");
    };
    assert_eq!(kernel.name, "scale");
    let explicit = kernel.arguments.iter().take(2);
    explicit
        .map(|argument| (argument.offset, argument.size))
        .collect()
}

#[test]
fn makes_images_with_every_clang_from_16_on() {
    let (Some(package), Some(readelf)) = (package(), support::tool("llvm22", &["llvm-readelf"]))
    else {
        return;
    };
    let cuda = support::tool("cuda", &["ptxas"]);
    let cuda = cuda.as_deref().and_then(|ptxas| ptxas.ancestors().nth(2));
    for word in CLANGS {
        let Some(clang) = support::tool(word, &["clang"]) else {
            continue;
        };
        let clang = clang.to_str().unwrap();
        for level in ["0", "2"] {
            let targets = "targets = [\"gfx90a:xnack-\", \"gfx1100\"]\n";
            package.declare(&format!("{HIP}{targets}opt-level = {level}\n"));
            text(&with(&package, clang).output().unwrap());
            for (folder, flags) in [("gfx90a-xnack-", "gfx90a, xnack-"), ("gfx1100", "gfx1100")] {
                let header =
                    support::run(Command::new(&readelf).arg("-h").arg(package.image(folder)));
                let line = header.lines().find(|line| line.contains("Flags:")).unwrap();
                assert!(line.contains(flags), "{word} -O{level}: {line}");
                assert_eq!(arguments(&package, folder), [(0, 8), (8, 8)], "{word}");
            }
        }
        // What the oldest wrote, every one reads.
        if word == CLANGS[0] {
            let from = package.at(OUT).join("offload/kernels/gfx1100");
            fs::create_dir_all(package.at("ir")).unwrap();
            for name in ["kernels-k.hip.bc", "kernels-helper.hip.bc"] {
                fs::copy(from.join(name), package.at("ir").join(name)).unwrap();
            }
        }
        if package.at("ir").is_dir() {
            package
                .declare("language = \"bitcode\"\nsources = [\"ir/*\"]\ntargets = [\"gfx1100\"]\n");
            text(&with(&package, clang).output().unwrap());
            assert_eq!(arguments(&package, "gfx1100"), [(0, 8), (8, 8)], "{word}");
        }
        let Some(cuda) = cuda else { continue };
        package.declare(CUDA);
        text(
            &with(&package, clang)
                .env("CUDA_PATH", cuda)
                .output()
                .unwrap(),
        );
        for target in ["sm_80", "sm_90"] {
            assert_eq!(arguments(&package, target), [(0, 8), (8, 8)], "{word}");
        }
    }
}

#[test]
fn asks_a_compiler_again_that_did_not_answer() {
    let (Some(package), Some(_)) = (package(), support::tool("llvm22", &["clang"])) else {
        return;
    };
    // The newest, which a signal ends while a file is there.
    let killed = format!("[ -e '{}' ] && kill -9 $$", package.at("kill").display());
    script(
        &package,
        "llvm/bin/clang-24",
        &format!("{killed}\nexec /usr/bin/clang-22 \"$@\""),
    );
    script(
        &package,
        "other/bin/clang-23",
        "exec /usr/bin/clang-22 \"$@\"",
    );
    symlink(package.at("lld/ld.lld"), package.at("other/bin/ld.lld")).unwrap();
    package.declare(&format!("{HIP}targets = [\"gfx90a\"]\n"));
    let path = ["llvm/bin", "other/bin"].map(|name| package.at(name).display().to_string());
    let build = || {
        let mut script = package.script();
        script
            .env_remove("OFFLOAD_COMPILER")
            .env("PATH", path.join(":"));
        script
    };
    package.put("kill", "");
    let error = package.fails_with_codes(&mut build());
    assert!(
        error.starts_with("cannot ask a compiler which processors it knows: `llvm/bin/clang-24` failed (signal: 9 (SIGKILL)) [OFF600]\n")
            && error.contains("\nhint: `compiler` in "),
        "{error}"
    );
    fs::remove_file(package.at("kill")).unwrap();
    text(&build().output().unwrap());
    let record = fs::read_to_string(package.at(OUT).join("offload/manifest.json")).unwrap();
    assert!(record.contains("llvm/bin/clang-24\""), "{record}");
}

#[test]
fn takes_a_clang_that_knows_all_targets() {
    let (Some(package), Some(_), Some(clang)) = (
        package(),
        support::tool("llvm16", &["clang"]),
        support::tool("llvm22", &["clang"]),
    ) else {
        return;
    };
    // By its name the newest, which is 16, and links by LTO as the newest do; and one that knows no GPU at all.
    script(
        &package,
        "llvm/bin/clang-24",
        "case \"$*\" in *--no-undefined*) exec /usr/bin/clang-22 -flto \"$@\";; esac\nexec /usr/bin/clang-16 \"$@\"",
    );
    script(
        &package,
        "none/bin/clang-23",
        "case \"$*\" in *print-supported-cpus*) echo \"No available targets are compatible\" >&2; exit 1;; esac\n\
         exec /usr/bin/clang-22 \"$@\"",
    );
    symlink(package.at("lld/ld.lld"), package.at("none/bin/ld.lld")).unwrap();
    symlink(clang.parent().unwrap(), package.at("newest")).unwrap();
    let build = |folders: &[&str], targets: &str| {
        package.declare(&format!("{HIP}targets = [{targets}]\n"));
        let folders: Vec<String> = folders
            .iter()
            .map(|name| package.at(name).display().to_string())
            .collect();
        let mut script = package.script();
        script
            .env_remove("OFFLOAD_COMPILER")
            .env("PATH", format!("{}:/nowhere", folders.join(":")));
        script
    };
    let compiler = |folders: &[&str], targets: &str| {
        text(&build(folders, targets).output().unwrap());
        package.recorded_compiler()
    };
    let all = ["llvm/bin", "none/bin", "newest"];
    assert_eq!(
        compiler(&all, "\"gfx90a\", \"gfx1100\""),
        "llvm/bin/clang-24"
    );
    // Clang 16 does not know this one.
    assert_eq!(compiler(&all, "\"gfx90a\", \"gfx950\""), "newest/clang-22");
    let starts = package.starts();
    assert_eq!(compiler(&all, "\"gfx90a\", \"gfx950\""), "newest/clang-22");
    // A failure is not kept, also where it says something.
    assert_eq!(package.starts(), starts + 1);
    // One with lld comes before a newer one without.
    script(
        &package,
        "bare/bin/clang-24",
        "exec /usr/bin/clang-22 \"$@\"",
    );
    let both = ["bare/bin", "newest"];
    assert_eq!(compiler(&both, "\"gfx90a\""), "newest/clang-22");

    let error = package.fails(&mut build(&all[..2], "\"gfx90a\", \"gfx950\""));
    let expected = "module `kernels`: no compiler for its targets: `llvm/bin/clang-24` (LLVM 24) does not know `gfx950`; \
        `none/bin/clang-23` (LLVM 23) has no back end for `amdgcn-amd-amdhsa` [OFF602]\nhint: install a clang of LLVM 25 or later; or name another clang with `compiler` or ";
    assert!(error.starts_with(expected), "{error}");
    // Who declares one is told that it is the one.
    let mut script = build(&all, "\"gfx90a\", \"gfx950\"");
    let error = package.fails(script.env("OFFLOAD_COMPILER", package.at("llvm/bin/clang-24")));
    let expected = "\n`llvm/bin/clang-24` (LLVM 24) does not know `gfx950`\n\
        hint: `newest/clang-22` does: unset OFFLOAD_COMPILER to use it";
    assert!(
        error.contains("gfx950") && error.ends_with(expected),
        "{error}"
    );
}

/// From 2.41 on, glibc's header defines a type of 128 bits for each clang, which clang before 22 refuses for NVIDIA GPUs.
#[test]
fn compiles_openmp_for_nvidia_with_new_glibc() {
    let glibc = "#if !(defined __INTEL_LLVM_COMPILER && defined SYCL_LANGUAGE_VERSION)\n\
        typedef _Complex float __cfloat128 __attribute__((__mode__(__TC__)));\n#endif\n#include_next <bits/floatn.h>\n";
    let source = "#include <stdlib.h>\n#if defined __INTEL_LLVM_COMPILER || defined SYCL_LANGUAGE_VERSION\n#error left\n#endif\n\
        int run(int x) {\n#pragma omp target map(tofrom : x)\n  x += 1;\n  return x;\n}\n";
    let keys = "sources = [\"kernels/*.c\"]\nflags = [\"-isystem\", \"glibc\"]\ntargets = [\"gfx90a\", \"sm_80\"]\n";
    let (Some(package), Some(new), Some(ptxas)) = (
        Package::new(keys),
        support::tool("llvm22", &["clang"]),
        support::tool("cuda12", &["cuda-12/bin/ptxas"]),
    ) else {
        return;
    };
    let script = || {
        let mut script = package.script();
        script.env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
        script
    };
    package.put("glibc/bits/floatn.h", glibc);
    package.put("kernels/k.c", source);
    text(&script().output().unwrap());
    let searches = |script: &mut Command| {
        let plan = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
        let plan = String::from_utf8(plan.stderr).unwrap();
        let lines = plan.lines().filter(|line| line.contains("-I "));
        let mut devices = lines.filter(|line| line.contains("kernel-headers/offload/glibc"));
        let first = devices.next().map(str::to_owned);
        assert_eq!(devices.next(), None, "{plan}");
        first
    };
    let old = searches(&mut script()).unwrap();
    assert!(
        old.contains("-fopenmp-targets=nvptx64-nvidia-cuda"),
        "{old}"
    );
    assert_eq!(searches(script().env("OFFLOAD_COMPILER", new)), None);
}

/// Packages of LLVM 22 have OpenMP's runtime for the host alone.
#[test]
fn takes_the_newest_clang_with_openmps_runtime_for_the_gpus() {
    let keys = |targets: &str| {
        format!("language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [{targets}]\n")
    };
    let (Some(package), Some(_)) = (Package::new(""), support::tool("llvm22", &["clang"])) else {
        return;
    };
    fs::create_dir_all(package.at("22/lib")).unwrap();
    let library = "/usr/lib/llvm-19/lib/libomptarget.so.19.1";
    fs::copy(library, package.at("22/lib/libomptarget.so")).unwrap();
    script(&package, "22/bin/clang", "exec /usr/bin/clang-22 \"$@\"");
    fs::create_dir_all(package.at("bin")).unwrap();
    symlink(package.at("22/bin/clang"), package.at("bin/clang-22")).unwrap();
    symlink("/usr/lib/llvm-19/bin/clang", package.at("bin/clang-19")).unwrap();
    let run = |targets: &str| {
        package.declare(&keys(targets));
        let mut script = package.script();
        script
            .env_remove("OFFLOAD_COMPILER")
            .env("PATH", package.at("bin"))
            .env("OFFLOAD_DRY_RUN", "1");
        String::from_utf8(script.output().unwrap().stderr).unwrap()
    };
    let (cpu, gpu) = (run("\"x86_64-pc-linux-gnu\""), run("\"gfx90a\""));
    assert!(cpu.contains("bin/clang-22 "), "{cpu}");
    assert!(gpu.contains("bin/clang-19 "), "{gpu}");
    fs::remove_file(package.at("bin/clang-19")).unwrap();
    let none = run("\"gfx90a\"");
    assert!(
        none.contains("`libomptarget-amdgpu-gfx90a.bc` not found (searched: ")
            && none.contains("/22/lib/amdgcn-amd-amdhsa) [OFF605]\nhint: install an older clang with OpenMP's runtime for GPUs"),
        "{none}"
    );
}

#[test]
fn takes_the_standard_for_the_sources_of_its_language() {
    let keys =
        "language = \"openmp\"\nsources = [\"kernels/*\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    let Some(package) = Package::new("") else {
        return;
    };
    fs::remove_file(package.at("kernels/k.h")).unwrap();
    let region = "#pragma omp target map(tofrom : x)\n  x += 1;\n  return x;\n}\n";
    package.put("kernels/k.c", &format!("int f(int x) {{\n{region}"));
    let cpp = "static_assert(__cplusplus == 202002L);\nint g(int x) {\n";
    package.put("kernels/k.cpp", &format!("{cpp}{region}"));
    package.declare(&format!("{keys}std = \"c++20\"\n"));
    text(&package.script().output().unwrap());
    // With this flag, both are C++.
    let mut script = package.script();
    script
        .env("OFFLOAD_FLAGS", "-x;c++")
        .env("OFFLOAD_DRY_RUN", "1");
    let plan = String::from_utf8(script.output().unwrap().stderr).unwrap();
    for source in ["kernels/k.c ", "kernels/k.cpp "] {
        let mut lines = plan.lines().filter(|line| line.contains("clang "));
        let compile = lines.find(|line| line.contains(source)).unwrap();
        assert!(compile.contains(" -std=c++20 "), "{compile}");
    }
    // Alone, C has no such standard.
    fs::remove_file(package.at("kernels/k.cpp")).unwrap();
    let error = package.fails(&mut package.script());
    assert!(
        error.contains("'-std=c++20' not allowed with 'C'"),
        "{error}"
    );
    let error = package.fails(package.script().env("OFFLOAD_EXCLUDE", "kernels/*"));
    assert!(
        error.contains("OFFLOAD_EXCLUDE: `exclude` leaves out every source of the module"),
        "{error}"
    );
}

/// The back ends of clang 16 to 22 list names such as `sm_100f`, which their front ends refuse.
#[test]
fn says_which_compiler_knows_families_of_processors() {
    let (Some(package), Some(_)) = (package(), support::tool("llvm22", &["clang-22"])) else {
        return;
    };
    for (declared, expected) in [
        ("", "LLVM 22) does not know `sm_100f`"),
        (
            "compiler = \"clang-22\"\n",
            "unsupported CUDA gpu architecture: sm_100f",
        ),
    ] {
        let cuda = CUDA.replace("\"sm_80\", \"sm_90\"", "\"compute_100f\"");
        package.declare(&format!("{cuda}{declared}"));
        let error = package.fails(package.script().env_remove("OFFLOAD_COMPILER"));
        let hint = "hint: clang up to 22 knows no family-specific processors such as `compute_100f`: set `compiler = \"nvcc\"`, or use \
             `compute_100` or `compute_100a`";
        assert!(error.contains(expected), "{error}");
        assert!(error.contains(hint), "{error}");
    }
}
