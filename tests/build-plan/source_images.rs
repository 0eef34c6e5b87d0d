//! Modules whose sources have images of their own (`images = "source"`, and CUDA without relocatable device code): what is
//! packed, what the generated file has, and what a runtime is told by a program of two such modules, beside what the
//! compiler's own command lines tell it.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::cuda_package::{CUDA, cuda, program, script, targets, theirs};
use support::launches::{HEADER, RUNTIME};
use support::package::{OUT, Package, link_options, text};

/// Of both sources: a device function that is neither `static` nor `inline`.
const SHARED: &str = "__device__ int act(int x) { return x < 0 ? 0 : x; }\n";
const AFFINE: &str = "#include \"k.h\"\n__device__ int state = 3;\n\
    static __global__ void same(int *x, int y) { *x = y + 1; }\n\
    template <class T> __global__ void scale(T *x) { *x += 2; }\ntemplate __global__ void scale(int *);\n\
    extern \"C\" __global__ void affine(int *x, float f) { *x = act(*x) + state + (int)f; }\n";
const FILL: &str = "#include \"k.h\"\n__device__ int state = 4;\n\
    static __global__ void same(int *x, long y) { *x = y + 2; }\n\
    template <class T> __global__ void scale(T *x) { *x += 2; }\ntemplate __global__ void scale(int *);\n\
    extern \"C\" __global__ void fill(int *x) { *x = act(state); }\n";
const ATTRIBUTES: &str = "#ifndef __CUDACC__\n#define __global__ __attribute__((global))\n\
    #define __device__ __attribute__((device))\n#endif\n#ifdef __NVCC__\n#include <cuda_runtime.h>\n#endif\n";

fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", &format!("{ATTRIBUTES}{SHARED}"));
    package.put("kernels/affine.cu", AFFINE);
    package.put("kernels/fill.cu", FILL);
    package.declare(keys);
    Some(package)
}

/// The image of a source for a target, as the plan names it.
fn image(package: &Package, target: &str, source: &str, end: &str) -> PathBuf {
    package
        .at(OUT)
        .join(format!("offload/kernels/{target}/kernels-{source}.cu{end}"))
}

fn container(package: &Package, source: &str) -> Vec<u8> {
    let path = format!("offload/kernels/{source}.images");
    fs::read(package.at(OUT).join(path)).unwrap()
}

const PRINT: &str = "for i in kernels::images() { println!(\"{} {} {}\", i.target, i.source, i.kind); } \
    println!(\"{}\", kernels::image().is_err()); \
    println!(\"{} {}\", kernels::affine::image().unwrap().len(), kernels::affine::images().len()); \
    println!(\"{} {}\", kernels::affine::kernel::affine.arguments.len(), kernels::fill::kernel::fill.name); \
    println!(\"{:?} {}\", kernels::find_kernel(\"affine\").map(|k| k.images.len()), kernels::find_kernel(\"scale<int>\").is_some()); \
    print!(\"{}\", kernels::fill::PTX);";

#[test]
fn packs_the_images_of_each_source_by_itself() {
    let keys = format!("{CUDA}{}rdc = false\n", targets(&["sm_90", "compute_80"]));
    let (Some(cuda), Some(package)) = (cuda(), package(&keys)) else {
        return;
    };
    text(&script(&package, &cuda).output().unwrap());
    for source in ["affine", "fill"] {
        let (cubin, ptx) = (
            image(&package, "sm_90", source, ".image"),
            image(&package, "compute_80", source, ".image"),
        );
        let images: [(&str, &Path); 2] = [("kind=elf,sm=90", &cubin), ("kind=ptx,sm=80", &ptx)];
        let expected = theirs(&cuda, &package, &["--compress=false"], &images);
        assert!(container(&package, source) == expected, "{source}");
    }
    let ptx = fs::read_to_string(image(&package, "compute_80", "fill", ".image")).unwrap();
    assert!(ptx.contains(".entry fill("), "{ptx}");
    let printed = program(&package, PRINT);
    let size = container(&package, "affine").len();
    assert_eq!(
        printed,
        format!(
            "sm_90 kernels/affine.cu object\ncompute_80 kernels/affine.cu ptx\nsm_90 kernels/fill.cu object\n\
             compute_80 kernels/fill.cu ptx\ntrue\n{size} 2\n2 fill\nSome(2) true\n{ptx}"
        )
    );
    // An edit of one source compiles it alone: two compiles, and two links of which one has an assembler behind it.
    package.put("kernels/fill.cu", &FILL.replace("= 2", "= 5"));
    let starts = package.starts();
    text(&script(&package, &cuda).output().unwrap());
    assert_eq!(package.starts() - starts, 4);
}

