//! Weak functions of C++ in two modules of one program: templates and `inline` functions of a header that launch kernels are
//! each module's own, and other functions are shared.

use crate::support;

use crate::linker;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::launches::{HEADER, RUNTIME};
use support::package::{OUT, Package, text};

const MODULES: [(&str, u32); 2] = [("first", 1), ("second", 2)];

/// Writes the manifest of two modules with one source, and returns their libraries.
fn libraries(package: &Package, keys: &str, variables: &[(&str, &str)]) -> Vec<PathBuf> {
    let modules = MODULES.map(|(name, value)| {
        format!(
            "[[package.metadata.offload.module]]\nname = \"{name}\"\ndefine = {{ VALUE = {value}, MODULE = \"{name}\" }}\n"
        )
    });
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
    package.put("Cargo.toml", &[manifest, keys, &modules.concat()].concat());
    let mut script = package.script();
    script.envs(variables.iter().copied());
    script.env("PATH", std::env::var_os("PATH").unwrap());
    text(&script.output().unwrap());
    let files = fs::read_dir(package.at(OUT)).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_library = |path: &PathBuf| path.extension().is_some_and(|end| end == "a");
    let mut libraries: Vec<PathBuf> = files.filter(is_library).collect();
    libraries.sort();
    assert_eq!(libraries.len(), 2);
    libraries
}

/// Links `main.cpp` and all of the libraries in each way, and runs each program. `runs` gets the program and the name of the way.
fn links(
    package: &Package,
    libraries: &[PathBuf],
    options: &[&str],
    runs: impl Fn(&mut Command, &str),
) {
    let cc = |arguments: &[&str], whole: &[PathBuf]| {
        let mut command = Command::new("g++");
        command.args(arguments).arg("-Wl,--whole-archive");
        command.args(whole).arg("-Wl,--no-whole-archive");
        support::run(command.current_dir(package.folder.root()));
    };
    let run = |way: &str| {
        let mut program = Command::new(package.at("main"));
        program.env("LD_LIBRARY_PATH", package.folder.root());
        runs(&mut program, way);
    };
    cc(&["-c", "main.cpp", "-o", "main.o"], &[]);
    let program = ["main.o", "-o", "main"];
    for (name, linker) in linker::linkers() {
        let (folder, name) = (linker.parent().unwrap().display(), name.split(' ').next());
        let search = format!("-B{folder}");
        let linker = format!("-fuse-ld={}", name.unwrap());
        let linker = [linker.as_str(), search.as_str()];
        // Options name libraries, which follow what needs them.
        let link = |more: &[&str], whole: &[PathBuf]| {
            let all = [&linker[..], more, &["-Wl,--no-as-needed"], options].concat();
            cc(&all, whole);
        };
        link(&program, libraries);
        run(&format!("{linker:?}"));
        link(&[&program[..], &["-Wl,--gc-sections"]].concat(), libraries);
        run(&format!("{linker:?} --gc-sections"));
        link(&["-shared", "-o", "libboth.so"], libraries);
        link(&[&program[..], &["-L.", "-lboth"]].concat(), &[]);
        run(&format!("{linker:?} -shared"));
        let relocatable = [&linker[..], &["-r", "-nostdlib", "-o", "both.o"]].concat();
        cc(&relocatable, libraries);
        link(&[&program[..], &["both.o"]].concat(), &[]);
        run(&format!("{linker:?} -r"));
    }
}

const OPENMP: [&str; 4] = [
    "-L/usr/lib/llvm-19/lib",
    "-Wl,-rpath,/usr/lib/llvm-19/lib",
    "-lomptarget",
    "-lomp",
];

