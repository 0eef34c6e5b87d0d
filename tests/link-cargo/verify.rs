//! `cargo offload verify` and `explain`, on what compilers and bundlers write.

use crate::commands::cargo_offload;
use crate::support::folder::Folder;
use std::path::Path;
use std::process::Command;

use offload_formats::container::verify::FindingCode;
use serde_json::Value;

use crate::support::{program, run, tool};

const KERNEL: &str = "
#include <offload/gpu.h>
template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }
extern \"C\" __global__ void plain(float *x) { x[threadIdx.x] += 1; }
void start(float *x) { scale<<<1, 64>>>(x); plain<<<1, 64>>>(x); }
";
/// Stands for HIP's runtime: programs are linked, not run.
const RUNTIME: &str = "
int __hipPushCallConfiguration() { return 0; } int __hipPopCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; } void __hipRegisterFunction() {} void __hipUnregisterFatBinary() {}
void *__hipRegisterFatBinary() { return 0; }
void __hipRegisterVar() {} void __hipRegisterManagedVar() {}
void __hipRegisterSurface() {} void __hipRegisterTexture() {}
";
/// Directory of `<offload/gpu.h>`, as an option.
const INCLUDE: &str = concat!(
    "-I",
    env!("CARGO_MANIFEST_DIR"),
    "/../offload-build/include"
);

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the codes of all findings of a file.
fn codes(folder: &Folder, file: &str) -> Vec<String> {
    let output = cargo_offload(folder, &["verify", "--json", file]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], 1);
    let findings = found["files"][0]["findings"].as_array().unwrap();
    let codes: Vec<String> = findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect();
    let has_error = findings
        .iter()
        .any(|finding| finding["severity"] == "error");
    assert_eq!(
        output.status.code(),
        Some(i32::from(has_error)),
        "{file}: {codes:?}"
    );
    codes
}

fn put(folder: &Folder, name: &str, content: &str) {
    folder.write(name, content);
}

/// Makes a library of HIP code with a registration, from `KERNEL`.
fn library(folder: &Folder, clang: &Path, flags: &[&str]) {
    put(folder, "k.hip", KERNEL);
    put(folder, "runtime.c", RUNTIME);
    run(Command::new(clang)
        .args([
            "-x",
            "hip",
            "-nogpuinc",
            "-nogpulib",
            "-fPIC",
            "-c",
            "k.hip",
            "-o",
            "k.o",
            INCLUDE,
        ])
        .args([
            "--no-offload-new-driver",
            "--offload-arch=gfx90a:xnack+",
            "--offload-arch=gfx1100",
        ])
        .args(flags)
        .current_dir(folder.root()));
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "runtime.c", "k.o", "-o", "lib.so"])
        .current_dir(folder.root()));
}

#[test]
fn finds_nothing_in_libraries_of_clang() {
    let folder = Folder::new();
    for (word, name) in
        crate::support::share([("llvm19", "clang-19"), ("llvm22", "clang-22")], 1, 2)
    {
        let Some(clang) = tool(word, &[name]) else {
            continue;
        };
        for flags in [&[][..], &["--offload-compress"]] {
            library(&folder, &clang, flags);
            assert_eq!(codes(&folder, "lib.so"), [""; 0], "{name} {flags:?}");
        }
    }
}

