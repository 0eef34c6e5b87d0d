//! Kernels of OpenMP that call functions of the vendors' device libraries and of LLVM's C library for GPUs.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::device_libraries;
use support::package::{Package, text};

const KEYS: &str = "sources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\"]\n";
const SIN: &str = "#include <math.h>\ndouble run(double x) {\n#pragma omp target map(tofrom : x)\n  x = sin(x);\n  return x;\n}\n";
const PUTS: &str = "#include <stdio.h>\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += puts(\"a\");\n  return x;\n}\n";

/// A function that no optimizer removes, so that it is seen in the image's code, and text that is seen in every image that the library joins.
const OCML: &str = "__asm__(\".ident \\\"device library\\\"\");\n__attribute__((noinline)) double __ocml_sin_f64(double x) {\n  __asm__ volatile(\"s_nop 7\" ::: \"memory\");\n  return x + 1;\n}\n";

fn package() -> Option<Package> {
    Package::new(KEYS)
}

/// The build script without ROCm, with the device libraries of `rocm` if it is some.
fn script(package: &Package, rocm: Option<&Path>) -> Command {
    let mut script = package.script();
    if let Some(rocm) = rocm {
        script.env("HIP_DEVICE_LIB_PATH", rocm);
    }
    script
}

/// The names of an image's dynamic symbols, and its disassembly.
fn listing(image: &Path) -> (String, String) {
    let run = |program: &str, arg: &str| {
        let mut command = Command::new(format!("/usr/lib/llvm-19/bin/{program}"));
        support::run(command.arg(arg).arg(image))
    };
    (run("llvm-nm", "-D"), run("llvm-objdump", "-d"))
}

fn libdevice() -> Option<PathBuf> {
    let ptxas = support::tool("cuda", &["ptxas"])?;
    let root = ptxas.ancestors().nth(2)?.to_owned();
    let has_it = root.join("nvvm/libdevice/libdevice.10.bc").is_file();
    has_it.then_some(root)
}

#[test]
fn links_device_libraries_that_kernels_call() {
    let Some(package) = package() else {
        return;
    };
    let rocm = package.at("bitcode");
    device_libraries::put(&rocm, OCML);
    package.put("kernels/k.c", SIN);
    text(&script(&package, Some(&rocm)).output().unwrap());
    let (symbols, code) = listing(&package.image("gfx90a"));
    assert!(code.contains("s_nop 7"), "{code}");
    assert!(!symbols.contains("__ocml"), "{symbols}");
    // A library that changes is linked again.
    package.put("ocml.c", "");
    device_libraries::put(&rocm, &OCML.replace("s_nop 7", "s_nop 5"));
    text(&script(&package, Some(&rocm)).output().unwrap());
    let (_, code) = listing(&package.image("gfx90a"));
    assert!(code.contains("s_nop 5"), "{code}");
    // Also in the last link, which does not know the libraries.
    let mut deferred = script(&package, Some(&rocm));
    text(
        &deferred
            .env("OFFLOAD_REGISTER", "deferred")
            .output()
            .unwrap(),
    );
    let bitcode = package.image("gfx90a").with_file_name("kernels-k.c.bc");
    let symbols = support::run(Command::new("/usr/lib/llvm-19/bin/llvm-nm").arg(bitcode));
    assert!(symbols.contains(" t __ocml_sin_f64"), "{symbols}");
}

/// clang's header has such functions in each source.
#[test]
fn needs_no_library_for_functions_that_no_kernel_calls() {
    let Some(package) = package() else {
        return;
    };
    let region =
        "int run(int x) {\n#pragma omp target map(tofrom : x)\n  x += 1;\n  return x;\n}\n";
    package.put("kernels/k.c", &format!("#include <complex.h>\n{region}"));
    text(&script(&package, None).output().unwrap());
    let (symbols, code) = listing(&package.image("gfx90a"));
    assert!(symbols.contains("__omp_offloading_"), "{symbols}");
    assert!(!code.contains("__muldc3"), "{code}");
}