/// A template, a function that calls it, a virtual function with a region, and functions and a variable without one.
const REGIONS: &str = r#"
template <class T> T value(T x) {
#pragma omp target map(tofrom : x)
  x = x * 10 + VALUE;
  return x;
}
inline int through(int x) { return value(x); }
struct Virtual {
  virtual int of(int x) {
#pragma omp target map(tofrom : x)
    x = x * 10 + VALUE + 2;
    return x;
  }
};
inline int calls() { static int count; return ++count; }
inline void nothing() {}
"#;
const REGIONS_SOURCE: &str = r#"
#include "k.hpp"
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
template int value<int>(int);
extern "C" int MODULE(int x) { return through(x); }
extern "C" int JOIN(MODULE, _virtual)(int x) { Virtual object, *volatile pointer = &object; return pointer->of(x); }
extern "C" int JOIN(MODULE, _calls)() { return calls(); }
extern "C" void *JOIN(MODULE, _nothing)() { return (void *)&nothing; }
"#;
/// `value<int>` is called from outside of the modules: it is one of both.
const REGIONS_MAIN: &str = r#"
#include <stdio.h>
template <class T> T value(T x);
extern template int value<int>(int);
extern "C" {
int first(int); int second(int); int first_virtual(int); int second_virtual(int);
int first_calls(); int second_calls(); void *first_nothing(); void *second_nothing();
}
int main() {
  int outside = value(1);
  printf("%d %d, %d %d, %d, ", first(1), second(1), first_virtual(1), second_virtual(1), outside == 11 || outside == 12);
  int once = first_calls(), twice = second_calls();
  printf("%d %d %d\n", once, twice, first_nothing() == second_nothing());
}
"#;

fn regions(level: u32) -> Option<(Package, String)> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hpp", REGIONS);
    package.put("kernels/k.cpp", REGIONS_SOURCE);
    package.put("main.cpp", REGIONS_MAIN);
    let keys = format!(
        "language = \"openmp\"\nsources = [\"kernels/k.cpp\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\nopt-level = {level}\n"
    );
    Some((package, keys))
}

const REGIONS_OUTPUT: &str = "11 12, 13 14, 1, 1 2 1\n";

#[track_caller]
fn runs_regions(program: &mut Command, way: &str) {
    program.env("OMP_TARGET_OFFLOAD", "MANDATORY");
    // The CPU device's plugin; no other has a device here.
    program.env("LIBOMPTARGET_PLUGINS", "");
    assert_eq!(support::run(program), REGIONS_OUTPUT, "{way}");
}

#[test]
fn runs_each_modules_own_region_of_a_template() {
    for level in [0, 2] {
        let Some((package, keys)) = regions(level) else {
            return;
        };
        let libraries = libraries(&package, &keys, &[("OFFLOAD_REGISTER", "complete")]);
        let options = [&OPENMP[..], &[support::WITHOUT_LIBLLVM]].concat();
        links(&package, &libraries, &options, runs_regions);
    }
}

#[test]
fn runs_each_modules_own_region_of_a_template_that_the_last_link_registers() {
    let Some((package, keys)) = regions(0) else {
        return;
    };
    let libraries = libraries(&package, &keys, &[("OFFLOAD_REGISTER", "deferred")]);
    let mut link = Command::new(env!("CARGO_BIN_EXE_offload-link"));
    link.args(["main.cpp", "-o", "main", "-Wl,--whole-archive"])
        .args(libraries)
        .arg("-Wl,--no-whole-archive")
        .args(OPENMP)
        .args(["-lstdc++", support::WITHOUT_LIBLLVM])
        .current_dir(package.folder.root());
    support::run(&mut link);
    runs_regions(&mut Command::new(package.at("main")), "offload-link");
}

/// A launch in a template, through an `inline` function and in a virtual function; a `static` kernel; and a variable.
const LAUNCHES: &str = r#"
template <class T> __global__ void scale(T *x) { *x *= VALUE; }
static __global__ void inner(int *x) { *x = VALUE; }
template <class T> void launch(T *x) { scale<T><<<1, 1>>>(x); }
inline void through(int *x) { launch(x); }
inline void launch_inner(int *x) { inner<<<1, 1>>>(x); }
struct Virtual { virtual void launch(int *x) { scale<<<1, 1>>>(x); } };
inline int calls() { static int count; return ++count; }
inline void nothing() {}
"#;
const LAUNCHES_SOURCE: &str = r#"
#include "k.h"
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
template void launch<int>(int *);
extern "C" void MODULE(int *x) {
  through(x);
  launch_inner(x);
  Virtual object, *volatile pointer = &object;
  pointer->launch(x);
}
extern "C" int JOIN(MODULE, _calls)() { return calls(); }
extern "C" void *JOIN(MODULE, _nothing)() { return (void *)&nothing; }
"#;
const LAUNCHES_MAIN: &str = r#"
template <class T> void launch(T *x);
extern template void launch<int>(int *);
extern "C" {
void first(int *); void second(int *);
int first_calls(); int second_calls(); void *first_nothing(); void *second_nothing();
}
int main() {
  first(0);
  second(0);
  launch((int *)0);
  return !(first_calls() == 1 && second_calls() == 2 && first_nothing() == second_nothing());
}
"#;

