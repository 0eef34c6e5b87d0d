//! Compilers of ROCm trees: found, started with the command lines of clang, and their images. The trees are made of
//! LLVM 22 and of scripts in the place of AMD's own programs, which hand on what they are given.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use support::device_libraries;
use support::package::{OUT, Package, text};

const KEYS: &str =
    "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n";
const ONE: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx1100\"]\n";
/// They include ROCm's headers, and need nothing of its device libraries.
const HEADERS: &str = "flags = [\"-nogpulib\"]\n";
const KERNEL: &str = "#include <hip/hip_runtime.h>\n__device__ int twice(int x);\n\
    extern \"C\" __global__ void scale(int *x) { *x = twice(*x) + SDK; }\n";
const HELPER: &str =
    "#include <hip/hip_runtime.h>\n__device__ int twice(int x) { return 2 * x; }\n";
const RUNTIME: &str =
    "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n";

/// For tests in which the targets do not matter.
fn keys() -> &'static str {
    if support::tests_all() { KEYS } else { ONE }
}

struct Tree<'p> {
    package: &'p Package,
    name: &'static str,
}

impl Tree<'_> {
    /// A tree in the package; its headers say its name.
    fn new<'p>(package: &'p Package, name: &'static str) -> Tree<'p> {
        let tree = Tree { package, name };
        let version = "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=4\nHIP_VERSION_PATCH=1\n";
        package.put(&tree.at("share/hip/version"), version);
        let sdk: u32 = name.bytes().map(u32::from).sum();
        let header = format!("{RUNTIME}#define SDK {sdk}\n");
        package.put(&tree.at("include/hip/hip_runtime.h"), &header);
        for tool in ["ld.lld", "llvm-link"] {
            let real = Path::new("/usr/lib/llvm-22/bin").join(tool);
            fs::create_dir_all(package.at(&tree.at("lib/llvm/bin"))).unwrap();
            symlink(real, package.at(&tree.at("lib/llvm/bin")).join(tool)).unwrap();
        }
        symlink(
            "/usr/lib/llvm-22/lib/clang",
            package.at(&tree.at("lib/llvm/lib")),
        )
        .unwrap();
        // It says where it is, as AMD's does.
        let bin = package.at(&tree.at("lib/llvm/bin"));
        let clang = format!(
            "case \"$*\" in *--version*) echo 'AMD clang version 19.0.0git (roc-6.4.1)'; \
             echo 'InstalledDir: {}'; exit;; esac\nexec /usr/bin/clang-22 \"$@\"",
            bin.display()
        );
        tree.script("lib/llvm/bin/clang", &clang);
        tree.script("lib/llvm/bin/amdclang++", &clang);
        fs::create_dir_all(package.at(&tree.at("bin"))).unwrap();
        let front = package.at(&tree.at("bin/amdclang++"));
        symlink("../lib/llvm/bin/amdclang++", front).unwrap();
        let hipcc = format!(
            "case \"$*\" in *--version*) echo 'HIP version: 6.4.43483-0';; esac\n\
             exec \"${{HIP_CLANG_PATH:-{0}}}/clang\" --rocm-path='{1}' -isystem '{1}/include' $HIPCC_COMPILE_FLAGS_APPEND \"$@\"",
            bin.display(),
            package.at(name).display()
        );
        tree.script("bin/hipcc", &hipcc);
        tree
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.name)
    }

    /// A program that counts its starts.
    fn script(&self, path: &str, text: &str) {
        script(self.package, &self.at(path), text);
    }
}

fn script(package: &Package, path: &str, text: &str) {
    let log = package.at("starts");
    let start = format!("#!/bin/sh\necho {path} \"$@\" >> '{}'\n", log.display());
    package.put(path, &format!("{start}{text}\n"));
}

fn package(keys: &str) -> Option<Package> {
    support::tool("llvm22", &["clang", "clang-22"])?;
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", KERNEL);
    package.put("kernels/helper.hip", HELPER);
    package.declare(keys);
    Some(package)
}