/// Target regions may call what is on the host only, such as a BLAS. Host code calls it, too.
#[test]
fn links_libraries_of_the_host_into_images_for_cpus() {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let keys = format!("sources = [\"kernels/*.c\"]\ntargets = [\"{TARGET}\"]\n");
    let Some(package) = Package::new(&keys) else {
        return;
    };
    let library = |value: i32| {
        // As many libraries for C, it calls the library of C++.
        let sum = format!("extern \"C\" int sum() {{ kept = new int; return {value}; }}\n");
        package.put("sum.cpp", &format!("int *volatile kept;\n{sum}"));
        let mut cc = Command::new("cc");
        support::run(
            cc.args(["-O1", "-fPIC", "-c", "sum.cpp"])
                .current_dir(package.at("")),
        );
        fs::create_dir_all(package.at("libraries")).unwrap();
        let mut ar = Command::new("ar");
        support::run(
            ar.args(["rcs", "libraries/libsum.a", "sum.o"])
                .current_dir(package.at("")),
        );
    };
    library(0x1234);
    package.put(
        "kernels/k.c",
        "int sum(void);\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += sum();\n  return x;\n}\n",
    );
    let error = package.fails(&mut script(&package, None));
    assert!(
        error.contains("hint: `link = [\"foo\"]` links a library of the host;"),
        "{error}"
    );
    package.put(
        "Cargo.toml",
        &format!("{}{keys}link = [\"sum\"]\n", support::package::MANIFEST),
    );
    let build = || {
        let mut script = script(&package, None);
        let output = script.env("LIBRARY_PATH", package.at("libraries")).output();
        let said = text(&output.unwrap());
        let (symbols, code) = listing(&package.image(TARGET));
        assert!(symbols.contains(" T sum\n"), "{symbols}");
        (said, code)
    };
    let (said, code) = build();
    assert!(code.contains("$0x1234"), "{code}");
    let folder = package.at("libraries");
    for line in [
        "cargo::rustc-link-lib=sum\n".to_owned(),
        format!("cargo::rustc-link-search=native={}\n", folder.display()),
        format!("cargo::rerun-if-changed={}/libsum.a\n", folder.display()),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    // A library that changes is linked again.
    library(0x4321);
    let (_, code) = build();
    assert!(code.contains("$0x4321"), "{code}");
}

#[test]
fn keeps_images_that_call_no_library() {
    let Some(package) = package() else {
        return;
    };
    let build = |rocm| {
        text(&script(&package, rocm).output().unwrap());
        fs::read(package.image("gfx90a")).unwrap()
    };
    let without = build(None);
    let rocm = package.at("bitcode");
    device_libraries::put(&rocm, OCML);
    assert_eq!(build(Some(&rocm)), without);
    // LLVM's C library for GPUs.
    let libc = package.at("libc");
    c_library(&package, &libc);
    assert_eq!(build(None), without);
}

#[test]
fn names_missing_device_libraries() {
    let Some(package) = package() else {
        return;
    };
    package.put("kernels/k.c", SIN);
    let installed = ["/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/opt/rocm"];
    if !installed.iter().any(|folder| Path::new(folder).is_dir()) {
        let error = package.fails(&mut script(&package, None));
        let hint = "\nhint: ROCm's device libraries are missing: `ocml.bc` not found (searched: /opt/rocm, /usr) [OFF604]; install ";
        assert!(
            error.contains("undefined symbol: __ocml_sin_f64") && error.contains(hint),
            "{error}"
        );
        assert!(
            error.contains("`apt install rocm-device-libs-17`"),
            "{error}"
        );
    }
    // Those that clang refuses are named with its reason, and only if they are called.
    let rocm = package.at("bitcode");
    device_libraries::put(&rocm, OCML);
    fs::remove_file(rocm.join("oclc_isa_version_90a.bc")).unwrap();
    let error = package.fails(&mut script(&package, Some(&rocm)));
    let reason = "cannot link ROCm's device libraries with bitcode: cannot find ROCm device library for gfx90a";
    assert!(error.contains(reason), "{error}");
    let flags = package.fails(script(&package, Some(&rocm)).env("OFFLOAD_FLAGS", "-nogpulib"));
    assert!(
        flags.contains("\nhint: `-nogpulib` in `flags` leaves the vendor's device libraries out"),
        "{flags}"
    );
    package.put("kernels/k.c", support::package::KERNEL);
    text(&script(&package, Some(&rocm)).output().unwrap());
}

#[test]
fn links_libdevice_for_nvidia() {
    let (Some(package), Some(ptxas)) = (package(), support::tool("cuda", &["ptxas"])) else {
        return;
    };
    package.put("kernels/k.c", SIN);
    // A tree with the assembler alone.
    fs::create_dir_all(package.at("cuda/bin")).unwrap();
    std::os::unix::fs::symlink(&ptxas, package.at("cuda/bin/ptxas")).unwrap();
    let build = |root: &Path| {
        let mut script = script(&package, None);
        script
            .env("OFFLOAD_TARGETS", "sm_80")
            .env("CUDA_PATH", root);
        script
    };
    let error = package.fails(&mut build(&package.at("cuda")));
    let hint = "\nhint: CUDA's device library is missing: `nvvm/libdevice/libdevice.10.bc` not found (searched: cuda, ";
    assert!(
        error.contains("Unresolved extern function '__nv_sin'") && error.contains(hint),
        "{error}"
    );
    let Some(root) = libdevice() else {
        return;
    };
    let told = text(&build(&root).output().unwrap());
    assert!(told.contains("/libdevice.10.bc\n"), "{told}");
    let ptx = fs::read_to_string(package.image("sm_80").with_file_name("image.s")).unwrap();
    assert!(!ptx.contains(".extern .func"), "{ptx}");
    assert!(ptx.contains("__internal_trig_reduction_slowpath"), "{ptx}");
    assert!(package.image("sm_80").is_file());
}

/// LLVM 19's device runtime for NVIDIA GPUs lacks the lock.
#[test]
fn locks_critical_regions_on_nvidia_gpus() {
    let (Some(package), Some(ptxas)) = (package(), support::tool("cuda", &["ptxas"])) else {
        return;
    };
    package.put(
        "kernels/k.c",
        "int run(int x) {\n#pragma omp target teams distribute parallel for map(tofrom : x)\n  for (int i = 0; i < 99; i++) {\n\
         #pragma omp critical\n    x += i;\n#pragma omp critical(other)\n    x += 2 * i;\n  }\n  return x;\n}\n",
    );
    let mut script = script(&package, None);
    script
        .env("OFFLOAD_TARGETS", "sm_80")
        .env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
    text(&script.output().unwrap());
    let ptx = fs::read_to_string(package.image("sm_80").with_file_name("image.s")).unwrap();
    // Each region takes its lock in a loop, and leaves it.
    let count = |text: &str| ptx.matches(text).count();
    let counts = ["atom.global.cas.b32", "membar.gl", "atom.global.exch.b32"].map(count);
    assert_eq!(counts, [2, 4, 2], "{ptx}");
    let regions = [
        "_gomp_critical_user_$var[",
        "_gomp_critical_user_other$var[",
    ]
    .map(count);
    assert_eq!(regions, [1, 1], "{ptx}");
    for (index, _) in ptx.match_indices("atom.global.cas.b32") {
        let (_, rest) = ptx.split_at(index);
        let next: Vec<&str> = rest.lines().take(3).collect();
        assert!(next[2].contains("bra"), "{next:?}");
    }
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("core/src/compile/critical_lock.ll");
    let mut verify = Command::new("/usr/lib/llvm-19/bin/opt");
    support::run(verify.args(["-passes=verify", "-disable-output"]).arg(text));
}

/// What each CUDA writes: `tests/link-wrapper/linker_programs.rs` starts programs.
#[test]
fn warns_of_images_that_libomptarget_does_not_load() {
    let (Some(package), Some(new), Some(old)) = (
        package(),
        support::tool("cuda", &["ptxas"]),
        support::tool("cuda12", &["cuda-12/bin/ptxas"]),
    ) else {
        return;
    };
    let warning = "warning: libomptarget of LLVM 19 does not load the images for sm_80, sm_90, which have the ELF format of CUDA 13\n";
    for (ptxas, expected) in [(new, 1), (old, 0)] {
        let mut script = script(&package, None);
        script
            .env("OFFLOAD_TARGETS", "gfx90a;sm_80;sm_90")
            .env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
        // The second time the images are up to date.
        for _ in 0..2 {
            let said = text(&script.output().unwrap());
            assert_eq!(said.matches(warning).count(), expected, "{said}");
        }
    }
}

/// Puts a C library for AMD GPUs beside the clang of `package`.
fn c_library(package: &Package, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    package.put("puts.c", "__attribute__((visibility(\"protected\"))) int __llvm_rpc_client;\nint helper(int);\nint puts(const char *s) { __llvm_rpc_client = *s; return helper(*s); }\n");
    package.put("helper.c", "int helper(int x) { return x * 77; }\n");
    package.put("unused.c", "int unused(int x) { return x * 5; }\n");
    let members = ["puts", "helper", "unused"].map(|name| {
        let object = folder.join(name).with_extension("o");
        let mut clang = Command::new("clang-19");
        clang
            .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-flto", "-O2"])
            .args(["-ffreestanding", "-fvisibility=hidden", "-c"])
            .arg(package.at(name).with_extension("c"))
            .arg("-o")
            .arg(&object);
        support::run(&mut clang);
        object
    });
    // The links to LLVM's folders are replaced by folders of links.
    let lib = package.at("llvm/lib");
    fs::remove_file(&lib).unwrap();
    fs::create_dir_all(lib.join("amdgcn-amd-amdhsa")).unwrap();
    for entry in fs::read_dir("/usr/lib/llvm-19/lib").unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), lib.join(entry.file_name())).unwrap();
    }
    let archive = lib.join("amdgcn-amd-amdhsa/libc.a");
    let mut ar = Command::new("/usr/lib/llvm-19/bin/llvm-ar");
    support::run(ar.arg("rcs").arg(archive).args(members));
}