#[test]
fn finds_what_is_broken_in_a_library() {
    let folder = Folder::new();
    let (Some(clang), Some(objcopy)) = (tool("llvm22", &["clang-22"]), program("objcopy")) else {
        return;
    };
    library(&folder, &clang, &[]);
    let changed = |arguments: &[&str]| {
        run(Command::new(&objcopy)
            .args(arguments)
            .args(["lib.so", "bad.so"])
            .current_dir(folder.root()));
        codes(&folder, "bad.so")
    };
    // Another file's bytes in place of the bundle; the host still registers its kernels.
    let zeros = vec![0; 64];
    folder.write("zeros", zeros);
    assert_eq!(
        changed(&["--update-section", ".hip_fatbin=zeros"]),
        ["OFF401", "OFF405"]
    );
    // The images of a library with other kernels.
    put(&folder, "k.hip", KERNEL);
    run(Command::new(&objcopy)
        .args(["--dump-section", ".hip_fatbin=bundle", "lib.so", "copy.so"])
        .current_dir(folder.root()));
    let mut bundle = std::fs::read(folder.path("bundle")).unwrap();
    let names: Vec<usize> = bundle
        .windows(9)
        .enumerate()
        .filter(|(_, at)| *at == b"plain.kd\0")
        .map(|(place, _)| place)
        .collect();
    assert!(!names.is_empty());
    for place in names {
        bundle[place] = b'q';
    }
    folder.write("other", &bundle);
    let found = changed(&["--update-section", ".hip_fatbin=other"]);
    assert!(found.contains(&"OFF404".to_owned()), "{found:?}");
    // An image for another processor: the ELF flags of gfx1100 (0x41) become those of gfx1101 (0x46).
    let mut bundle = std::fs::read(folder.path("bundle")).unwrap();
    let at = bundle.windows(4).rposition(|at| at == b"\x7fELF").unwrap();
    bundle[at + 48] = 0x46;
    folder.write("other", &bundle);
    assert_eq!(
        changed(&["--update-section", ".hip_fatbin=other"]),
        ["OFF113"]
    );
}

/// Runs a program in the folder.
fn done(folder: &Folder, program: &Path, arguments: &[&str]) {
    run(Command::new(program)
        .args(arguments)
        .current_dir(folder.root()));
}

/// Options of clang for relocatable device code of HIP.
const DEVICE_CODE: [&str; 10] = [
    "-x",
    "hip",
    "-fgpu-rdc",
    "-nogpuinc",
    "-nogpulib",
    "-fPIC",
    INCLUDE,
    "--offload-arch=gfx90a",
    "--offload-new-driver",
    "-c",
];

