//! Host code that NVIDIA's own compiler compiles: what a runtime in the place of NVIDIA's is told by a program of two such
//! modules, beside what nvcc's own objects tell it.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::launches::RUNTIME;
use support::package::{OUT, Package, link_options, text};

const KEYS: &str = "language = \"cuda\"\nhost = true\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_90\"]\nrdc = true\n";

/// Of both files: a kernel that each instantiates, and a device function.
const HEADER: &str =
    "template <class T> __global__ void scale(T *x) { *x += 1; }\n__device__ int TWICE(int x);\n";
const KERNEL: &str = r#"
#include "k.h"
__device__ int factor = 3;
static __global__ void inner(int *x) { *x = TWICE(factor); }
__global__ void plain(int *x, float y) { *x = y; }
/* Only Rust launches it. */
extern "C" __global__ void QUIET(int *x) { *x = 5; }
extern "C" void LAUNCH(int *x) {
  scale<<<1, 1>>>(x);
  inner<<<1, 1>>>(x);
  plain<<<1, 1>>>(x, 1);
}
"#;
const HELPER: &str = r#"
#include "k.h"
__device__ int TWICE(int x) { return 2 * x; }
/* Hidden as functions of an anonymous namespace are: still an ordinary function. */
extern "C" __attribute__((visibility("hidden"))) void HELP(int *x) { scale<<<1, 1>>>(x); }
"#;

/// A package whose module's functions end so: those of the device have a name for the host, too.
fn package(end: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put("kernels/k.cu", KERNEL);
    package.put("kernels/helper.cu", HELPER);
    let define = format!(
        "define = {{ LAUNCH = \"launch_{end}\", HELP = \"help_{end}\", TWICE = \"twice_{end}\", QUIET = \"quiet\" }}
"
    );
    package.declare(&format!("{KEYS}{define}"));
    Some(package)
}

/// The folder of a `libcudart.so` that writes down what it is told.
fn runtime(package: &Package, compiler: &Path) -> PathBuf {
    package.put("runtime/runtime.c", RUNTIME);
    let folder = package.at("runtime");
    let mut command = Command::new(compiler);
    command
        .args(["-w", "-shared", "-fPIC", "-DPREFIX=cuda", "-DALIGNMENT=1"])
        .args(["runtime.c", "-o", "libcudart.so"])
        .current_dir(&folder);
    support::run(&mut command);
    folder
}

/// What a program tells that runtime, without what nvcc puts before the names of a file's own kernels.
fn told(program: &Path, runtime: &Path) -> Vec<String> {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", runtime);
    told_by(&mut command, &program.with_extension("log"))
}