#[test]
fn links_the_c_library_for_gpus_that_lies_beside_clang() {
    let Some(package) = package() else {
        return;
    };
    package.put("kernels/k.c", PUTS);
    let error = package.fails(&mut script(&package, None));
    let hint = "\nhint: for a function of the C library, install LLVM with its C library for GPUs (`lib/amdgcn-amd-amdhsa/libc.a`";
    assert!(
        error.contains("undefined symbol: puts") && error.contains(hint),
        "{error}"
    );
    c_library(&package, &package.at("libc"));
    let told = text(&script(&package, None).output().unwrap());
    let library = package.at("llvm/lib/amdgcn-amd-amdhsa/libc.a");
    let watched = format!("cargo::rerun-if-changed={}\n", library.display());
    assert!(told.contains(&watched), "{told}");
    let (symbols, code) = listing(&package.image("gfx90a"));
    // The runtime on the host looks for the first.
    assert!(symbols.contains("__llvm_rpc_client"), "{symbols}");
    assert!(
        !symbols.contains(" puts") && !symbols.contains("unused"),
        "{symbols}"
    );
    assert!(!code.contains("<unused>"), "{code}");
}

#[test]
fn builds_kernels_with_assertions_without_a_c_library() {
    let Some(package) = package() else {
        return;
    };
    let source = "#include <assert.h>\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  { assert(x > 0); x += 1; }\n\
        return x;\n}\n";
    package.put("kernels/k.c", source);
    let error = package.fails(&mut script(&package, None));
    let hint =
        "; no Debian package has it), and `define = { NDEBUG = true }` leaves `assert` out; ";
    assert!(
        error.contains("undefined symbol: rpc_fprintf") && error.contains(hint),
        "{error}"
    );
    let define = "define = { NDEBUG = true }\n";
    let manifest = format!("{}{KEYS}", support::package::MANIFEST);
    let table = "[package.metadata.offload.target.gfx90a]\n";
    for keys in [define.to_owned(), format!("{table}{define}")] {
        package.put("Cargo.toml", &format!("{manifest}{keys}"));
        text(&script(&package, None).output().unwrap());
    }
}