/// clang-linker-wrapper of LLVM 19 and 22 aligns the section to 16, and the host code before it is small.
#[test]
fn finds_bundles_that_the_linker_wrapper_does_not_align() {
    let folder = Folder::new();
    for (word, name) in
        crate::support::share([("llvm19", "clang-19"), ("llvm22", "clang-22")], 0, 2)
    {
        let Some(clang) = tool(word, &[name]) else {
            continue;
        };
        put(&folder, "k.hip", KERNEL);
        put(&folder, "runtime.c", RUNTIME);
        let compile = [&DEVICE_CODE[..], &["k.hip", "-o", "k.o"]].concat();
        done(&folder, &clang, &compile);
        done(
            &folder,
            Path::new("cc"),
            &["-fPIC", "-w", "-c", "runtime.c"],
        );
        let link = ["-shared", "k.o", "runtime.o", "-nogpulib", "-o"];
        // clang finds lld, which links device code, in the directory of LLVM's programs.
        let bin = std::fs::canonicalize(&clang).unwrap();
        let path = std::env::join_paths(
            [bin.parent().unwrap().to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        run(Command::new(&clang)
            .args(link)
            .args(["theirs.so", "--offload-link"])
            .env("PATH", path.unwrap())
            .current_dir(folder.root()));
        assert_eq!(codes(&folder, "theirs.so"), ["OFF121"], "{name}");
        let ours = Path::new(env!("CARGO_BIN_EXE_offload-link"));
        let link = ["-shared", "k.o", "runtime.o", "-o", "ours.so"];
        done(&folder, ours, &link);
        assert_eq!(codes(&folder, "ours.so"), [""; 0], "{name}");
    }
}

/// `libomptarget` loads both objects' kernels only on devices that both are compiled for.
#[test]
fn finds_openmp_kernels_that_one_target_lacks() {
    let Some(clang) = tool("llvm19", &["clang-19"]) else {
        return;
    };
    let folder = Folder::new();
    let compile = |name: &str, targets: &str| {
        let region = "#pragma omp target map(tofrom: x[0:1])";
        let source = format!("void {name}(int *x) {{\n{region}\n  x[0]++;\n}}\n");
        put(&folder, &format!("{name}.c"), &source);
        let targets = format!("--offload-arch={targets}");
        let flags = ["-O1", "-fPIC", "-fopenmp", "-nogpulib", "-c", &targets];
        done(
            &folder,
            &clang,
            &[&flags[..], &[&format!("{name}.c")]].concat(),
        );
    };
    let linked = || {
        let ours = Path::new(env!("CARGO_BIN_EXE_offload-link"));
        done(&folder, ours, &["-shared", "a.o", "b.o", "-o", "lib.so"]);
        text(&cargo_offload(&folder, &["verify", "lib.so"]).stdout)
    };
    compile("a", "gfx90a,gfx906");
    compile("b", "gfx906");
    let said = linked();
    let expected = "no image for `gfx90a` defines 1 of 2 kernels, such as `__omp_offloading_";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("_b_l2`\n"), "{said}");
    assert_eq!(codes(&folder, "lib.so"), ["OFF407"]);
    compile("a", "gfx906");
    linked();
    assert_eq!(codes(&folder, "lib.so"), [""; 0]);
}

/// Intel's runtime reads SPIR-V in an ELF file, whose kernels are not listed.
#[test]
fn takes_intels_elf_files_of_spirv_for_device_code() {
    let Some(clang) = tool("llvm19", &["clang-19"]) else {
        return;
    };
    let Some(objcopy) = tool("llvm19", &["llvm-objcopy-19"]) else {
        return;
    };
    let folder = Folder::new();
    let region = "#pragma omp target map(tofrom: x[0:1])";
    put(
        &folder,
        "a.c",
        &format!("void a(int *x) {{\n{region}\n  x[0]++;\n}}\n"),
    );
    let flags = ["-O1", "-fPIC", "-fopenmp", "-nogpulib", "-c"];
    let compile = [&flags[..], &["--offload-arch=gfx906", "a.c"]].concat();
    done(&folder, &clang, &compile);
    let ours = Path::new(env!("CARGO_BIN_EXE_offload-link"));
    done(&folder, ours, &["-shared", "a.o", "-o", "lib.so"]);
    let changed = |image: &str| {
        let image = format!("--image=file={image},triple=spirv64-intel,arch=,kind=openmp");
        let packager = Path::new(env!("CARGO_BIN_EXE_offload-packager"));
        done(&folder, packager, &["-o", "packed", &image]);
        let update = ["--update-section", ".llvm.offloading=packed"];
        let update = [&update[..], &["lib.so", "changed.so"]].concat();
        done(&folder, &objcopy, &update);
        codes(&folder, "changed.so")
    };
    let intel = include_bytes!("../golden/22.1.8/intel-openmp.elf");
    folder.write("intel.elf", intel);
    assert_eq!(changed("intel.elf"), [""; 0]);
    let inspected = text(&cargo_offload(&folder, &["inspect", "changed.so"]).stdout);
    assert!(
        inspected.contains("spirv64-intel  openmp  SPIR-V in ELF"),
        "{inspected}"
    );
    let kernels = text(&cargo_offload(&folder, &["inspect", "--kernels", "changed.so"]).stdout);
    let last = "\n0 kernels, without those of 1 image (SPIR-V in ELF)\n";
    assert!(kernels.ends_with(last), "{kernels}");
    // The file of another processor has no kernels.
    let mut other = intel.to_vec();
    other[18] = 62;
    folder.write("other.elf", other);
    assert_eq!(changed("other.elf"), ["OFF404"]);
}

/// A macro that is not defined removes the kernels of `sm_80`.
const CUDA: &str = "
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(WITH_80)
extern \"C\" __global__ void plain(float *x) { x[threadIdx.x] += 1; }
#endif
namespace n { template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; } }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(WITH_80)
void start(float *x) { n::scale<<<1, 64>>>(x); plain<<<1, 64>>>(x); }
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(WITH_80)
// In host code nvcc gives the lambda's type a name of its own.
template <typename F> __global__ void apply(float *x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }
void lambdas(float *x, float y) {
  auto one = [=] __device__ (float z) { return z * 2; };
  auto two = [=] __device__ (float z) -> float { return z * y; };
  auto three = [=] __host__ __device__ (float z) { return z + y; };
  apply<<<1, 64>>>(x, one); apply<<<1, 64>>>(x, two); apply<<<1, 64>>>(x, three);
}
#endif
int main() { return 0; }
";

