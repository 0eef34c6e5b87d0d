//! Builds without device code: the crate checks, links, starts and tests all the same.

use crate::support;

use std::fs;
use std::process::Command;
use support::package::{OUT, Package, text};

/// A package of that language, its compiler missing.
fn package(keys: &str, source: &str, text: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put(source, text);
    package.declare(&format!("{keys}sources = [\"kernels/*\"]\n"));
    fs::remove_file(package.at("kernels/k.h")).unwrap();
    Some(package)
}

/// Builds the stub as a user without clang does, and what a program prints that is linked as Cargo links it.
fn runs(
    package: &Package,
    variables: &[(&str, &str)],
    main: &str,
) -> (std::process::Output, String) {
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", "clang-99")
        .env("OFFLOAD_MISSING", "stub")
        .envs(variables.iter().copied());
    let told = text(&script.output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    assert_eq!(package.starts(), 0, "no clang is started");
    package.put(
        "main.rs",
        &format!(
            "mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\n{main}"
        ),
    );
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["-Dwarnings", "--edition=2024", "main.rs", "-o", "main"]);
    for line in told.lines() {
        if let Some(library) = line.strip_prefix("cargo::rustc-link-lib=") {
            command.args(["-l", library]);
        }
        if let Some(folder) = line.strip_prefix("cargo::rustc-link-search=") {
            command.args(["-L", folder]);
        }
    }
    support::run(
        command
            .env("OUT_DIR", package.at(OUT))
            .current_dir(package.folder.root()),
    );
    (Command::new(package.at("main")).output().unwrap(), told)
}

#[test]
fn runs_the_host_code_of_openmp() {
    let source = "#include <omp.h>\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += STEP + ADDED EMPTY;\n  \
        return x + omp_is_initial_device();\n}\n";
    let keys = "language = \"openmp\"\ntargets = [\"gfx90a\"]\ndefine = { STEP = 5, EMPTY = \"\" }\n\
        flags = [\"-D\", \"ADDED=0\", \"-ffast-math\"]\n";
    let Some(package) = package(keys, "kernels/k.c", source) else {
        return;
    };
    let main = "unsafe extern \"C\" { fn run(x: i32) -> i32; }\n\
        fn main() { println!(\"{} {}\", unsafe { run(1) }, kernels::image().is_err()); }\n";
    package.put("step.h", "#define MORE 0\n");
    package.put(
        "kernels/k.c",
        &format!("#include \"../step.h\"\n{source}").replace("STEP", "STEP + MORE"),
    );
    for variables in [&[][..], &[("DOCS_RS", "1")]] {
        let (output, told) = runs(&package, variables, main);
        assert_eq!(text(&output), "7 true\n");
        // Cargo runs the script again after an edit.
        for name in ["kernels/k.c", "kernels/../step.h", "kernels"] {
            let line = format!("cargo::rerun-if-changed={}\n", package.at(name).display());
            assert!(told.contains(&line), "{name}: {told}");
        }
    }
}

#[test]
fn compiles_host_code_with_files_of_options_and_in_the_language_of_flags() {
    let source = "#include <cstddef>\nextern \"C\" int run(int x) {\n  int *volatile made = new int(x * FACTOR + MORE);\n  return *made;\n}\n";
    let keys = "language = \"openmp\"\ntargets = [\"gfx90a\"]\nflags = [\"@options\"]\n";
    let Some(package) = package(keys, "kernels/k.omp", source) else {
        return;
    };
    package.put(
        "options",
        "-x c++ -fno-exceptions '-DFACTOR=1 + 2' -include more.h\n",
    );
    package.put("more.h", "#define MORE 10\n");
    let main = "unsafe extern \"C\" { fn run(x: i32) -> i32; }\nfn main() { println!(\"{}\", unsafe { run(1) }); }\n";
    let (output, told) = runs(&package, &[], main);
    assert_eq!(text(&output), "13\n");
    let line = format!(
        "cargo::rerun-if-changed={}\n",
        package.at("options").display()
    );
    assert!(told.contains(&line), "{told}");
}