fn build(package: &Package) -> Command {
    let mut script = package.script();
    script.env_remove("OFFLOAD_COMPILER");
    script
}

/// What the record says of the compiler, and the first command.
fn record(package: &Package) -> [String; 3] {
    let record = fs::read_to_string(package.at(OUT).join("offload/manifest.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let module = &record["modules"][0];
    let root = format!("{}/", package.folder.root().display());
    let texts = [
        &module["compiler"],
        &module["compiler_version"],
        // After the headers of kernels, which no command makes.
        &module["files"][1]["commands"][0],
    ];
    texts.map(|value| value.as_str().unwrap().replace(&root, ""))
}

/// What was started since the last call.
fn started(package: &Package) -> Vec<String> {
    let log = fs::read_to_string(package.at("starts")).unwrap_or_default();
    let _ = fs::remove_file(package.at("starts"));
    let root = format!("{}/", package.folder.root().display());
    log.lines().map(|line| line.replace(&root, "")).collect()
}

#[test]
fn compiles_with_hipcc_and_links_with_its_clang() {
    let Some(package) = package(&format!("compiler = \"hipcc\"\n{KEYS}{HEADERS}")) else {
        return;
    };
    let tree = Tree::new(&package, "rocm");
    let rocm = package.at("rocm");
    let told = text(&build(&package).env("ROCM_PATH", &rocm).output().unwrap());
    for line in [
        "cargo::rerun-if-env-changed=HIPCC_COMPILE_FLAGS_APPEND".to_owned(),
        format!(
            "cargo::rerun-if-changed={}",
            rocm.join("bin/hipcc").display()
        ),
        format!(
            "cargo::rerun-if-changed={}",
            rocm.join("lib/llvm/bin/clang").display()
        ),
        "cargo::rustc-cfg=offload_target_gfx1100".to_owned(),
    ] {
        assert!(told.contains(&format!("{line}\n")), "{line}\n{told}");
    }
    let [compiler, version, command] = record(&package);
    assert_eq!(compiler, "rocm/bin/hipcc");
    assert_eq!(
        version,
        "HIP version: 6.4.43483-0; AMD clang version 19.0.0git (roc-6.4.1)"
    );
    let start = "rocm/bin/hipcc --no-default-config -x hip --offload-device-only --offload-arch=gfx90a -fgpu-rdc ";
    assert!(command.starts_with(start), "{command}");
    // It says itself where its tree is.
    assert!(!command.contains("--rocm-path"), "{command}");
    let starts = started(&package);
    let links = starts.iter().filter(|line| line.contains("-flto"));
    let links: Vec<&String> = links.collect();
    assert_eq!(links.len(), 2, "{starts:?}");
    assert!(
        links[0].starts_with("rocm/lib/llvm/bin/clang --no-default-config -o "),
        "{links:?}"
    );
    assert!(
        starts.iter().all(|line| !line.contains("arch=native")),
        "{starts:?}"
    );
    let images = fs::read(package.at(OUT).join("offload/kernels/images")).unwrap();
    assert!(images.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));

    // Nothing changed; what hipcc reads; the clang behind it.
    let compiles = |variables: &[(&str, &str)]| {
        let mut script = build(&package);
        script
            .env("ROCM_PATH", &rocm)
            .envs(variables.iter().copied());
        text(&script.output().unwrap());
        let starts = started(&package).into_iter();
        starts
            .filter(|line| line.starts_with("rocm/bin/hipcc --no-default"))
            .count()
    };
    assert_eq!(compiles(&[]), 0);
    let flags = [("HIPCC_COMPILE_FLAGS_APPEND", "-DSDK=7 -Wno-macro-redefined")];
    assert_eq!(compiles(&flags), 4);
    assert_eq!(compiles(&flags), 0);
    assert_eq!(compiles(&[]), 4);
    let clang = fs::read_to_string(rocm.join("lib/llvm/bin/clang")).unwrap();
    package.put(&tree.at("lib/llvm/bin/clang"), &format!("{clang}# newer\n"));
    assert_eq!(compiles(&[]), 4);
}

#[test]
fn finds_compilers_of_trees_where_trees_are() {
    let keys = keys();
    let Some(package) = package(&format!("compiler = \"amdclang++\"\n{keys}{HEADERS}")) else {
        return;
    };
    for name in ["one", "two", "three"] {
        Tree::new(&package, name);
    }
    let root = |name: &str| package.at(name).display().to_string();
    let hipconfig = format!(
        "[ \"$*\" = --rocmpath ] && echo a warning >&2 && printf '{}'",
        root("one")
    );
    script(&package, "tools/hipconfig", &hipconfig);
    script(
        &package,
        "sdk/rocm-sdk",
        &format!("[ \"$*\" = 'path --root' ] && echo '{}'", root("two")),
    );
    let path = |folders: &[&str]| {
        let folders: Vec<String> = folders.iter().map(|name| root(name)).collect();
        format!("{}:/usr/bin:/bin", folders.join(":"))
    };
    let built = |variables: &[(&str, String)]| {
        text(
            &build(&package)
                .envs(variables.iter().cloned())
                .output()
                .unwrap(),
        );
        let [compiler, _, command] = record(&package);
        let place = command.split("--rocm-path=").nth(1).unwrap_or_default();
        let place = place.split(' ').next().unwrap_or_default().to_owned();
        // Before those of the system.
        assert!(
            command.contains(&format!("{place} -isystem {place}/include ")),
            "{command}"
        );
        [compiler, place]
    };
    let of = |name: &str| [format!("{name}/bin/amdclang++"), name.to_owned()];
    let both = path(&["tools", "sdk"]);
    // One that cannot answer is asked again: it does not stand for a system without that tree.
    script(&package, "tools/hipconfig", "exec /nonexistent/perl \"$@\"");
    let error = package.fails(build(&package).env("PATH", &both));
    assert!(
        error.starts_with(
            "cannot ask `hipconfig` where ROCm is: `tools/hipconfig` failed (exit status: 127)\n"
        ) && error.ends_with("\nhint: set ROCM_PATH to ROCm's root"),
        "{error}"
    );
    script(&package, "tools/hipconfig", &hipconfig);
    assert_eq!(built(&[("PATH", both.clone())]), of("one"));
    assert_eq!(built(&[("PATH", path(&["sdk"]))]), of("two"));
    // Variables say it without a question, the first of them first.
    started(&package);
    assert_eq!(
        built(&[("PATH", both.clone()), ("ROCM_HOME", root("three"))]),
        of("three")
    );
    assert!(
        started(&package)
            .iter()
            .all(|line| !line.contains("hipconfig") && !line.contains("rocm-sdk"))
    );
    let two = [
        ("PATH", both),
        ("ROCM_PATH", root("two")),
        ("HIP_PATH", root("one")),
    ];
    assert_eq!(built(&two), of("two"));
    // What is declared by its path is of its own tree.
    let declared = [("OFFLOAD_COMPILER", root("three/bin/amdclang++"))];
    assert_eq!(built(&declared), of("three"));
    assert_eq!(built(&[("HIPCXX", root("one/bin/amdclang++"))]), of("one"));
    assert_eq!(built(&[("PATH", path(&["two/bin"]))]), of("two"));

    if !Path::new("/opt/rocm").exists() {
        let error = package.fails(&mut build(&package));
        assert_eq!(
            error,
            "module `kernels`: `amdclang++` not found (searched: PATH, /opt/rocm, /usr) [OFF605]\n\
             hint: install ROCm's compilers and set ROCM_PATH to its root, or leave `compiler` out: any clang compiles HIP"
        );
    }
    let mut script = build(&package);
    script
        .env("OFFLOAD_COMPILER", "hipcc")
        .env("ROCM_PATH", root("two"));
    let error = package.fails(script.env("HIP_CLANG_PATH", "/nowhere"));
    assert!(
        error.contains("two/bin/hipcc --offload-arch=gfx906 --version"),
        "{error}"
    );
    package.declare(
        &format!("compiler = \"hipcc\"\n{KEYS}{HEADERS}")
            .replace("\"hip\"", "\"openmp\"")
            .replace("-nogpulib", "-xc"),
    );
    assert_eq!(
        package.fails(&mut build(&package)),
        "Cargo.toml:5:1: `hipcc` compiles `hip`, not `openmp`\n\
         hint: remove `compiler` to use a clang, or set it only in modules of its language"
    );
}

#[test]
fn names_device_libraries_that_lie_beside_another_clang() {
    let (Some(package), Some(clang)) = (package(keys()), support::tool("llvm19", &["clang"]))
    else {
        return;
    };
    Tree::new(&package, "rocm");
    let folder = package.at("rocm/lib/llvm-17/lib/clang/17/amdgcn/bitcode");
    device_libraries::put(&folder, "double __ocml_twice(double x) { return x + x; }\n");
    // Not for this clang to read.
    package.put(
        "rocm/lib/llvm-22/lib/clang/22/amdgcn/bitcode/ocml.bc",
        "newer",
    );
    package.put(
        "kernels/helper.hip",
        &HELPER.replace("2 * x", "__ocml_twice(x)").replace(
            "__device__ int",
            "extern \"C\" __device__ double __ocml_twice(double);\n__device__ int",
        ),
    );
    let mut script = build(&package);
    script
        .env("OFFLOAD_COMPILER", clang)
        .env("ROCM_PATH", package.at("rocm"));
    text(&script.output().unwrap());
    let [_, _, command] = record(&package);
    let expected =
        "--rocm-path=rocm --rocm-device-lib-path=rocm/lib/llvm-17/lib/clang/17/amdgcn/bitcode ";
    assert!(command.contains(expected), "{command}");
    // clang reads the variable itself.
    script.env("HIP_DEVICE_LIB_PATH", &folder);
    text(&script.output().unwrap());
    assert!(!record(&package)[2].contains("device-lib-path"));
}

#[test]
fn takes_the_clang_of_a_tree_that_is_named_for_sources_that_use_it() {
    let keys = keys();
    let Some(package) = package(&format!("{keys}{HEADERS}")) else {
        return;
    };
    Tree::new(&package, "rocm");
    let rocm = package.at("rocm");
    let compiler = |script: &mut Command| {
        text(&script.output().unwrap());
        record(&package)[0].clone()
    };
    assert_eq!(
        compiler(build(&package).env("ROCM_PATH", &rocm)),
        "rocm/lib/llvm/bin/clang"
    );
    // Found, and not named: the newest of `PATH` that there is.
    script(
        &package,
        "tools/rocm-sdk",
        &format!("echo '{}'", rocm.display()),
    );
    let path = format!("{}:/usr/bin:/bin", package.at("tools").display());
    assert_eq!(
        compiler(build(&package).env("PATH", &path)),
        "/usr/bin/clang-22"
    );
    // There is no other.
    let path = package.at("tools");
    assert_eq!(
        compiler(build(&package).env("PATH", path)),
        "rocm/lib/llvm/bin/clang"
    );
    // Sources that need nothing of ROCm do not depend on where it is.
    package.put(
        "kernels/k.hip",
        &KERNEL
            .replace("#include <hip/hip_runtime.h>\n", RUNTIME)
            .replace("SDK", "1"),
    );
    package.put(
        "kernels/helper.hip",
        &HELPER.replace("#include <hip/hip_runtime.h>\n", RUNTIME),
    );
    package.declare(&format!("{keys}flags = [\"-nogpulib\", \"-nogpuinc\"]\n"));
    assert_eq!(
        compiler(build(&package).env("ROCM_PATH", &rocm)),
        "/usr/bin/clang-22"
    );
}

#[test]
fn says_how_to_install_device_libraries_that_clang_misses() {
    let Some(package) = package(ONE) else {
        return;
    };
    let _tree = Tree::new(&package, "rocm");
    let error = package.fails(build(&package).env("ROCM_PATH", package.at("rocm")));
    assert!(error.contains("cannot find ROCm device library"), "{error}");
    let hint = "\nhint: install ROCm's device libraries (";
    assert!(error.contains(hint), "{error}");
    assert!(
        error.contains(") or name their folder by HIP_DEVICE_LIB_PATH"),
        "{error}"
    );
    if support::tool("llvm19", &["clang-19"]).is_none() {
        return;
    }
    device_libraries::put(&package.at("rocm/amdgcn/bitcode"), "");
    if support::tool("llvm22", &["clang-22"]).is_some() {
        let mut script = build(&package);
        script.env("ROCM_PATH", package.at("rocm"));
        script.env("HIP_DEVICE_LIB_PATH", package.at("rocm/amdgcn/bitcode"));
        let error = package.fails(script.env("OFFLOAD_COMPILER", "clang-22"));
        let hint = "\nhint: set `flags = [\"-mcode-object-version=5\"]`, or `compiler = \"clang-19\"`, or install ROCm 6.3 or later";
        assert!(error.contains(hint), "{error}");
    }
    package.declare(&ONE.replace("gfx1100", "gfx1201\"]\nflags = [\"-mcode-object-version=5"));
    let error = package.fails(build(&package).env("ROCM_PATH", package.at("rocm")));
    let hint = "\nhint: the device libraries are older than this processor: install a newer ROCm, or remove it from `targets`";
    assert!(error.contains(hint), "{error}");
}

#[test]
fn says_which_headers_declare_the_names_of_hip() {
    let Some(package) = package(&format!("{ONE}{HEADERS}")) else {
        return;
    };
    fs::remove_file(package.at("kernels/helper.hip")).unwrap();
    let source = "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] *= 2; }\n";
    package.put("kernels/k.hip", source);
    let error = package.fails(&mut build(&package));
    let hint = "\nhint: a header declares HIP's names: include `<hip/hip_runtime.h>` of ROCm, or `<offload/gpu.h>`, which needs no ROCm\n";
    assert!(error.contains(hint), "{error}");
}

#[test]
fn says_how_to_install_a_library_whose_header_is_missing() {
    let Some(package) = package(&format!("{ONE}{HEADERS}")) else {
        return;
    };
    let tree = Tree::new(&package, "rocm");
    let source = format!("#include <hipblas/hipblas.h>\n{HELPER}");
    package.put("kernels/helper.hip", &source);
    let mut script = build(&package);
    script.env("ROCM_PATH", package.at(tree.name));
    let hint = "\nhint: this header is part of a library of ROCm: install its development package (Debian, Ubuntu: `apt install \
        libhipblas-dev`; Fedora: `dnf install hipblas-devel`; other libraries likewise), or add its folder to `include`";
    // As in most workflows: the message has colors, also within the words that the hint is for.
    for colors in ["never", "always"] {
        let error = package.fails(script.env("CARGO_TERM_COLOR", colors));
        assert!(
            error.contains("'hipblas/hipblas.h' file not found") && error.contains(hint),
            "{error}"
        );
    }
}

#[test]
fn says_where_headers_of_hip_come_from() {
    let Some(package) = package(&format!("{ONE}{HEADERS}")) else {
        return;
    };
    let tree = Tree::new(&package, "rocm");
    let mut script = build(&package);
    script.env("ROCM_PATH", package.at(tree.name));
    // No ROCm has these two.
    let hints = [
        (
            "hip/hip_runtime_none.h",
            "\nhint: install HIP's headers (Debian, Ubuntu: `apt install libamdhip64-dev`; Fedora: `dnf install rocm-hip-devel`; Arch: \
            `pacman -S hip-runtime-amd`), name ROCm's folder by ROCM_PATH, or include `<offload/gpu.h>`, which needs no ROCm",
        ),
        (
            "hip/hip_none.h",
            "\nhint: HIP's headers on this machine lack this one, which a newer ROCm may have: install it and name its folder by ROCM_PATH",
        ),
    ];
    for (header, hint) in hints {
        package.put(
            "kernels/helper.hip",
            &format!("#include <{header}>\n{HELPER}"),
        );
        let error = package.fails(&mut script);
        let missing = format!("'{header}' file not found");
        assert!(error.contains(&missing) && error.contains(hint), "{error}");
    }
}