/// What the program of `command` tells it.
fn told_by(command: &mut Command, log: &Path) -> Vec<String> {
    support::run(command.env("GPU_LOG", log));
    let lines = fs::read_to_string(log).unwrap();
    let word = |word: &str| match word.split_once("__nv_static_") {
        Some((_, rest)) => rest[rest.find("__Z").unwrap() + 1..].to_owned(),
        None => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    lines.lines().map(line).collect()
}

/// What nvcc's own compile and device link tell it.
fn theirs(nvcc: &Path, package: &Package, runtime: &Path) -> Vec<String> {
    package.put(
        "theirs/main.c",
        "void launch(int *), help(int *);\nint main(void) { launch(0); help(0); return 0; }\n",
    );
    let folder = package.at("theirs");
    let run = |program: &Path, args: &[&str]| {
        support::run(Command::new(program).args(args).current_dir(&folder));
    };
    let sources = ["-dc", "../kernels/k.cu", "../kernels/helper.cu"];
    let names = [
        "-arch=sm_90",
        "-DLAUNCH=launch",
        "-DHELP=help",
        "-DTWICE=twice",
        "-DQUIET=quiet",
    ];
    run(nvcc, &[&names[..], &sources[..]].concat());
    run(
        nvcc,
        &["-arch=sm_90", "-dlink", "k.o", "helper.o", "-o", "link.o"],
    );
    run(Path::new("cc"), &["-c", "main.c"]);
    let folder = format!("-L{}", runtime.display());
    let objects = [
        "main.o", "k.o", "helper.o", "link.o", "-o", "theirs", &folder, "-lcudart",
    ];
    run(Path::new("g++"), &objects);
    told(&package.at("theirs/theirs"), runtime)
}

#[test]
fn registers_each_module_once_as_nvcc_does() {
    registers_each_module_once("");
}

/// Before CUDA 13.0, other objects see what stands for kernels and variables.
/// <https://developer.nvidia.com/blog/cuda-c-compiler-updates-impacting-elf-visibility-and-linkage>
#[test]
fn keeps_modules_apart_whose_kernels_are_not_hidden() {
    registers_each_module_once(
        "--device-entity-has-hidden-visibility=false --static-global-template-stub=false",
    );
}

fn registers_each_module_once(flags: &str) {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let (Some(first), Some(second)) = (package("first"), package("second")) else {
        return;
    };
    let runtime = runtime(&first, Path::new("cc"));
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
    let mut main = String::new();
    for (package, end) in [(&first, "first"), (&second, "second")] {
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", &nvcc)
            .env("OFFLOAD_FLAGS", flags)
            .env("CARGO_PKG_NAME", end)
            .env("PATH", std::env::var_os("PATH").unwrap());
        let directives = text(&script.output().unwrap());
        command.args(link_options(&directives));
        let file = package.at(OUT).join("kernels.rs");
        main += &format!(
            "mod {end} {{ include!({file:?}); }}\n\
             unsafe extern \"C\" {{ fn launch_{end}(x: *mut i32); fn help_{end}(x: *mut i32); }}\n"
        );
    }
    main += r#"
        use std::ffi::c_void;
        unsafe extern "C" {
            fn cudaLaunchKernel(stub: *const c_void, grid: u64, z: u32, block: u64, bz: u32, args: *mut *mut c_void, shared: usize, stream: *mut c_void) -> i32;
        }
        fn main() {
            let (none, one) = (std::ptr::null_mut(), 1 | 1 << 32);
            let launch = |stub: Option<*const c_void>| {
                let (stub, none) = (stub.unwrap(), std::ptr::null_mut());
                assert_eq!(unsafe { cudaLaunchKernel(stub, one, 1, one, 1, none, 0, std::ptr::null_mut()) }, 0);
            };
            unsafe { launch_first(none); help_first(none); }
            launch(first::kernel::_Z5plainPif.stub());
            launch(first::kernel::quiet.stub());
            unsafe { launch_second(none); help_second(none); }
            launch(second::kernel::_Z5plainPif.stub());
            launch(second::kernel::quiet.stub());
        }
    "#;
    first.put("main.rs", &main);
    support::run(&mut command);
    let told = told(&first.at("main"), &runtime);

    let theirs = theirs(&nvcc, &first, &runtime);
    assert_eq!(
        theirs[0], "register 0 magic 466243b1 aligned 1",
        "{theirs:?}"
    );
    assert_eq!(
        theirs
            .iter()
            .filter(|line| line.starts_with("register"))
            .count(),
        1
    );
    // The same for each module, and the launch from Rust.
    let mut expected = Vec::new();
    for number in ["0", "1"] {
        let of_number = |line: &String| line.replace(" 0", &format!(" {number}"));
        expected.extend(theirs.iter().map(of_number));
        expected.push(format!("launch {number} _Z5plainPif"));
        expected.push(format!("launch {number} quiet"));
    }
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(told.clone()), sorted(expected));
    // Launches are of the module's own kernels, by addresses that were registered.
    let launches = told.iter().filter_map(|line| line.strip_prefix("launch "));
    let numbers: Vec<&str> = launches.map(|line| &line[..1]).collect();
    let (of_first, of_second) = numbers.split_at(numbers.len() / 2);
    assert_ne!(of_first[0], of_second[0]);
    for numbers in [of_first, of_second] {
        assert!(
            numbers.iter().all(|number| *number == numbers[0]),
            "{told:?}"
        );
    }
}

