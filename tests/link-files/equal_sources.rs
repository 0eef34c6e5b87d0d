//! One OpenMP source in two modules of one program: clang names kernels by file, function and line, so both have the same.

use crate::support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::package::{OUT, Package, text};

/// The function with the region is the file's own, so nothing else keeps the modules apart.
const KERNEL: &str = "static int region(int x) {\n#pragma omp target map(tofrom : x)\n  x = x * 10 + VALUE;\n  return x;\n}\n\
    int NAME(int x) { return region(x); }\n";
const MAIN: &str = "#include <stdio.h>\nint first(int); int second(int);\n\
    int main() { printf(\"%d %d\\n\", first(1), second(1)); }\n";

/// The libraries of both modules, registered so.
fn libraries(package: &Package, register: &str) -> Vec<PathBuf> {
    libraries_of(package, KERNEL, register)
}

/// The same of another source.
fn libraries_of(package: &Package, source: &str, register: &str) -> Vec<PathBuf> {
    let modules = [("first", 1), ("second", 2)].map(|(name, value)| {
        format!(
            "[[package.metadata.offload.module]]\nname = \"{name}\"\ndefine = {{ VALUE = {value}, NAME = \"{name}\" }}\n"
        )
    });
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"openmp\"\n\
        sources = [\"kernels/k.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    package.put("Cargo.toml", &(manifest.to_owned() + &modules.concat()));
    package.put("kernels/k.c", source);
    package.put("main.c", MAIN);
    text(
        &package
            .script()
            .env("OFFLOAD_REGISTER", register)
            .output()
            .unwrap(),
    );
    let files = fs::read_dir(package.at(OUT)).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut libraries: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "a"))
        .collect();
    libraries.sort();
    assert_eq!(libraries.len(), 2);
    libraries
}

/// The link of the program with both libraries.
fn link(package: &Package, linker: &str, libraries: &[PathBuf]) -> Command {
    let mut link = Command::new(linker);
    link.args(["main.c", "-o", "main", "-Wl,--whole-archive"])
        .args(libraries)
        .args(["-Wl,--no-whole-archive", "-L/usr/lib/llvm-19/lib"])
        .args(["-Wl,-rpath,/usr/lib/llvm-19/lib", "-lomptarget", "-lomp"])
        .arg(support::WITHOUT_LIBLLVM)
        .current_dir(package.folder.root());
    link
}

fn runs(package: &Package, linker: &str, libraries: &[PathBuf]) -> String {
    support::run(&mut link(package, linker, libraries));
    support::run(
        Command::new(package.at("main"))
            .env("OMP_TARGET_OFFLOAD", "MANDATORY")
            // The CPU device's plugin; no other has a device here.
            .env("LIBOMPTARGET_PLUGINS", ""),
    )
}

#[test]
fn runs_each_modules_own_kernel_when_both_register_themselves() {
    let Some(package) = Package::new("") else {
        return;
    };
    let libraries = libraries(&package, "complete");
    assert_eq!(runs(&package, "cc", &libraries), "11 12\n");
}

#[test]
fn runs_each_modules_own_kernel_when_the_last_link_registers_them() {
    let Some(package) = Package::new("") else {
        return;
    };
    let libraries = libraries(&package, "deferred");
    let linker = env!("CARGO_BIN_EXE_offload-link");
    assert_eq!(runs(&package, linker, &libraries), "11 12\n");
}

/// A variable of `declare target link`, which images know by a pointer. Its own in both modules, then the same in both.
#[test]
fn finds_each_modules_own_linked_variable() {
    let region = "#pragma omp declare target link(table)\nint NAME(int x) {\n\
        #pragma omp target map(tofrom : x) map(to : table)\n  x = x * 10 + table[1];\n  return x;\n}\n";
    let own = "static int table[2] = {0, VALUE};\n";
    let shared = "#if VALUE == 1\nint table[2] = {0, 3};\n#else\nextern int table[2];\n#endif\n";
    for (table, expected) in [(own, "11 12\n"), (shared, "13 13\n")] {
        for (register, linker) in [
            ("complete", "cc"),
            ("deferred", env!("CARGO_BIN_EXE_offload-link")),
        ] {
            let Some(package) = Package::new("") else {
                return;
            };
            let libraries = libraries_of(&package, &format!("{table}{region}"), register);
            assert_eq!(runs(&package, linker, &libraries), expected, "{register}");
        }
    }
}

/// A variable that the program has once, as `inline` ones of C++, and each image of a complete module for itself.
#[test]
fn refuses_a_variable_of_both_modules_that_the_program_has_once() {
    let kernel = |variable: &str| {
        format!(
            "#pragma omp begin declare target\n{variable} = {{0, 3}};\n#pragma omp end declare target\nint NAME(int x) {{\n\
             #pragma omp target map(tofrom : x)\n  x = x * 10 + table[1];\n  return x;\n}}\n"
        )
    };
    let variable = kernel("__attribute__((weak)) int table[2]");
    let Some(package) = Package::new("") else {
        return;
    };
    let complete = libraries_of(&package, &variable, "complete");
    let refused = link(&package, "cc", &complete).output().unwrap();
    assert!(!refused.status.success());
    let told = String::from_utf8(refused.stderr).unwrap();
    let guard =
        "multiple definition of `table.in_two_complete_modules.set_register_to_deferred_in_both'";
    assert!(told.contains(guard), "{told}");
    let deferred = libraries_of(&package, &variable, "deferred");
    let linker = env!("CARGO_BIN_EXE_offload-link");
    assert_eq!(runs(&package, linker, &deferred), "13 13\n");
    // What nobody changes has the same value everywhere.
    let constant = kernel("__attribute__((weak)) const int table[2]");
    let complete = libraries_of(&package, &constant, "complete");
    assert_eq!(runs(&package, "cc", &complete), "13 13\n");
}
