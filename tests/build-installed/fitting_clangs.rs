//! Which clang compiles for an SDK: by the release of its headers and device libraries. The trees have no more than these.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use support::package::Package;

const CUDA: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"compute_80\"]\n";
const HIP: &str =
    "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n";

fn package(keys: &str) -> Option<Package> {
    support::tool("llvm22", &["clang-22", "clang"])?;
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.cu", "__global__ void k() {}\n");
    let hip = "#include <hip/hip_runtime.h>\n__global__ void k() {}\n";
    package.put("kernels/k.hip", hip);
    for release in ["19", "22"] {
        fs::create_dir_all(package.at(release)).unwrap();
        let clang = format!("clang-{release}");
        let real = format!("/usr/lib/llvm-{release}/bin/clang");
        symlink(real, package.at(release).join(clang)).unwrap();
    }
    // One of a later release, as far as its name tells.
    later_clang(&package, "23/clang-23");
    package.put("bin/ld.lld", "");
    package.declare(keys);
    Some(package)
}

fn later_clang(package: &Package, name: &str) {
    package.put(name, "#!/bin/sh\nexec /usr/lib/llvm-22/bin/clang \"$@\"\n");
}

fn put_hip(package: &Package, major: u32, minor: u32) {
    let version = format!("#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n");
    package.put("rocm/include/hip/hip_version.h", &version);
    package.put("rocm/include/hip/hip_runtime.h", "");
}

/// A dry run with the clangs of these releases.
fn script(package: &Package, releases: &[&str]) -> Command {
    let mut script = package.script();
    let folders = releases.iter().map(|name| package.at(name));
    script
        .env_remove("OFFLOAD_COMPILER")
        .env("OFFLOAD_DRY_RUN", "1")
        .env("PATH", std::env::join_paths(folders).unwrap());
    script
}

/// The first compile of the plan.
fn compile(script: &mut Command) -> String {
    let output = script.output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    let mut lines = plan.lines().filter(|line| line.contains("--offload-arch="));
    lines.next().unwrap_or_else(|| panic!("{plan}")).to_owned()
}

#[test]
fn takes_the_newest_clang_that_reads_the_toolkits_headers() {
    let Some(package) = package(CUDA) else { return };
    let toolkit = |number: &str| {
        package.put("cuda/include/cuda_runtime.h", "");
        let version = format!("#define CUDA_VERSION {number}\n");
        package.put("cuda/include/cuda.h", &version);
        package.at("cuda")
    };
    let script = |releases: &[&str]| {
        let mut script = script(&package, releases);
        script.env("CUDA_PATH", package.at("cuda"));
        script
    };
    for (number, release) in [("12040", "22"), ("13050", "22")] {
        toolkit(number);
        let line = compile(&mut script(&["19", "22"]));
        assert!(
            line.contains(&format!("/{release}/clang-{release} ")),
            "{line}"
        );
    }
    toolkit("12090");
    assert!(compile(&mut script(&["19"])).contains("/19/clang-19 "));
    toolkit("13000");
    let hint = "hint: install clang 22 or later (Debian, Ubuntu: `apt install clang-22 lld-22 llvm-22`; \
        Fedora: `dnf install clang lld llvm`; Arch: `pacman -S clang lld llvm`; conda-forge: `conda install clangxx lld llvm-tools`), \
        or set CUDA_HOME to CUDA 12.9 or older, or set `compiler = \"nvcc\"`";
    let problem = "`19/clang-19` (LLVM 19) cannot read the headers of CUDA 13.0";
    assert_eq!(
        package.fails(&mut script(&["19"])),
        format!("module `kernels`: no compiler for its SDK: {problem} [OFF603]\n{hint}")
    );
    let declared = package.at("19/clang-19");
    assert_eq!(
        package.fails(script(&["22"]).env("OFFLOAD_COMPILER", &declared)),
        format!(
            "module `kernels`: {problem} [OFF603]\n{hint}\nnote: OFFLOAD_COMPILER names this compiler"
        )
    );
    // A root in `flags` counts, too.
    let flags = format!(
        "flags = [\"--cuda-path={}\"]\n",
        package.at("cuda").display()
    );
    package.declare(&format!("{CUDA}{flags}"));
    let error = package.fails(script(&["19"]).env_remove("CUDA_PATH"));
    assert!(error.contains(problem), "{error}");
    // Sources that do without the toolkit are compiled by any clang.
    package.put(
        "kernels/k.cu",
        "#include <offload/gpu.h>\n__global__ void k() {}\n",
    );
    package.declare(CUDA);
    assert!(compile(&mut script(&["19"])).contains("/19/clang-19 "));
}

