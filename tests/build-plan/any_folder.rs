//! The same sources, manifest, compilers and flags give the same images, libraries and Rust files in any folder.

use crate::support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use support::cuda_package::cuda;
use support::package::{OUT, Package, text};

const HIP: &str = "#include <offload/gpu.h>\n#include \"name.h\"\n\
    static __device__ int hidden = 3;\n__device__ const char name[] = __FILE__;\n\
    __global__ void add(int *x, int n) { x[0] += hidden; x[1] = name[n] + header_name()[n]; }\n";
const HEADER: &str = "static __device__ const char *header_name() { return __FILE__; }\n";
/// nvcc has no option that renames folders in `__FILE__`.
const CUDA: &str =
    "static __device__ int hidden = 3;\n__global__ void add(int *x) { x[0] += hidden; }\n";

/// A package without debug information, in whose manifest are these modules.
fn package(modules: &str) -> Option<Package> {
    let package = Package::new("")?;
    let manifest = format!("[package]\nname = \"pack\"\n[workspace]\n{modules}");
    package.put("Cargo.toml", &manifest);
    Some(package)
}

/// Returns what a build in this folder of the package makes for the outside: by name, from the folder on.
fn made(package: &Package, folder: &str, compiler: Option<&str>) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = package.at(folder);
    let mut script = package.script();
    script
        .env("CARGO_MANIFEST_DIR", &root)
        .env("OUT_DIR", root.join(OUT))
        .env("PROFILE", "release")
        .env("DEBUG", "false")
        .env_remove("OFFLOAD_COMPILER")
        .current_dir(&root);
    if let Some(compiler) = compiler {
        script.env("OFFLOAD_COMPILER", compiler);
    }
    if let Some(cuda) = cuda() {
        script.env("CUDA_PATH", cuda);
    }
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            script.env(name, value);
        }
    }
    let told = text(&script.output().unwrap());
    assert!(!told.contains("no image"), "{told}");
    let mut found = BTreeMap::new();
    collect(&root.join(OUT), &root, &mut found);
    found
}