/// A library of one target's own, which no link for another looks into.
#[test]
fn links_libraries_that_one_target_names() {
    let Some(package) = package() else {
        return;
    };
    package.put(
        "kernels/k.c",
        "#pragma omp declare target\nint one(int); int two(int);\n#pragma omp end declare target\n\
         int run(int x) {\n#pragma omp target map(tofrom : x)\n#ifdef OWN\n  x = one(x) + two(x);\n#else\n  x++;\n#endif\n  return x;\n}\n",
    );
    for name in ["one", "two"] {
        package.put(
            &format!("{name}.c"),
            &format!("__attribute__((noinline)) int {name}(int x) {{ __asm__ volatile(\"s_nop 3\"); return x + 1; }}\n"),
        );
        let mut clang = Command::new("clang-19");
        clang
            .args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"])
            .args(["-O1", "-c", "-emit-llvm", "-o"])
            .arg(package.at(&format!("lib{name}-amdgcn-gfx90a.bc")))
            .arg(package.at(&format!("{name}.c")));
        support::run(&mut clang);
    }
    let manifest = support::package::MANIFEST;
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n";
    let own = "[package.metadata.offload.target.gfx90a]\ndefine = { OWN = true }\n";
    let libraries = "archives = [\"libone-amdgcn-gfx90a.bc\"]\nlink = [\"two\"]\n";
    package.put("Cargo.toml", &format!("{manifest}{keys}{own}{libraries}"));
    text(&script(&package, None).output().unwrap());
    assert!(package.image("gfx1100").is_file());
    let extracted = package.files();
    let of = |target: &str| {
        let is_library =
            |name: &&String| name.contains(&format!("/{target}/library-")) && name.ends_with(".bc");
        extracted.iter().filter(is_library).count()
    };
    assert_eq!((of("gfx90a"), of("gfx1100")), (2, 0));
    // clang compiles functions for AMD GPUs with hidden visibility, and images export none of these.
    let (symbols, code) = listing(&package.image("gfx90a"));
    let exported = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().next_back());
    let others = exported.filter(|name| !name.starts_with("__omp_"));
    assert_eq!(others.count(), 0, "{symbols}");
    assert!(code.contains("s_nop 3"), "{code}");
    // For all targets, the other one finds nothing in them.
    package.put("Cargo.toml", &format!("{manifest}{keys}{libraries}{own}"));
    let error = package.fails(&mut script(&package, None));
    assert!(error.contains("for `gfx1100`"), "{error}");
    package.put(
        "Cargo.toml",
        &format!("{manifest}{keys}{own}archives = [\"none.bc\"]\n"),
    );
    let error = package.fails(&mut script(&package, None));
    assert_eq!(error, "Cargo.toml:10:1: `none.bc`: no such file [OFF506]");
}

#[test]
fn says_what_clang_fails_for_in_declared_arrays() {
    let Some(package) = package() else {
        return;
    };
    let source = |values: &str| {
        let source = "#pragma omp begin declare target\nextern int table[16];\n#pragma omp end declare target\n\
                      int table[16] = VALUES;\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += table[1];\n  return x;\n}\n";
        package.put("kernels/k.c", &source.replace("VALUES", values));
    };
    source("{1, 2}");
    let error = package.fails(&mut script(&package, None));
    let hint = "\nhint: clang fails for some arrays with fewer initial values than elements that are declared before they are defined: \
                give each element a value (`{[0 ... 15] = 0}`), or none";
    assert!(error.contains(hint), "{error}");
    source("{[0 ... 15] = 0}");
    text(&script(&package, None).output().unwrap());
    assert!(package.image("gfx90a").is_file());
}