#[test]
fn packs_what_nvcc_makes_of_each_source() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let cuda = cuda().unwrap();
    let keys = CUDA.replace("flags = [\"-nogpulib\", \"-nogpuinc\"]\n", "");
    let keys = format!(
        "{keys}compiler = \"nvcc\"\n{}",
        targets(&["sm_90", "compute_80"])
    );
    // PTX of several sources is several texts.
    let Some(package) = package(&keys) else {
        return;
    };
    let build = || {
        let mut script = script(&package, &cuda);
        script.env("PATH", std::env::var_os("PATH").unwrap());
        script.env("DEBUG", "false").env("OFFLOAD_COMPILER", &nvcc);
        script
    };
    assert_eq!(
        package.fails(&mut build()),
        "module `kernels`: no image for `compute_80`: `nvcc` makes PTX from each source separately: set \
         `images = \"source\"`, or leave out `compiler`\n\
         hint: OFFLOAD_TARGETS=sm_90 builds the other targets; OFFLOAD_MISSING=skip leaves out the targets \
         that cannot be built"
    );
    package.declare(&format!("{keys}images = \"source\"\n"));
    text(&build().output().unwrap());
    for (source, number) in [
        ("affine", "sm_90"),
        ("fill", "sm_90"),
        ("fill", "compute_80"),
    ] {
        let (option, end) = match number {
            "sm_90" => ("-cubin", ".cubin"),
            _ => ("-ptx", ".ptx"),
        };
        let theirs = package.at("theirs");
        let mut command = Command::new(&nvcc);
        command
            .current_dir(package.at("kernels"))
            .args([option, "-Xptxas=-O3", &format!("-arch={number}")])
            .args([&format!("{source}.cu"), "-o"])
            .arg(&theirs);
        support::run(&mut command);
        let ours = fs::read(image(&package, number, source, end)).unwrap();
        let theirs = fs::read(theirs).unwrap();
        // A cubin names its own file.
        assert_eq!(ours.len(), theirs.len(), "{source} {number}");
        assert!(end != ".ptx" || ours == theirs, "{source}");
    }
    let printed = program(&package, PRINT);
    assert!(printed.contains("\nSome(2) true\n"), "{printed}");
    assert!(printed.contains(".visible .entry fill("), "{printed}");
}

/// A variable and a kernel that other sources have, too, and launches of its own kernels and of another source's.
const LAUNCHES: &str = r#"
#include "k.h"
__device__ int state = 3;
template <class T> __global__ void scale(T *x) { *x += act(state); }
static __global__ void own(int *x) { *x = NUMBER; }
__global__ void PLAIN(int *x) { *x = state; }
__global__ void OTHER(int *x);
extern "C" void LAUNCH(int *x) {
  scale<<<1, 1>>>(x);
  own<<<1, 1>>>(x);
  PLAIN<<<1, 1>>>(x);
  OTHER<<<1, 1>>>(x);
}
"#;

/// A package with two sources of host code; `end` tells its functions from those of others.
fn hosted(language: &str, keys: &str, end: &str, header: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", header);
    for (name, other, number) in [("one", "two", "1"), ("two", "one", "2")] {
        let source = LAUNCHES
            .replace("LAUNCH", &format!("launch_{name}_{end}"))
            .replace("PLAIN", &format!("plain_{name}"))
            .replace("OTHER", &format!("plain_{other}"))
            .replace("NUMBER", number);
        package.put(&format!("kernels/{name}.{language}"), &source);
    }
    let keys = format!(
        "language = \"{}\"\nhost = true\nsources = [\"kernels/*\"]\nexclude = [\"kernels/k.h\"]\n{keys}",
        language.replace("cu", "cuda")
    );
    package.declare(&keys);
    Some(package)
}

/// Builds a runtime that replaces the vendor's and logs every call.
fn runtime(package: &Package, prefix: &str, library: &str) -> PathBuf {
    package.put("runtime/runtime.c", RUNTIME);
    let mut command = Command::new("cc");
    command
        .args(["-w", "-shared", "-fPIC", "-DALIGNMENT=1"])
        .args([&format!("-DPREFIX={prefix}"), "runtime.c", "-o", library])
        .current_dir(package.at("runtime"));
    support::run(&mut command);
    package.at("runtime")
}