/// Finds libraries and Rust files in the build folder, and images below it.
fn collect(folder: &Path, root: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let is_out = folder == root.join(OUT);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_product = match path.extension() {
            Some(extension) => is_out && ["a", "rs"].map(OsStr::new).contains(&extension),
            None => path.ends_with("image") || path.ends_with("images"),
        };
        if path.is_dir() {
            collect(&path, root, found);
        } else if is_product {
            let name = path.strip_prefix(root).unwrap().to_owned();
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Builds the files in two folders, of which the second has links to those of the first where `links`, and compares.
#[track_caller]
fn compare(package: &Package, files: &[(&str, &str)], links: bool, compiler: Option<&str>) {
    let folders = ["one", "other/and longer"];
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    for folder in folders {
        package.put(&format!("{folder}/Cargo.toml"), &manifest);
        for (name, content) in files {
            let path = format!("{folder}/{name}");
            package.put(&path, content);
            if links && folder != folders[0] {
                fs::remove_file(package.at(&path)).unwrap();
                let first = package.at(&format!("{}/{name}", folders[0]));
                fs::hard_link(first, package.at(&path)).unwrap();
            }
        }
    }
    let [first, second] = folders.map(|folder| made(package, folder, compiler));
    assert!(
        first
            .keys()
            .any(|name| name.ends_with("image") || name.extension() == Some("a".as_ref()))
    );
    assert!(first.keys().eq(second.keys()));
    for (name, bytes) in &first {
        assert!(
            bytes == &second[name],
            "{} differs ({compiler:?})",
            name.display()
        );
    }
}

#[test]
fn makes_hip_of_any_folder() {
    let modules = "[package.metadata.offload]\nlanguage = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n\
        [[package.metadata.offload.module]]\nname = \"images\"\n\
        [[package.metadata.offload.module]]\nname = \"linked\"\nrdc = true\n\
        [[package.metadata.offload.module]]\nname = \"hosted\"\nhost = true\n\
        [[package.metadata.offload.module]]\nname = \"linked_hosted\"\nhost = true\nrdc = true\n";
    for (word, clang) in support::share([("llvm19", "clang-19"), ("llvm22", "clang-22")], 1, 2) {
        let (Some(compiler), Some(package)) = (support::tool(word, &[clang]), package(modules))
        else {
            continue;
        };
        let files = [("kernels/k.hip", HIP), ("kernels/name.h", HEADER)];
        let compiler = compiler.to_string_lossy().into_owned();
        compare(&package, &files, false, Some(&compiler));
    }
}

#[test]
fn makes_cuda_of_any_folder() {
    let (Some(_), Some(_)) = (cuda(), support::tool("llvm22", &["clang-22"])) else {
        return;
    };
    let modules = "[package.metadata.offload]\nlanguage = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\", \"compute_90\"]\n\
        [[package.metadata.offload.module]]\nname = \"images\"\n\
        [[package.metadata.offload.module]]\nname = \"hosted\"\nhost = true\n";
    let header_less = HIP.replace("#include <offload/gpu.h>\n", "");
    for (compiler, source) in
        support::share([("clang-22", header_less.as_str()), ("nvcc", CUDA)], 0, 2)
    {
        let keys = format!("rdc = false\ncompiler = {compiler:?}\n[[");
        let Some(package) = package(&modules.replacen("[[", &keys, 1)) else {
            return;
        };
        let files = [("kernels/k.cu", source), ("kernels/name.h", HEADER)];
        compare(&package, &files, false, None);
    }
}

/// nvcc puts the number of its process into names of a source without an external name.
#[test]
fn makes_cuda_with_nvcc_in_the_same_way_again() {
    let (Some(_), Some(_)) = (cuda(), support::tool("cuda", &["nvcc"])) else {
        return;
    };
    let modules = "[package.metadata.offload]\nlanguage = \"cuda\"\ncompiler = \"nvcc\"\n\
        sources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\"]\n\
        [[package.metadata.offload.module]]\nname = \"hosted\"\nhost = true\n\
        [[package.metadata.offload.module]]\nname = \"linked_hosted\"\nhost = true\nrdc = true\n";
    let source = "template <class T> __global__ void add(T *x) { *x += 1; }\n\
        namespace { __global__ void hidden(int *x) { *x += 1; } }\n\
        template <class T> int launch(T *x) { add<<<1, 1>>>(x); hidden<<<1, 1>>>(x); return 0; }\n\
        template int launch<int>(int *);\n";
    let Some(package) = package(modules) else {
        return;
    };
    package.put(
        "one/Cargo.toml",
        &fs::read_to_string(package.at("Cargo.toml")).unwrap(),
    );
    package.put("one/kernels/k.cu", source);
    let first = made(&package, "one", None);
    fs::remove_dir_all(package.at("one").join(OUT)).unwrap();
    assert_eq!(first.len(), 4, "{:?}", first.keys());
    assert!(first == made(&package, "one", None));
}

/// Clang puts the numbers of files into the names of OpenMP's kernels, and nothing else of the place where they are.
#[test]
fn makes_openmp_of_the_same_files_in_any_folder() {
    let modules = "[package.metadata.offload]\nlanguage = \"openmp\"\nsources = [\"kernels/*.c\"]\n\
        targets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    let Some(package) = package(modules) else {
        return;
    };
    let source = support::package::KERNEL.replace("return x", "return x + __FILE__[x]");
    let files = [
        ("kernels/k.c", source.as_str()),
        ("kernels/k.h", "#define ONE 1\n"),
    ];
    let compiler = package.at("llvm/bin/clang").display().to_string();
    compare(&package, &files, true, Some(&compiler));
}

#[test]
fn makes_llvm_ir_of_any_folder() {
    let modules = "[package.metadata.offload]\nlanguage = \"bitcode\"\nsources = [\"kernels/*.ll\"]\ntargets = [\"gfx90a\"]\n";
    let (Some(_), Some(package)) = (support::tool("llvm22", &["clang-22"]), package(modules))
    else {
        return;
    };
    let source = "target triple = \"amdgcn-amd-amdhsa\"\ndefine amdgpu_kernel void @add(ptr addrspace(1) %x) {\n\
        store i32 1, ptr addrspace(1) %x\nret void\n}\n";
    compare(&package, &[("kernels/k.ll", source)], false, None);
}

#[test]
#[ignore = "`make test-all`: compiles two sysroots"]
fn makes_rust_of_any_folder() {
    let modules = "[package.metadata.offload]\nlanguage = \"rust\"\ncrate = \"kernels\"\ntargets = [\"gfx90a\"]\n";
    let tools = (
        support::tool("rustweb", &["lib.rs"]),
        support::tool("llvm22", &["clang-22", "clang"]),
    );
    let ((Some(_), Some(_)), Some(package)) = (tools, package(modules)) else {
        return;
    };
    let source = "#![no_std]\n#[unsafe(no_mangle)]\npub unsafe extern \"gpu-kernel\" fn add(x: *mut u8, n: usize) {\n\
        unsafe { *x += file!().as_bytes()[n] }\n}\n";
    let manifest =
        "[package]\nname = \"kernels\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    let files = [
        ("kernels/src/lib.rs", source),
        ("kernels/Cargo.toml", manifest),
    ];
    compare(&package, &files, false, None);
}