#[test]
fn has_the_kernels_of_the_sources_and_host_functions_that_say_what_is_missing() {
    let source = "#include <hip/hip_runtime.h>\ntemplate <typename T> __global__ void scale(T *x, int n = 1) { *x *= n; }\n\
        extern \"C\" __global__ void plain(int *x) {}\n\
        extern \"C\" int launch(int *x) { scale<<<1, 1>>>(x); return 0; }\n\
        // Names of the stub's own source, and a word of C that is taken for a name.\n\
        extern \"C\" void missing(int *x) {}\n\
        extern \"C\" int (*callback(int x))(int) { return 0; }\n";
    let keys = "language = \"hip\"\nhost = true\ntargets = [\"gfx90a\", \"gfx942\"]\n";
    let Some(package) = package(keys, "kernels/k.hip", source) else {
        return;
    };
    let main = "unsafe extern \"C\" { fn launch(x: *mut i32) -> i32; }\n\
        fn main() {\n  println!(\"{} {}\", kernels::kernel::scale.name, kernels::kernel::plain.images.len());\n  \
        println!(\"{:?}\", [\"scale\", \"_Z5scaleIiEvPT_i\"].map(|name| kernels::find_kernel(name).map(|found| found.name)));\n  \
        println!(\"{:?}\", kernels::SKIPPED.iter().map(|skipped| skipped.target).collect::<Vec<_>>());\n  \
        assert_eq!(unsafe { launch(std::ptr::null_mut()) }, 0);\n}\n";
    let (output, _) = runs(&package, &[], main);
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = "scale 0\n[Some(\"scale\"), None]\n[\"gfx90a\", \"gfx942\"]\n";
    assert_eq!(printed, expected);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "`launch` of module `kernels` was not built: this program has no device code\n"
    );
    assert!(!output.status.success());
}