/// What a program tells the runtime, without the numbers of fat binaries, sorted, and without what compilers put before the
/// names of a file's own kernels.
fn told(program: &Path, runtime: &Path) -> Vec<String> {
    let log = program.with_extension("log");
    let mut command = Command::new(program);
    command.env("GPU_LOG", &log).env("LD_LIBRARY_PATH", runtime);
    support::run(&mut command);
    let lines = fs::read_to_string(log).unwrap();
    let word = |word: &str| match word.split_once("__nv_static_") {
        Some((_, rest)) => rest[rest.find("__Z").unwrap() + 1..].to_owned(),
        None => word.to_owned(),
    };
    let is_number = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let line = |line: &str| {
        let words = line.split(' ').filter(|word| !is_number(word)).map(word);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = lines.lines().map(line).collect();
    lines.sort();
    lines
}

/// A compiler, and the words of its own command line for a program of several sources.
struct Compiler<'a> {
    program: &'a Path,
    args: &'a [&'a str],
}

/// Builds two packages into one program, and compares what it tells the runtime with what the compiler's own command line for
/// one of them tells it.
fn registers_as(language: &str, keys: &str, header: &str, compiler: &Compiler<'_>) {
    let (Some(first), Some(second)) = (
        hosted(language, keys, "first", header),
        hosted(language, keys, "second", header),
    ) else {
        return;
    };
    let (prefix, library) = match language {
        "hip" => ("hip", "libamdhip64.so"),
        _ => ("cuda", "libcudart.so"),
    };
    let runtime = runtime(&first, prefix, library);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command
        .args([
            "-Dwarnings",
            "--edition=2024",
            "main.rs",
            "-o",
            "main",
            "-L",
        ])
        .arg(&runtime)
        .current_dir(first.folder.root());
    let (mut main, mut calls) = (String::new(), String::new());
    for (package, end) in [(&first, "first"), (&second, "second")] {
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", compiler.program)
            .env("CARGO_PKG_NAME", end)
            .env("PATH", std::env::var_os("PATH").unwrap());
        if let Some(root) = std::env::var_os("CUDA_PATH") {
            script.env("CUDA_PATH", root);
        }
        let directives = text(&script.output().unwrap());
        command.args(link_options(&directives));
        let file = package.at(OUT).join("kernels.rs");
        main += &format!(
            "mod {end} {{ include!({file:?}); }}\nunsafe extern \"C\" {{ fn launch_one_{end}(x: *mut i32); \
             fn launch_two_{end}(x: *mut i32); }}\n"
        );
        calls += &format!(
            "unsafe {{ launch_one_{end}(none); launch_two_{end}(none); }}\n\
             assert!({end}::one::kernel::plain_one.stub().is_some() && {end}::kernel::plain_two.stub().is_some());\n\
             assert_ne!({end}::one::kernel::plain_one.stub(), {end}::two::kernel::plain_two.stub());\n\
             assert!({end}::images().len() == 4 && {end}::two::image().is_err());\n"
        );
    }
    main += &format!(
        "fn main() {{ let none = std::ptr::null_mut();\n{calls}\n\
         assert_ne!(first::kernel::plain_one.stub(), second::kernel::plain_one.stub()); }}\n"
    );
    first.put("main.rs", &main);
    command.env("OUT_DIR", first.at(OUT));
    support::run(&mut command);
    let ours = told(&first.at("main"), &runtime);

    first.put(
        "theirs/main.c",
        "void launch_one_first(int *), launch_two_first(int *);\n\
         int main(void) { launch_one_first(0); launch_two_first(0); return 0; }\n",
    );
    let folder = first.at("theirs");
    let run = |program: &Path, args: &[&str]| {
        support::run(Command::new(program).args(args).current_dir(&folder));
    };
    for name in ["one", "two"] {
        let (source, object) = (format!("../kernels/{name}.{language}"), format!("{name}.o"));
        let args = [compiler.args, &["-c", &source, "-o", &object]].concat();
        run(compiler.program, &args);
    }
    run(Path::new("cc"), &["-c", "main.c"]);
    let search = format!("-L{}", runtime.display());
    let library = format!("-l:{library}");
    let objects = [
        "main.o", "one.o", "two.o", "-o", "theirs", &search, &library,
    ];
    run(Path::new("g++"), &objects);
    let theirs = told(&folder.join("theirs"), &runtime);
    let registers = |line: &&String| line.starts_with("register ");
    assert_eq!(theirs.iter().filter(registers).count(), 2, "{theirs:?}");
    // The same for each of two modules.
    let mut expected = [theirs.clone(), theirs].concat();
    expected.sort();
    assert_eq!(ours, expected);
}

const TARGETS: &str = "targets = [\"sm_80\", \"sm_90\"]\nopt-level = 1\n";
const ALONE: &str = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";