/// Without `rdc` nvcc registers variables in a function that optimization changes. Its anonymous namespaces have names of the file,
/// as a second namespace here has: before CUDA 13.0 other objects see what they contain.
#[test]
fn keeps_variables_of_two_modules_apart() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let (Some(first), Some(second)) = (package("first"), package("second")) else {
        return;
    };
    let cc = Path::new("cc");
    let runtime = runtime(&first, cc);
    let mut link = Command::new(cc);
    link.args(["main.c", "-o", "main", "-Wl,--whole-archive"])
        .current_dir(first.folder.root());
    for package in [&first, &second] {
        fs::remove_file(package.at("kernels/helper.cu")).unwrap();
        package.put(
            "kernels/k.cu",
            "__device__ int factor = 3;\n\
             __global__ void plain(int *x) { *x = factor; }\n\
             inline __attribute__((noinline)) void *address() { void *found; cudaGetSymbolAddress(&found, factor); return found; }\n\
             extern \"C\" void *LAUNCH(int *x) { plain<<<1, 1>>>(x); return address(); }\n\
             #define NAME(x) #x\n\
             #define OF(x) NAME(x)\n\
             namespace {\n\
             int state = sizeof OF(HELP);\n\
             template <class T> __attribute__((noinline)) T number(T x) { return x + state + sizeof OF(HELP); }\n\
             }\n\
             namespace _GLOBAL__N__8e3ba9de_4_k_cu_plain {\n\
             int state = sizeof OF(HELP);\n\
             struct Kept {\n\
             int size;\n\
             __attribute__((noinline)) Kept(int x) : size(x + sizeof OF(HELP)) {}\n\
             virtual ~Kept() {}\n\
             virtual int get() { return size + sizeof OF(HELP); }\n\
             };\n\
             }\n\
             extern \"C\" int HELP() {\n\
             _GLOBAL__N__8e3ba9de_4_k_cu_plain::Kept kept(_GLOBAL__N__8e3ba9de_4_k_cu_plain::state);\n\
             return number(state) + kept.get();\n\
             }\n",
        );
        let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
        package.put(
            "Cargo.toml",
            &manifest.replace("rdc = true", "rdc = false\nflags = [\"-O2\"]"),
        );
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", &nvcc)
            .env("CARGO_PKG_NAME", package.folder.root().file_name().unwrap())
            .env("PATH", std::env::var_os("PATH").unwrap());
        text(&script.output().unwrap());
        let files = package.files();
        let library = files.iter().find(|name| name.ends_with("_offload.a"));
        link.arg(package.at(library.unwrap()));
    }
    link.args(["-Wl,--no-whole-archive", "-lcudart", "-lstdc++", "-L"])
        .arg(&runtime);
    first.put(
        "main.c",
        "void *launch_first(int *), *launch_second(int *);\n\
         int cudaGetSymbolAddress(void **found, void *symbol) { *found = symbol; return 0; }\n\
         int help_first(void), help_second(void);\n\
         int main(void) {\n\
         \x20 if (help_first() != 6 * sizeof \"help_first\" || help_second() != 6 * sizeof \"help_second\") return 2;\n\
         \x20 return launch_first(0) == launch_second(0);\n}\n",
    );
    support::run(&mut link);
    let told = told(&first.at("main"), &runtime);
    assert!(told.contains(&"launch 1 _Z5plainPi".to_owned()), "{told:?}");
}