#[test]
fn does_not_watch_what_the_build_script_wrote() {
    let source = "#include \"made.h\"\nint run(int x) { return x; }\n";
    let keys = "language = \"openmp\"\ntargets = [\"gfx90a\"]\ninclude = [\"${OUT_DIR}\"]\n";
    let Some(package) = package(keys, "kernels/k.c", source) else {
        return;
    };
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let sources = "sources = [\"kernels/*\", \"${OUT_DIR}/made.c\"]";
    package.put(
        "Cargo.toml",
        &manifest.replace("sources = [\"kernels/*\"]", sources),
    );
    package.put(&format!("{OUT}/made.h"), "");
    package.put(&format!("{OUT}/made.c"), "int made;\n");
    let told = text(&package.script().env("DOCS_RS", "1").output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    let watched = package.at("kernels/k.c");
    let watched = format!("cargo::rerun-if-changed={}\n", watched.display());
    assert!(told.contains(&watched), "{told}");
    let out = format!("cargo::rerun-if-changed={}", package.at(OUT).display());
    assert!(!told.contains(&out), "{told}");
}

#[test]
fn has_the_kernels_of_llvm_ir() {
    let source = "target triple = \"amdgcn-amd-amdhsa\"\ndefine amdgpu_kernel void @scale(ptr addrspace(1) %p) {\n  ret void\n}\n";
    let keys = "language = \"bitcode\"\ntargets = [\"gfx90a\"]\nimages = \"source\"\n";
    let Some(package) = package(keys, "kernels/k.ll", source) else {
        return;
    };
    let main = "fn main() { println!(\"{}\", kernels::k::kernel::scale.name); }\n";
    let (output, _) = runs(&package, &[], main);
    assert_eq!(text(&output), "scale\n");
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let manifest = manifest.replace("images = \"source\"\n", "");
    package.put("Cargo.toml", &manifest);
    let main = "fn main() { println!(\"{}\", kernels::kernel::scale.name); }\n";
    let (output, _) = runs(&package, &[], main);
    assert_eq!(text(&output), "scale\n");
}

#[test]
fn warns_of_host_code_that_a_module_does_not_compile() {
    let kernel = "__attribute__((global)) void k(int *x) { *x = 1; }\n";
    let keys =
        "language = \"hip\"\ntargets = [\"gfx90a\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    let device = format!("#define __global__\n{kernel}");
    let Some(package) = package(keys, "kernels/a.hip", &device) else {
        return;
    };
    let told = text(&package.script().output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    // The device pass ignores host functions, and the program would fail with an undefined symbol.
    let host = format!("{kernel}\nextern \"C\" void launch(int *x) {{ }}\n");
    package.put("kernels/a.hip", &host);
    let told = text(&package.script().output().unwrap());
    let warning = format!(
        "cargo::warning={}:3: `launch` is host code, which this module does not compile\n\
         cargo::warning=hint: set `host = true` to compile the host code of its sources and to register its kernels\n",
        package.at("kernels/a.hip").display()
    );
    assert!(told.contains(&warning), "{told}");
    // Another module compiles it.
    let modules = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"hip\"\ntargets = [\"gfx90a\"]\n\
        flags = [\"-nogpulib\", \"-nogpuinc\"]\nsources = [\"kernels/a.hip\"]\n[[package.metadata.offload.module]]\nname = \"device\"\n\
        [[package.metadata.offload.module]]\nname = \"both\"\nhost = true\n";
    package.put("Cargo.toml", modules);
    let host = host.replace("__attribute__((global))", "__global__");
    package.put(
        "kernels/a.hip",
        &format!("#include <offload/gpu.h>\n{host}"),
    );
    let told = text(&package.script().output().unwrap());
    assert!(
        !told.contains("which this module does not compile"),
        "{told}"
    );
}

/// Returns the machine number of the first object in the library of a stub, if there is one.
fn machine(package: &Package) -> Option<u8> {
    let files = fs::read_dir(package.at(OUT)).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let library = paths.find(|path| path.extension().is_some_and(|extension| extension == "a"))?;
    let bytes = fs::read(library).unwrap();
    let start = bytes.windows(4).position(|window| window == b"\x7fELF")?;
    bytes.get(start + 18).copied()
}

#[test]
fn compiles_host_functions_for_the_target_of_a_cross_build() {
    if support::tool("qemu", &["aarch64-linux-gnu-gcc"]).is_none() {
        return;
    }
    let keys = "language = \"openmp\"\ntargets = [\"gfx90a\"]\n";
    let Some(package) = package(keys, "kernels/k.c", "int run(int x) { return x; }\n") else {
        return;
    };
    let told = |variables: &[(&str, &str)]| {
        let mut script = package.script();
        script
            .env("DOCS_RS", "1")
            .env("TARGET", "aarch64-unknown-linux-gnu")
            .envs(variables.iter().copied());
        text(&script.output().unwrap())
    };
    let warning = "cargo::warning=the host functions are missing in this build without device code: `cc` does not compile for \
        `aarch64-unknown-linux-gnu`\ncargo::warning=hint: name a C compiler for this target in \
        CC_aarch64_unknown_linux_gnu, such as `aarch64-linux-gnu-gcc` or `clang --target=aarch64-unknown-linux-gnu`\n";
    // A compiler of this machine.
    let said = told(&[("OFFLOAD_CC", "cc")]);
    assert!(said.contains(warning), "{said}");
    assert!(!said.contains("cargo::rustc-link-lib"), "{said}");
    assert_eq!(machine(&package), None);
    for variables in [
        &[][..],
        // It may be for build scripts.
        &[("CC", "cc")],
        &[("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc -O1")],
    ] {
        let said = told(variables);
        assert!(!said.contains("cargo::warning"), "{said}");
        assert_eq!(machine(&package), Some(183), "{variables:?}");
    }
}