#[test]
fn takes_the_newest_clang_that_reads_the_device_libraries() {
    let Some(package) = package(HIP) else { return };
    put_hip(&package, 6, 4);
    package.put("rocm/share/hip/version", "");
    let script = |releases: &[&str]| {
        let mut script = script(&package, releases);
        script.env("ROCM_PATH", package.at("rocm"));
        script
    };
    let library = |clang: &str, folder: &str| {
        package.put("none.c", "");
        fs::create_dir_all(package.at(folder)).unwrap();
        let mut command = Command::new(package.at(clang));
        command
            .args([
                "--target=amdgcn-amd-amdhsa",
                "-nogpulib",
                "-emit-llvm",
                "-c",
            ])
            .arg(package.at("none.c"))
            .arg("-o")
            .arg(package.at(folder).join("ocml.bc"));
        support::run(&mut command);
    };
    // As in AMD's tree: written by LLVM 22, which LLVM 19 does not read.
    let folder = "rocm/amdgcn/bitcode";
    library("22/clang-22", folder);
    package.put(&format!("{folder}/oclc_abi_version_600.bc"), "");
    let problem = "`19/clang-19` (LLVM 19) cannot read the device libraries of LLVM 22 in `rocm/amdgcn/bitcode`";
    let error = package.fails(&mut script(&["19"]));
    assert!(error.starts_with(&format!("module `kernels`: no compiler for its SDK: {problem} [OFF603]\nhint: install clang 22 or later (")), "{error}");
    let line = compile(&mut script(&["19", "22"]));
    assert!(line.contains("/22/clang-22 "), "{line}");
    // Before ROCm 6.3: no libraries for the code objects that clang 20 and later make.
    fs::remove_file(package.at(folder).join("oclc_abi_version_600.bc")).unwrap();
    library("19/clang-19", folder);
    let line = compile(&mut script(&["19", "22"]));
    assert!(line.contains("/19/clang-19 "), "{line}");
    let error = package.fails(&mut script(&["22"]));
    let expected = "`22/clang-22` (LLVM 22) needs device libraries for code objects of version 6 (ROCm 6.3 or later), \
        which `rocm/amdgcn/bitcode` does not have [OFF603]\nhint: install clang 19 or older (";
    assert!(error.contains(expected), "{error}");
    assert!(
        error.ends_with("), or set `flags = [\"-mcode-object-version=5\"]`"),
        "{error}"
    );
    package.declare(&format!("{HIP}flags = [\"-mcode-object-version=5\"]\n"));
    assert!(compile(&mut script(&["22"])).contains("/22/clang-22 "));
    // As in Debian's: beside the clang of their release.
    package.declare(HIP);
    fs::create_dir_all(package.at("rocm/lib/llvm-21/lib/clang/21/amdgcn")).unwrap();
    let debian = package.at("rocm/lib/llvm-21/lib/clang/21/amdgcn/bitcode");
    fs::rename(package.at(folder), debian).unwrap();
    library(
        "22/clang-22",
        "rocm/lib/llvm-21/lib/clang/21/amdgcn/bitcode",
    );
    let error = package.fails(&mut script(&["19"]));
    assert!(
        error.contains("cannot read the device libraries of LLVM 22 in `rocm/lib/llvm-21/"),
        "{error}"
    );
    // Nothing is asked of libraries that are not linked.
    package.declare(&format!("{HIP}flags = [\"-nogpulib\"]\n"));
    assert!(compile(&mut script(&["19"])).contains("/19/clang-19 "));
}