/// Two modules with host code of a language launch their own kernels.
#[track_caller]
fn launches_own_kernels(keys: &str, (prefix, library): (&str, &str), variables: &[(&str, &str)]) {
    let Some(package) = Package::new("") else {
        return;
    };
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    let header = format!("#ifndef __NVCC__\n{HEADER}\n#endif\n#undef NAME\n{LAUNCHES}");
    let extension = if prefix == "hip" { "hip" } else { "cu" };
    package.put("kernels/k.h", &header);
    package.put(&format!("kernels/k.{extension}"), LAUNCHES_SOURCE);
    package.put("main.cpp", LAUNCHES_MAIN);
    package.put("runtime.c", RUNTIME);
    let mut runtime = Command::new("cc");
    runtime
        .args(["-w", "-shared", "-fPIC", "-DALIGNMENT=1", "runtime.c"])
        .args([&format!("-DPREFIX={prefix}"), "-o"])
        .arg(format!("lib{library}.so"))
        .current_dir(package.folder.root());
    support::run(&mut runtime);
    let libraries = libraries(&package, keys, variables);
    let options = ["-L.", &format!("-l{library}")];
    links(&package, &libraries, &options, |program, way| {
        let log = package.at("log");
        let _ = fs::remove_file(&log);
        support::run(program.env("GPU_LOG", &log));
        let log = fs::read_to_string(log).unwrap();
        let launches: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("launch "))
            .collect();
        let is = |line: &&str, binary: u32, name: &str| {
            // Compilers have their own names for `static` kernels.
            line.starts_with(&format!("{binary} ")) && line.contains(name)
        };
        let (modules, outside) = launches.split_at(6.min(launches.len()));
        let is_own = |lines: &[&str], binary| {
            let names = ["5scaleIiEvPT_", "5innerPi", "5scaleIiEvPT_"];
            let mut both = lines.iter().zip(names);
            lines.len() == 3 && both.all(|(line, name)| is(line, binary, name))
        };
        let (first, second) = modules.split_at(3.min(modules.len()));
        // The linkers decide which module registers first.
        let is_apart = [(0, 1), (1, 0)]
            .iter()
            .any(|(one, other)| is_own(first, *one) && is_own(second, *other));
        assert!(is_apart, "{way}: {log}");
        // The call from outside may get the function of either module.
        assert_eq!(outside.len(), 1, "{way}: {log}");
    });
}

const HIP: &str = "language = \"hip\"\nhost = true\nsources = [\"kernels/k.hip\"]\ntargets = [\"gfx90a\"]\n\
    opt-level = 0\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const CUDA: &str = "language = \"cuda\"\nhost = true\nsources = [\"kernels/k.cu\"]\ntargets = [\"sm_80\"]\nopt-level = 0\n";

#[test]
fn launches_each_modules_own_hip_kernels_from_templates() {
    for keys in ["", "rdc = true\n", "images = \"source\"\n"] {
        launches_own_kernels(&format!("{HIP}{keys}"), ("hip", "amdhip64"), &[]);
    }
}

#[test]
fn launches_each_modules_own_cuda_kernels_from_templates() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let nvcc = [("OFFLOAD_COMPILER", nvcc.to_str().unwrap())];
    for rdc in [false, true] {
        let keys = format!("{CUDA}rdc = {rdc}\n");
        launches_own_kernels(&keys, ("cuda", "cudart"), &nvcc);
        let keys = format!("{keys}flags = [\"-nogpulib\", \"-nogpuinc\"]\n");
        launches_own_kernels(&keys, ("cuda", "cudart"), &[]);
    }
}
