//! The file that Rust includes, made of real kernels and compiled as strict crates have it.

use crate::support;

use std::fs;
use std::process::Command;
use support::package::{OUT, Package, text};

const KERNELS: &str = r#"
#define __global__ __attribute__((global))
namespace ns {
template <typename T, int N> __global__ void fill(T *out, T value) { out[__builtin_amdgcn_workitem_id_x() % N] = value; }
template __global__ void fill<float, 256>(float *, float);
}
__global__ void scale(float *x, float factor) { *x *= factor; }
__global__ void run(int *x) { *x = 1; }
__global__ void run(float *x) { *x = 1; }
struct Pair { float *a, *b; };
extern "C" __global__ void pairs(Pair pair, const int &count) { *pair.a = *pair.b * count; }
"#;

/// A module of HIP without host code.
fn package(kernels: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", kernels);
    package.put(
        "Cargo.toml",
        "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"hip\"\n\
         sources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
         embed = \"include\"\n",
    );
    text(&package.script().output().unwrap());
    Some(package)
}

/// Compiles a crate that includes the file and forbids unsafe code; returns what its program prints.
fn compiled(package: &Package, compiler: &mut Command, main: &str) -> String {
    let source = format!(
        "#![forbid(unsafe_code)]\n//! A crate.\n\
         mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\nfn main() {{ {main} }}\n"
    );
    package.put("main.rs", &source);
    compiler
        .args(["-Dwarnings", "-Dunreachable_pub", "--edition=2024"])
        .args(["main.rs", "-o", "main"])
        .env("OUT_DIR", package.at(OUT))
        .current_dir(package.folder.root());
    support::run(compiler);
    support::run(&mut Command::new(package.at("main")))
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

#[test]
fn names_kernels_as_the_source_does() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    let main = r#"
        use kernels::{find_kernel, kernel};
        for kernel in [kernel::scale, kernel::fill, kernel::pairs] {
            let kinds: Vec<_> = kernel.arguments.iter().map(|a| (a.size, a.kind.unwrap())).collect();
            println!("{} {} {kinds:?}", kernel.name, kernel.source_name);
        }
        for name in ["scale", "ns::fill<float,256>", "run", "_Z3runPi", "_Z3runPf", "pairs"] {
            println!("{name}: {:?}", find_kernel(name).map(|kernel| kernel.name));
        }"#;
    assert_eq!(
        compiled(&package, &mut rustc(), main),
        "_Z5scalePff scale [(8, Pointer), (4, Value)]\n\
         _ZN2ns4fillIfLi256EEEvPT_S1_ ns::fill<float, 256> [(8, Pointer), (4, Value)]\n\
         pairs pairs [(16, Value), (8, Pointer)]\n\
         scale: Some(\"_Z5scalePff\")\n\
         ns::fill<float,256>: Some(\"_ZN2ns4fillIfLi256EEEvPT_S1_\")\n\
         run: None\n_Z3runPi: Some(\"_Z3runPi\")\n_Z3runPf: Some(\"_Z3runPf\")\npairs: Some(\"pairs\")\n"
    );
}

#[test]
fn passes_the_strict_lints_of_clippy() {
    let (Some(clippy), Some(package)) = (support::program("clippy-driver"), package(KERNELS))
    else {
        return;
    };
    // Some lints are for what a library exports, some for what a program does not.
    for (exported, kind) in [("pub ", "lib"), ("", "bin")] {
        let source = format!(
            "#![forbid(unsafe_code)]\n#![allow(dead_code)]\n//! A crate.\n/// Kernels.\n\
             {exported}mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\n#[doc(hidden)] fn main() {{}}\n"
        );
        package.put("main.rs", &source);
        let mut strict = Command::new(&clippy);
        strict
            .args(["-Dwarnings", "-Dclippy::all", "-Dclippy::pedantic"])
            .args(["-Dmissing_docs", "-Dunreachable_pub", "--edition=2024"])
            .args(["--emit=metadata", "--crate-type", kind, "main.rs"])
            .env("OUT_DIR", package.at(OUT))
            .current_dir(package.folder.root());
        support::run(&mut strict);
    }
}

/// A symbol is any string, also in a prebuilt image of somebody else.
#[test]
fn runs_no_code_that_a_kernels_name_contains() {
    let kernels = r#"
#define __global__ __attribute__((global))
__global__ void evil() asm("k\n    pub const fn pwned() -> u8 { 7 }\n    // ");
__global__ void evil() {}
"#;
    let Some(package) = package(kernels) else {
        return;
    };
    let main = "println!(\"{}\", kernels::kernel::ALL[0].name);";
    assert_eq!(
        compiled(&package, &mut rustc(), main),
        "k\n    pub const fn pwned() -> u8 { 7 }\n    // \n"
    );
    let file = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
    let is_code = |line: &&str| line.trim_start().starts_with("pub const fn");
    assert_eq!(file.lines().find(is_code), None);
}