#[test]
fn takes_the_newest_clang_that_reads_hips_headers() {
    let Some(package) = package(&format!("{HIP}flags = [\"-nogpulib\"]\n")) else {
        return;
    };
    let script = |releases: &[&str]| {
        let mut script = script(&package, releases);
        script.env("ROCM_PATH", package.at("rocm"));
        script
    };
    let declared = |release: &str| {
        let mut script = script(&["19"]);
        script.env(
            "OFFLOAD_COMPILER",
            package.at(&format!("{release}/clang-{release}")),
        );
        script
    };
    let rows = [
        ((5, 2), "19", None),
        ((5, 2), "22", Some("`hip_fp16.h`")),
        ((5, 2), "23", None),
        ((6, 4), "23", None),
        ((7, 1), "23", Some("`hip_fp16.h` or `hip_bf16.h`")),
    ];
    for ((major, minor), release, without) in rows {
        put_hip(&package, major, minor);
        let newest = if major == 5 { "19" } else { "22" };
        let line = compile(&mut script(&["19", newest, release]));
        assert!(line.contains(&format!("/clang-{newest} ")), "{line}");
        if release == "19" {
            continue;
        }
        let error = package.fails(&mut script(&[release]));
        let problem = format!(
            "`{release}/clang-{release}` (LLVM {release}) cannot read the headers of HIP {major}.{minor}"
        );
        assert!(error.contains(&problem), "{error}");
        let way = |headers| {
            format!(", or set `compiler = \"clang-{release}\"` if no source includes {headers}")
        };
        match without {
            Some(headers) => {
                assert!(error.ends_with(&way(headers)), "{error}");
                compile(&mut declared(release));
            }
            None => {
                assert!(!error.contains("if no source includes"), "{error}");
                let error = package.fails(&mut declared(release));
                assert!(error.contains(&problem), "{error}");
            }
        }
    }
    put_hip(&package, 7, 15);
    let line = compile(&mut script(&["19", "22", "23"]));
    assert!(line.contains("/clang-23 "), "{line}");
}

/// As Ubuntu 26.10 has it: ROCm in `/usr`, with device libraries for a newer clang than that of `PATH`, beside which they lie.
#[test]
fn takes_the_clang_of_the_tree_if_no_other_fits() {
    let Some(package) = package(HIP) else { return };
    put_hip(&package, 7, 15);
    let llvm = "rocm/lib/rocm/llvm";
    later_clang(&package, &format!("{llvm}/bin/clang-23"));
    symlink("clang-23", package.at(&format!("{llvm}/bin/clang"))).unwrap();
    package.put(&format!("{llvm}/lib/clang/23/amdgcn/bitcode/ocml.bc"), "");
    package.put(
        &format!("{llvm}/lib/clang/23/amdgcn/bitcode/oclc_abi_version_600.bc"),
        "",
    );
    // Found, not named by a variable.
    package.put(
        "tools/hipconfig",
        &format!("#!/bin/sh\necho {}\n", package.at("rocm").display()),
    );
    let mut script = script(&package, &["22", "tools"]);
    script
        .env_remove("ROCM_PATH")
        .env_remove("ROCM_HOME")
        .env_remove("HIP_PATH");
    let line = compile(&mut script);
    assert!(line.contains("/rocm/lib/rocm/llvm/bin/clang "), "{line}");
    assert!(
        line.contains("/rocm/lib/rocm/llvm/lib/clang/23/amdgcn/bitcode "),
        "{line}"
    );
}

#[test]
fn defines_the_wavefront_size_that_headers_read() {
    let Some(package) = package(HIP) else { return };
    let plan = |release: &str, major: u32, keys: &str| {
        put_hip(&package, major, 4);
        package.declare(&format!("{HIP}host = true\n{keys}"));
        let mut script = script(&package, &[release]);
        let output = script
            .env("ROCM_PATH", package.at("rocm"))
            .output()
            .unwrap();
        let plan = String::from_utf8(output.stderr).unwrap();
        let compiles = plan.lines().filter(|line| line.contains(" -x hip "));
        let value = |line: &str| {
            let (_, rest) = line.split_once("-D__AMDGCN_WAVEFRONT_SIZE=")?;
            Some(rest.split(' ').next()?.to_owned())
        };
        let values: Vec<Option<String>> = compiles.map(value).collect();
        assert_eq!(values.len(), 3, "{plan}");
        values
    };
    let of = |texts: [&str; 3]| texts.map(|text| Some(text.to_owned())).to_vec();
    assert_eq!(plan("22", 6, ""), of(["64", "64", "32"]));
    let none = vec![None; 3];
    assert_eq!(plan("22", 7, ""), none);
    assert_eq!(plan("19", 6, ""), none);
    let wide = "flags = [\"-mwavefrontsize64\"]\n";
    assert_eq!(plan("22", 6, wide), of(["64", "64", "64"]));
    let own = "define = { __AMDGCN_WAVEFRONT_SIZE = 16 }\n";
    assert_eq!(plan("22", 6, own), of(["16", "16", "16"]));
    let without = "flags = [\"-nogpuinc\"]\n";
    assert_eq!(plan("22", 6, without), none);
}