#[test]
fn registers_each_source_as_clang_does() {
    let header = format!("{HEADER}{SHARED}");
    let none = ["-nogpulib", "-nogpuinc"];
    for release in support::share(["llvm19", "llvm22"], 1, 2) {
        let Some(clang) = support::tool(release, &["clang"]) else {
            return;
        };
        let keys = format!("targets = [\"gfx90a\", \"gfx1100\"]\nimages = \"source\"\n{ALONE}");
        let args = ["-x", "hip", "--offload-arch=gfx90a", "-fPIC"];
        let args = [&args[..], &none].concat();
        let compiler = Compiler {
            program: &clang,
            args: &args,
        };
        registers_as("hip", &keys, &header, &compiler);
        // CUDA 13's fatbinary does not know the options of clang 19.
        if release == "llvm19" || support::tool("cuda", &["ptxas"]).is_none() {
            continue;
        }
        // Which launches a toolkit of this version has.
        let sdk = ["-Xclang", "-target-sdk-version=12.0"];
        let args = ["-x", "cuda", "--offload-arch=sm_80", "-fPIC"];
        let args = [&args[..], &sdk, &none].concat();
        let compiler = Compiler {
            program: &clang,
            args: &args,
        };
        registers_as("cu", &format!("{TARGETS}{ALONE}"), &header, &compiler);
    }
}

#[test]
fn registers_each_source_as_nvcc_does() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    // nvcc makes host functions of device functions.
    let header = SHARED.replace("__device__", "inline __device__");
    let compiler = Compiler {
        program: &nvcc,
        args: &["-x", "cu", "-arch=sm_80", "-Xcompiler=-fPIC"],
    };
    let keys = "targets = [\"sm_80\", \"compute_80\"]\n";
    registers_as("cu", keys, &header, &compiler);
}

#[test]
fn says_how_sources_with_functions_of_one_name_are_built() {
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&["sm_90"]))))
    else {
        return;
    };
    let error = package.fails(&mut script(&package, &cuda));
    let hint = "\nhint: set `images = \"source\"`, so that each source has images and device functions of its own, or \
                declare the functions of headers `static` or `inline` [OFF702]\n";
    assert!(
        error.contains("multiply defined") && error.contains(hint),
        "{error}"
    );
    let keys =
        "language = \"hip\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"gfx90a\"]\nrdc = true\n";
    package.declare(&format!("{keys}{ALONE}"));
    let error = package.fails(&mut package.script());
    let hint = "\nhint: set `rdc = false`, so that each source has device functions of its own, or declare the functions \
                of headers `static` or `inline`; if it is a kernel or a variable, declare it `static`, or set `images = \"source\"` [OFF702]";
    assert!(
        error.contains("duplicate symbol: act(int)") && error.contains(hint),
        "{error}"
    );
    // Variables and kernels are the image's.
    package.declare(&format!(
        "{}{ALONE}",
        keys.replace("rdc = true", "rdc = false")
    ));
    let error = package.fails(&mut package.script());
    let hint = "\nhint: kernels and variables belong to the image, also with `rdc = false`: declare them `static`, or set \
                `images = \"source\"` [OFF702]";
    assert!(
        error.contains("duplicate symbol: state") && error.contains(hint),
        "{error}"
    );
}

#[test]
fn has_modules_of_sources_in_builds_without_device_code() {
    let keys = format!(
        "{CUDA}{}images = \"source\"\n",
        targets(&["sm_90", "compute_80"])
    );
    let Some(package) = package(&keys) else {
        return;
    };
    text(&package.script().env("DOCS_RS", "1").output().unwrap());
    let main = "println!(\"{} {:?} {:?}\", kernels::affine::image().is_err(), kernels::fill::PTX, kernels::affine::images()); \
        for k in kernels::affine::kernel::ALL { print!(\"{} \", k.name); } println!(\"{}\", kernels::kernel::fill.name);";
    assert_eq!(
        program(&package, main),
        "true \"\" []\naffine same scale fill\n"
    );
}

#[test]
fn makes_archives_of_modules_with_host_code_too() {
    if support::tool("cuda", &["ptxas"]).is_none() {
        return;
    }
    let header = format!("{HEADER}{SHARED}");
    let keys = format!("{TARGETS}{ALONE}images = \"source\"\nartifact = [\"device-archive\"]\n");
    let Some(package) = hosted("cu", &keys, "first", &header) else {
        return;
    };
    let mut script = package.script();
    script
        .env("CUDA_PATH", cuda().unwrap())
        .env("PATH", std::env::var_os("PATH").unwrap());
    text(&script.output().unwrap());
    let folder = package.at(OUT).join("offload/artifacts");
    let mut archives = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let members = support::run(Command::new("ar").arg("t").arg(&path));
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        archives.push((name, members));
    }
    archives.sort();
    let members = "kernels-one.cu.bc\nkernels-two.cu.bc\n".to_owned();
    let name = |processor: &str| format!("libbc-pack-nvptx64-{processor}.a");
    assert_eq!(
        archives,
        [(name("sm_80"), members.clone()), (name("sm_90"), members)]
    );
}