#[test]
fn checks_programs_of_nvcc() {
    let (Some(nvcc), Some(objcopy)) = (tool("cuda", &["nvcc"]), program("objcopy")) else {
        return;
    };
    let folder = Folder::new();
    put(&folder, "k.cu", CUDA);
    let cuda = nvcc.parent().unwrap().parent().unwrap().join("lib64");
    let libraries = format!("-L{}", cuda.display());
    let both = "-gencode=arch=compute_80,code=[sm_80,compute_80]";
    let newer = "-gencode=arch=compute_90,code=sm_90";
    let compile = [
        "k.cu",
        "-extended-lambda",
        both,
        newer,
        &libraries,
        "-cudart=shared",
    ];
    // Relocatable device code gives static kernels other names than host code has. Its LTO IR is no image of a driver.
    put(
        &folder,
        "s.cu",
        "static __global__ void one(float *x) { *x = 1; }\n\
         namespace { template <typename T> __global__ void two(T *x) { *x = 2; } }\n\
         int main() { one<<<1, 1>>>(0); two<float><<<1, 1>>>(0); return 0; }\n",
    );
    let lto = "-gencode=arch=compute_90,code=lto_90";
    let separate = ["s.cu", "-rdc=true", both, &libraries, "-cudart=shared"];
    done(&folder, &nvcc, &[&separate[..], &["-o", "static"]].concat());
    let said = text(&cargo_offload(&folder, &["inspect", "--kernels", "static"]).stdout);
    assert!(
        said.contains(" void (anonymous namespace)::two<float>(float*)\n"),
        "{said}"
    );
    assert_eq!(codes(&folder, "static"), [""; 0]);
    let fatbin = ["s.cu", "-rdc=true", "-fatbin", lto, "-o", "lto.fatbin"];
    done(&folder, &nvcc, &fatbin);
    let said = text(&cargo_offload(&folder, &["inspect", "lto.fatbin"]).stdout);
    assert!(said.contains("  0  sm_90  cuda  LTO IR  "), "{said}");
    assert_eq!(codes(&folder, "lto.fatbin"), [""; 0]);
    let same = [
        "compress",
        "--method=zstd",
        "lto.fatbin",
        "-o",
        "same.fatbin",
    ];
    assert!(cargo_offload(&folder, &same).status.success());
    assert_eq!(folder.read("same.fatbin"), folder.read("lto.fatbin"));
    // nvcc adds an image without kernels to each program, for its device link.
    let whole = [&compile[..], &["-DWITH_80", "-o", "whole"]].concat();
    done(&folder, &nvcc, &whole);
    assert_eq!(codes(&folder, "whole"), [""; 0]);
    done(&folder, &objcopy, &["--strip-all", "whole", "stripped"]);
    assert_eq!(codes(&folder, "stripped"), [""; 0]);
    done(&folder, &nvcc, &[&compile[..], &["-o", "part"]].concat());
    // Both images for 8.0, and nvcc's.
    assert_eq!(codes(&folder, "part"), ["OFF301", "OFF301", "OFF301"]);
    // The address of the section is a multiple of 4 only.
    let object = [&compile[..], &["-DWITH_80", "-c", "-o", "k.o"]].concat();
    done(&folder, &nvcc, &object);
    let unaligned = "--set-section-alignment=.nv_fatbin=1";
    done(&folder, &objcopy, &[unaligned, "k.o"]);
    let link = ["k.o", "-Wl,--section-start=.nv_fatbin=0x800004", &libraries];
    let libraries = ["-lcudart", "-lstdc++", "-o", "unaligned"];
    done(&folder, Path::new("c++"), &[&link[..], &libraries].concat());
    assert_eq!(codes(&folder, "unaligned"), ["OFF123"]);
}