/// Under qemu, what nvcc's own objects for this machine tell it.
#[test]
fn registers_in_programs_for_another_processor() {
    const HOST: &str = "aarch64-unknown-linux-gnu";
    let tool = |names: &[&str]| support::tool("qemu", names);
    let (Some(qemu), Some(cc), Some(cpp)) = (
        tool(&["qemu-aarch64", "qemu-aarch64-static"]),
        tool(&["aarch64-linux-gnu-gcc"]),
        tool(&["aarch64-linux-gnu-g++"]),
    ) else {
        return;
    };
    let (Some(nvcc), Some(package)) = (support::tool("cuda", &["nvcc"]), package("end")) else {
        return;
    };
    let libraries = runtime(&package, &cc);
    let script = || {
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", &nvcc)
            .env("TARGET", HOST)
            .env("LIBRARY_PATH", &libraries)
            .env("CXX_aarch64_unknown_linux_gnu", &cpp)
            // For this machine.
            .env("NVCC_CCBIN", "g++")
            .env("PATH", std::env::var_os("PATH").unwrap());
        script
    };
    let told = |main: &str| {
        package.put("main.c", main);
        let directives = text(&script().output().unwrap());
        assert!(!directives.contains("cargo::warning"), "{directives}");
        let library = package.files();
        let library = library.iter().find(|name| name.ends_with("_offload.a"));
        let mut link = Command::new(&cpp);
        link.args(["-x", "c", "main.c", "-x", "none", "-o", "main"])
            .args(["-Wl,--whole-archive", library.unwrap()])
            .args(["-Wl,--no-whole-archive", "-Lruntime", "-lcudart"])
            .current_dir(package.folder.root());
        support::run(&mut link);
        let mut program = Command::new(&qemu);
        program
            .args(["-L", "/usr/aarch64-linux-gnu", "-E"])
            .arg(format!("LD_LIBRARY_PATH={}", libraries.display()))
            .arg(package.at("main"));
        let mut lines = told_by(&mut program, &package.at("main.log"));
        lines.sort();
        lines
    };
    let both = "void launch_end(int *), help_end(int *);\nint main(void) { launch_end(0); help_end(0); return 0; }\n";
    let of_cross = told(both);
    runtime(&package, Path::new("cc"));
    let mut of_nvcc = theirs(&nvcc, &package, &libraries);
    of_nvcc.sort();
    assert_eq!(of_cross, of_nvcc);

    // Another module of the same sources.
    let library = |start: &str| {
        let files = package.files();
        let is_library = |name: &&String| name.contains(start) && name.ends_with("_offload.a");
        package.at(files.iter().find(is_library).unwrap())
    };
    runtime(&package, &cc);
    fs::copy(library("/libpack_"), package.at("first.a")).unwrap();
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    package.put("Cargo.toml", &manifest.replace("_end", "_more"));
    text(&script().env("CARGO_PKG_NAME", "more").output().unwrap());
    package.put(
        "main.c",
        "void launch_end(int *), launch_more(int *);\nint main(void) { launch_end(0); launch_more(0); return 0; }\n",
    );
    let mut link = Command::new(&cpp);
    link.args(["-x", "c", "main.c", "-x", "none", "-o", "main"])
        .args(["-Wl,--whole-archive", "first.a"])
        .arg(library("/libmore_"))
        .args(["-Wl,--no-whole-archive", "-Lruntime", "-lcudart"])
        .current_dir(package.folder.root());
    support::run(&mut link);
    fs::remove_file(library("/libmore_")).unwrap();
    package.put("Cargo.toml", &manifest);

    // Each source for itself.
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    package.put(
        "kernels/k.cu",
        "__global__ void plain(int *x) { *x = 1; }\nextern \"C\" void launch(int *x) { plain<<<1, 1>>>(x); }\n",
    );
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    package.put("Cargo.toml", &manifest.replace("rdc = true", "rdc = false"));
    let lines = told("void launch(int *);\nint main(void) { launch(0); return 0; }\n");
    assert!(
        lines.contains(&"launch 0 _Z5plainPi".to_owned()),
        "{lines:?}"
    );
    let error = package.fails(script().env_remove("CXX_aarch64_unknown_linux_gnu"));
    let hint =
        "hint: the C++ compiler that nvcc runs must be one for the target of this cross build";
    assert!(error.contains(hint), "{error}");
    let error = package.fails(script().env(format!("CXX_{}", HOST.replace('-', "_")), "none-g++"));
    let expected = "module `kernels`: `none-g++` not found (searched: PATH)";
    let hint = "(Debian: `apt install g++-aarch64-linux-gnu`), or name it in CXX_aarch64_unknown_linux_gnu or with \
        `flags = [\"-ccbin=aarch64-linux-gnu-g++-14\"]`";
    assert!(error.contains(expected) && error.contains(hint), "{error}");
    for (host, expected) in [
        (
            "x86_64-unknown-linux-musl",
            "host code is not supported for static programs of `x86_64-unknown-linux-musl`",
        ),
        (
            "x86_64-pc-windows-gnu",
            "module `kernels`: host code for `x86_64-pc-windows-gnu` is not supported with `nvcc`",
        ),
    ] {
        let error = package.fails(script().env("TARGET", host));
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Without `rdc` ptxas reports them, which nvcc starts; with it, nvlink. Both name symbols.
#[test]
fn says_the_declarations_of_undefined_functions() {
    let (Some(nvcc), Some(package)) = (support::tool("cuda", &["nvcc"]), package("end")) else {
        return;
    };
    let fails = |keys: &str| {
        let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"cuda\"\ntargets = [\"sm_90\"]\n";
        package.put("Cargo.toml", &format!("{manifest}{keys}\n"));
        package.fails(package.script().env("OFFLOAD_COMPILER", &nvcc))
    };
    package.put(
        "kernels/k.cu",
        "__device__ int helper(int);\n__global__ void k(int *x) { *x = helper(*x); }\n",
    );
    package.put(
        "kernels/helper.cu",
        "__global__ void other(int *x) { *x = 1; }\n",
    );
    let declaration = "hint: `_Z6helperi` is `helper(int)`; ";
    let several = "if another source of the module defines the function, set `rdc = true`";
    for keys in ["rdc = false", "host = true"] {
        let error = fails(&format!("sources = [\"kernels/*.cu\"]\n{keys}"));
        assert!(
            error.contains(declaration) && error.contains(several),
            "{error}"
        );
        let error = fails(&format!("sources = [\"kernels/k.cu\"]\n{keys}"));
        assert!(error.contains(declaration), "{error}");
        assert!(!error.contains("rdc = true"), "{error}");
    }
    let error = fails("sources = [\"kernels/*.cu\"]");
    assert!(
        error.contains(declaration) && error.contains("[OFF701]"),
        "{error}"
    );
}