#[test]
fn finds_device_code_that_nobody_linked() {
    let folder = Folder::new();
    let (Some(clang), Some(objcopy)) = (tool("llvm22", &["clang-22"]), program("objcopy")) else {
        return;
    };
    library(&folder, &clang, &[]);
    // Bitcode in place of a code object: the bundler writes it, clang embeds it into the host object.
    let device = ["--cuda-device-only", "-emit-llvm", "k.hip", "-o", "k.bc"];
    done(&folder, &clang, &[&DEVICE_CODE[..], &device].concat());
    put(&folder, "host", "");
    let bundler = Path::new(env!("CARGO_BIN_EXE_offload-bundler"));
    done(
        &folder,
        bundler,
        &[
            "-type=o",
            "-bundle-align=4096",
            "-targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx90a",
            "-input=host",
            "-input=k.bc",
            "-output=k.hipfb",
        ],
    );
    let host = [
        "-x",
        "hip",
        "-nogpuinc",
        "-fPIC",
        INCLUDE,
        "--cuda-host-only",
        "-Xclang",
        "-fcuda-include-gpubinary",
        "-Xclang",
        "k.hipfb",
        "-c",
        "k.hip",
        "-o",
        "unlinked.o",
    ];
    done(&folder, &clang, &host);
    let link = ["-shared", "-fPIC", "-w", "runtime.c", "unlinked.o", "-o"];
    let cc = Path::new("cc");
    done(&folder, cc, &[&link[..], &["unlinked.so"]].concat());
    assert_eq!(codes(&folder, "unlinked.so"), ["OFF302"]);
    // The images of an object, in a linked file that keeps their section.
    let object = [&DEVICE_CODE[..], &["k.hip", "-o", "fat.o"]].concat();
    done(&folder, &clang, &object);
    let take = ["--dump-section=.llvm.offloading=images", "fat.o", "copy.o"];
    done(&folder, &objcopy, &take);
    let add = ["--add-section=.llvm.offloading=images", "lib.so", "kept.so"];
    done(&folder, &objcopy, &add);
    assert_eq!(codes(&folder, "kept.so"), ["OFF303"]);
}

/// Output of `fatbinary` of CUDA 13.5: at 0x50 a cubin for `sm_80`.
const FATBIN: &[u8] = include_bytes!("../golden/cuda-13.5/two-images.fatbin");

#[test]
fn finds_images_that_the_openmp_runtime_does_not_load() {
    let folder = Folder::new();
    std::fs::write(folder.path("k.cubin"), &FATBIN[0x50..0xbf8]).unwrap();
    let packager = Path::new(env!("CARGO_BIN_EXE_offload-packager"));
    for (kind, release, expected) in [
        ("openmp", "19.1", &["OFF406"][..]),
        ("openmp", "20.1", &["OFF406"]),
        // The later versions of LLVM 21 load it.
        ("openmp", "21.1", &[]),
        ("openmp", "22.1", &[]),
        ("cuda", "19.1", &[]),
    ] {
        let image =
            format!("--image=file=k.cubin,triple=nvptx64-nvidia-cuda,arch=sm_80,kind={kind}");
        done(&folder, packager, &["-o", "k.bin", &image]);
        put(
            &folder,
            "main.s",
            ".section .llvm.offloading, \"a\"\n.incbin \"k.bin\"\n.text\n.globl main\nmain: ret\n\
             .section .note.GNU-stack, \"\"\n",
        );
        put(&folder, "runtime.c", "");
        let cc = Path::new("cc");
        let soname = format!("-Wl,-soname,libomptarget.so.{release}");
        let library = ["-shared", "runtime.c", &soname, "-o", "libomptarget.so"];
        done(&folder, cc, &library);
        let link = [
            "main.s",
            "-Wl,--no-as-needed",
            "libomptarget.so",
            "-o",
            "main",
        ];
        done(&folder, cc, &link);
        let found: Vec<String> = codes(&folder, "main")
            .into_iter()
            .filter(|code| code != "OFF301")
            .collect();
        assert_eq!(found, expected, "{kind}, libomptarget {release}");
    }
}

/// As in cuBLASLt, whose section has tables between fat binaries.
#[test]
fn finds_fat_binaries_between_tables() {
    let folder = Folder::new();
    std::fs::write(folder.path("two.fatbin"), FATBIN).unwrap();
    for (section, expected) in [(".cask_resource", &[][..]), (".nv_fatbin", &["OFF101"])] {
        let assembly = format!(
            ".section {section}, \"a\"\n.balign 8\n.incbin \"two.fatbin\"\n.quad 0, 16, 12\n.fill 100, 1, 0x55\n\
             .balign 8\n.incbin \"two.fatbin\"\n.quad 17\n.text\n.globl main\nmain: ret\n\
             .section .note.GNU-stack, \"\"\n"
        );
        put(&folder, "main.s", &assembly);
        done(&folder, Path::new("cc"), &["main.s", "-o", "main"]);
        let found = codes(&folder, "main").into_iter();
        let found: Vec<String> = found
            .filter(|code| !["OFF301", "OFF403"].contains(&&**code))
            .collect();
        assert_eq!(found, expected, "{section}");
        let said = text(&cargo_offload(&folder, &["inspect", "main"]).stdout);
        let images = if expected.is_empty() { 4 } else { 2 };
        assert!(
            said.starts_with(&format!("main: {images} device images")),
            "{said}"
        );
    }
}

#[test]
fn finds_invalid_and_missing_wrappers() {
    let folder = Folder::new();
    let (Some(clang), Some(objcopy)) = (tool("llvm22", &["clang-22"]), program("objcopy")) else {
        return;
    };
    library(&folder, &clang, &[]);
    let take = [
        "--dump-section=.hip_fatbin=bundle",
        "--dump-section=.hipFatBinSegment=wrapper",
        "lib.so",
        "copy.so",
    ];
    done(&folder, &objcopy, &take);
    let wrapper = std::fs::read(folder.path("wrapper")).unwrap();
    let changed = |offset: usize, value: u32| {
        let mut wrapper = wrapper.clone();
        wrapper[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        folder.write("other", wrapper);
        let change = ["--update-section=.hipFatBinSegment=other"];
        let files = ["lib.so", "bad.so"];
        done(&folder, &objcopy, &[&change[..], &files].concat());
        codes(&folder, "bad.so")
    };
    // The magic of LLVM and the only version: nothing changed.
    assert_eq!(changed(0, 0x4849_5046), [""; 0]);
    // Then no wrapper registers the bundle.
    assert_eq!(changed(0, 0x4849_5047), ["OFF402", "OFF403"]);
    assert_eq!(changed(4, 2), ["OFF402", "OFF403"]);
    // A library that loads its images by the module API.
    put(
        &folder,
        "module.s",
        ".section .hip_fatbin, \"a\"\n.p2align 12\n.globl images\nimages: .incbin \"bundle\"\n",
    );
    let link = ["-shared", "module.s", "-o", "module.so"];
    done(&folder, Path::new("cc"), &link);
    assert_eq!(codes(&folder, "module.so"), ["OFF403"]);
}

/// Device functions for the kernels of other objects.
#[test]
fn accepts_relocatable_device_code_without_kernels() {
    let Some(nvcc) = tool("cuda", &["nvcc"]) else {
        return;
    };
    let folder = Folder::new();
    put(
        &folder,
        "k.cu",
        "__device__ int twice(int x) { return 2 * x; }\n",
    );
    let targets = "-gencode=arch=compute_80,code=[sm_80,compute_80]";
    let compile = ["-rdc=true", targets, "k.cu"];
    done(
        &folder,
        &nvcc,
        &[&compile[..], &["-c", "-o", "k.o"]].concat(),
    );
    let cubin = [
        "-rdc=true",
        "-gencode=arch=compute_80,code=sm_80",
        "-fatbin",
        "k.cu",
        "-o",
        "k.fatbin",
    ];
    done(&folder, &nvcc, &cubin);
    let ptx = ["-rdc=true", targets, "-fatbin", "k.cu", "-o", "ptx.fatbin"];
    done(&folder, &nvcc, &ptx);
    for file in ["k.o", "k.fatbin"] {
        assert_eq!(codes(&folder, file), [""; 0], "{file}");
    }
    // Of PTX in a file, only the options in the fat binary tell; `verify` does not read them.
    assert_eq!(codes(&folder, "ptx.fatbin"), ["OFF301"]);
    // Linked, no kernel can use the function.
    let linked = ["-gencode=arch=compute_80,code=sm_80", "-fatbin", "k.cu"];
    done(&folder, &nvcc, &[&linked[..], &["-o", "k.fatbin"]].concat());
    assert_eq!(codes(&folder, "k.fatbin"), ["OFF301"]);
}

#[test]
fn follows_deny_allow_and_the_command_line() {
    let folder = Folder::new();
    // An empty image.
    let id = "hipv4-amdgcn-amd-amdhsa--gfx906";
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for field in [1, 4096, 0, id.len() as u64] {
        file.extend(field.to_le_bytes());
    }
    file.extend(id.as_bytes());
    file.resize(4096, 0);
    folder.write("k.hipfb", file);
    let status = |arguments: &[&str]| cargo_offload(&folder, arguments).status.code();
    let output = cargo_offload(&folder, &["verify", "k.hipfb"]);
    assert_eq!(
        text(&output.stdout),
        "k.hipfb: 1 device image\n  warning OFF104: Entry without a device image\n    \
         offset 0x0, entry 0 `hipv4-amdgcn-amd-amdhsa--gfx906`: the image is empty\n    \
         next: Remove the entry, or bundle an image for its target.\n0 errors, 1 warning, 0 notes\n"
    );
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(status(&["verify", "--deny=warnings", "k.hipfb"]), Some(1));
    assert_eq!(status(&["verify", "--deny=off104", "k.hipfb"]), Some(1));
    assert_eq!(
        status(&["verify", "--deny=warnings", "--allow=OFF104", "k.hipfb"]),
        Some(0)
    );
    assert_eq!(status(&["verify", "--runtime=rocm", "k.hipfb"]), Some(2));
    assert_eq!(status(&["verify", "missing"]), Some(1));
    let output = cargo_offload(&folder, &["verify", "--deny=OFF999", "k.hipfb"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`cargo offload explain` lists all codes"));
}

#[test]
fn names_members_counts_equal_findings_and_fails_for_missing_files() {
    let folder = Folder::new();
    let id = "hipv4-amdgcn-amd-amdhsa--gfx906";
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for field in [1, 4096, 0, id.len() as u64] {
        bundle.extend(field.to_le_bytes());
    }
    bundle.extend(id.as_bytes());
    bundle.resize(4096, 0);
    for count in [5, 6] {
        folder.write("k.hipfb", bundle.repeat(count));
        let shown = |arguments: &[&str]| {
            let found = text(&cargo_offload(&folder, arguments).stdout);
            let findings = found.matches("the image is empty").count();
            (
                findings,
                found.contains("    1 more; `--all` prints them\n"),
                found.contains(" more;"),
            )
        };
        let more = count == 6;
        assert_eq!(shown(&["verify", "k.hipfb"]), (5, more, more));
        assert_eq!(
            shown(&["verify", "--all", "k.hipfb"]),
            (count, false, false)
        );
    }
    folder.write("k.hipfb", &bundle);
    let size = bundle.len();
    let header = |name: &str| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    folder.write(
        "thin.a",
        format!("!<thin>\n{}{}", header("gone/"), header("k.hipfb/")),
    );
    let output = cargo_offload(&folder, &["verify", "thin.a"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("thin.a: member `gone`: "),
        "{output:?}"
    );
    let Some(python) = program("python3") else {
        return;
    };
    done(
        &folder,
        &python,
        &["-m", "zipfile", "-c", "k.zip", "k.hipfb"],
    );
    let output = cargo_offload(&folder, &["verify", "k.zip"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("    member `k.hipfb`, offset "), "{shown}");
    let json = cargo_offload(&folder, &["verify", "--json", "k.zip"]).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    let members = &json["files"][0]["findings"][0]["members"];
    assert_eq!(members, &Value::from(vec!["k.hipfb"]));
}

#[test]
fn explains_each_code_like_its_page() {
    let folder = Folder::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verify.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("## Codes\n\n").unwrap();
    let sections = FindingCode::ALL.iter().map(|code| {
        let (name, title) = (code.code(), code.title());
        let (severity, meaning, action) = (code.severity().name(), code.meaning(), code.action());
        format!("### {name}: {title}\n\n{severity}. {meaning}\n\nNext: {action}\n")
    });
    let expected: Vec<String> = sections.collect();
    assert_eq!(page, expected.join("\n"));

    let list = text(&cargo_offload(&folder, &["explain"]).stdout);
    let findings = list.lines().filter(|line| line < &"OFF5").count();
    assert_eq!(findings, FindingCode::ALL.len());
    let one = text(&cargo_offload(&folder, &["explain", "off112"]).stdout);
    assert!(
        one.starts_with("OFF112 (error): Target IDs that exclude each other\n\n"),
        "{one}"
    );
    assert!(
        one.ends_with(
            "\nNext: Build for gfx90a alone, or for both gfx90a:xnack+ and gfx90a:xnack-.\n"
        ),
        "{one}"
    );
    assert_eq!(
        cargo_offload(&folder, &["explain", "x"]).status.code(),
        Some(2)
    );
}

#[test]
fn explains_each_error_by_its_section() {
    let folder = Folder::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).unwrap();
    let list = text(&cargo_offload(&folder, &["explain"]).stdout);
    let mut count = 0;
    for section in page.split("\n### OFF").skip(1) {
        let (heading, body) = section.split_once("\n\n").unwrap();
        let (number, title) = heading.split_once(": ").unwrap();
        let body = body.split("\n\n#").next().unwrap().trim_end();
        let code = format!("OFF{number}");
        let output = cargo_offload(&folder, &["explain", &code]);
        let told = text(&output.stdout);
        let heading = format!("{code} (error): {title}\n\n");
        assert!(told.starts_with(&heading), "{told}");
        // A terminal follows no links: the page stands behind the text.
        let mut pieces = body.split("](");
        let mut expected = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let bracket = expected.rfind('[').unwrap();
            expected.remove(bracket);
            let (target, rest) = piece.split_once(')').unwrap();
            let page = target.split('#').next().unwrap();
            expected += &match page {
                "" => rest.to_owned(),
                page => format!(" (docs/{page}){rest}"),
            };
        }
        assert_eq!(told, format!("{heading}{expected}\n"));
        let row = list.lines().find(|line| line.starts_with(&code)).unwrap();
        assert!(row.contains(" error ") && row.ends_with(title), "{row}");
        count += 1;
    }
    assert_eq!(list.lines().filter(|line| line > &"OFF5").count(), count);
    let told = text(&cargo_offload(&folder, &["explain", "off601"]).stdout);
    assert!(
        told.ends_with(". Compilers (docs/compilers.md).\n"),
        "{told}"
    );
    let json = text(&cargo_offload(&folder, &["explain", "--json", "off601"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["codes"][0]["code"], "OFF601");
    assert!(json["codes"][0]["action"].is_null(), "{json}");
}

/// ptxas of CUDA 12 writes the processor of the PTX, too.
#[test]
fn reads_the_processor_of_cubins_that_were_made_of_older_ptx() {
    let (Some(ptxas), Some(fatbinary)) = (
        tool("cuda12", &["cuda-12/bin/ptxas"]),
        tool("cuda", &["fatbinary"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    put(
        &folder,
        "k.ptx",
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n",
    );
    done(&folder, &ptxas, &["-arch=sm_86", "k.ptx", "-o", "k.cubin"]);
    let image = "--image3=kind=elf,sm=86,file=k.cubin";
    done(&folder, &fatbinary, &["--create=k.fatbin", "-64", image]);
    assert_eq!(codes(&folder, "k.fatbin"), [""; 0]);
    let inspected = cargo_offload(&folder, &["inspect", "k.cubin"]);
    assert!(text(&inspected.stdout).contains(" sm_86 "), "{inspected:?}");
}
