//! Libraries that host code calls, linked by linkers that search an archive once: CUDA's static runtime, and code that the
//! build script compiles by cc.

use crate::host_code::{ALONE, package, program};
use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::launches::RUNTIME;
use support::package::{OUT, Package, link_options, text};

/// PTX, for which no `ptxas` is needed.
const PTX: &str =
    "language = \"cuda\"\nhost = true\nsources = [\"kernels/*.cu\"]\ntargets = [\"compute_80\"]\n";

/// Makes a static library in the place of NVIDIA's, with an index and a table of names before its first object.
fn static_runtime(package: &Package, folder: &str, source: &str, target: &str) -> PathBuf {
    package.put(&format!("{folder}/runtime.c"), source);
    let folder = package.at(folder);
    let mut clang = Command::new("clang-19");
    clang
        .args(["-w", "-c", "-fPIC", "-DPREFIX=cuda", "-DALIGNMENT=1"])
        .arg(format!("--target={target}-linux-gnu"))
        .args(["runtime.c", "-o", "a_name_of_more_than_fifteen_bytes.o"]);
    support::run(clang.current_dir(&folder));
    let mut ar = Command::new("llvm-ar-19");
    ar.args([
        "rcs",
        "libcudart_static.a",
        "a_name_of_more_than_fifteen_bytes.o",
    ]);
    support::run(ar.current_dir(&folder));
    folder
}

#[test]
fn links_the_static_runtime_of_cuda() {
    let Some(package) = package("cu", &format!("{PTX}{ALONE}cudart = \"static\"\n")) else {
        return;
    };
    // A folder may have the libraries of another processor.
    let other = static_runtime(&package, "other", "int x;\n", "aarch64");
    let runtime = static_runtime(&package, "runtime", RUNTIME, "x86_64");
    let folders = std::env::join_paths([&other, &runtime]).unwrap();
    let mut script = package.script();
    let told = text(&script.env("LIBRARY_PATH", &folders).output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    let copy = package.at(OUT).join("offload/runtime/libcudart_static.a");
    let original = runtime.join("libcudart_static.a");
    let watched = format!("cargo::rerun-if-changed={}\n", original.display());
    assert!(told.contains(&watched), "{told}");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(original).unwrap());

    let main = "fn main() { unsafe { launch(std::ptr::null_mut()) }; }";
    let program = program(&package, &told, main, Path::new("/nowhere"));
    let log = package.at("log");
    let mut run = Command::new(&program);
    support::run(run.env_remove("LD_LIBRARY_PATH").env("GPU_LOG", &log));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.starts_with("register 0 magic 466243b1"), "{log}");
    assert!(log.contains("\nlaunch 0 _Z5plainPif\n"), "{log}");

    // Debian has the libraries in a folder of the system, beside the root that clang reads.
    fs::create_dir_all(package.at("usr/lib/cuda/include")).unwrap();
    let of_system = static_runtime(
        &package,
        "usr/lib/x86_64-linux-gnu",
        "int other;\n",
        "x86_64",
    );
    let mut script = package.script();
    script.env("CUDA_PATH", package.at("usr/lib/cuda"));
    let told = text(&script.output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    let original = of_system.join("libcudart_static.a");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(original).unwrap());

    // The loader would take a copy that stays.
    package.declare(&format!("{PTX}{ALONE}cudart = \"none\"\n"));
    package.builds();
    assert!(!copy.exists());
}

#[test]
fn leaves_the_runtime_of_cuda_to_others() {
    let Some(package) = package("cu", &format!("{PTX}{ALONE}cudart = \"none\"\n")) else {
        return;
    };
    let told = package.builds();
    assert!(
        !told.contains("cudart") && !told.contains("cargo::warning"),
        "{told}"
    );
    // Not found.
    package.declare(&format!("{PTX}{ALONE}cudart = \"static\"\n"));
    let mut script = package.script();
    let told = text(&script.env("CUDA_PATH", "/nowhere").output().unwrap());
    let start = "cargo::warning=`libcudart_static.a` not found (searched: /nowhere/lib, ";
    assert!(told.contains(start), "{told}");
    assert!(
        told.contains("cargo::rustc-link-lib=static=cudart_static\n"),
        "{told}"
    );
}

/// A library of Rust with the generated file.
const LIBRARY: &str = r#"
mod kernels { include!(concat!(env!("OUT_DIR"), "/kernels.rs")); }
unsafe extern "C" { fn launch(x: *mut i32) -> i32; }
pub fn run() { unsafe { launch(std::ptr::null_mut()) }; }
"#;

/// Linkers that search an archive once, for what is undefined before it.
const LINKERS: [&str; 2] = ["bfd", "gold"];

fn rustc(package: &Package, options: &[String]) -> Command {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command
        .args(["-Dwarnings", "--edition=2024"])
        .args(options)
        .env("OUT_DIR", package.at(OUT))
        .current_dir(package.folder.root());
    command
}

fn with_linker(command: &mut Command, linker: &str) -> Output {
    command
        .args(["-o", "main", "-Clinker-features=-lld"])
        .arg(format!("-Clink-arg=-fuse-ld={linker}"))
        .output()
        .unwrap()
}

/// Links a program of another package, which depends on the library.
fn program_of_library(package: &Package, options: &[String], linker: &str) -> Output {
    package.put("leaf.rs", LIBRARY);
    package.put("main.rs", "fn main() { leaf::run(); }\n");
    support::run(rustc(package, options).args(["--crate-type=rlib", "leaf.rs"]));
    let folders = options.iter().filter(|option| !option.starts_with("-l"));
    let folders: Vec<String> = folders.cloned().collect();
    let mut command = rustc(package, &folders);
    with_linker(
        command.args(["--extern=leaf=libleaf.rlib", "main.rs"]),
        linker,
    )
}

/// Links the program of a package without a library.
fn program_alone(package: &Package, options: &[String], linker: &str) -> Output {
    package.put("main.rs", &format!("{LIBRARY}fn main() {{ run(); }}\n"));
    with_linker(rustc(package, options).arg("main.rs"), linker)
}

/// Runs the program: the recording runtime in it knows the kernel that host code launches.
#[track_caller]
fn launches(package: &Package, what: &str) {
    let log = package.at("log");
    let _ = fs::remove_file(&log);
    let mut run = Command::new(package.at("main"));
    support::run(run.env_remove("LD_LIBRARY_PATH").env("GPU_LOG", &log));
    let log = fs::read_to_string(log).unwrap();
    assert!(
        log.starts_with("register 0 magic 466243b1"),
        "{what}: {log}"
    );
    assert!(log.contains("\nlaunch 0 _Z5plainPif\n"), "{what}: {log}");
}

/// rustc puts the runtime into the rlib, and names the module after it.
#[test]
fn links_the_static_runtime_of_cuda_with_linkers_that_search_once() {
    let Some(package) = package("cu", &format!("{PTX}{ALONE}cudart = \"static\"\n")) else {
        return;
    };
    let runtime = static_runtime(&package, "runtime", RUNTIME, "x86_64");
    let mut script = package.script();
    let options = link_options(&text(
        &script.env("LIBRARY_PATH", &runtime).output().unwrap(),
    ));
    for linker in LINKERS {
        for link in [program_of_library, program_alone] {
            text(&link(&package, &options, linker));
            launches(&package, linker);
        }
    }
    // A program in C gets the runtime with the static library.
    let mut library = rustc(&package, &options);
    package.put(
        "exported.rs",
        &format!("{LIBRARY}#[unsafe(no_mangle)] pub extern \"C\" fn run_all() {{ run(); }}\n"),
    );
    support::run(library.args(["--crate-type=staticlib", "exported.rs"]));
    package.put(
        "main.c",
        "void run_all(void);\nint main(void) { run_all(); return 0; }\n",
    );
    for linker in LINKERS {
        let mut cc = Command::new("cc");
        cc.args(["main.c", "libexported.a", "-o", "main", "-lstdc++"])
            .args(["-lgcc_s", "-lm", "-ldl", "-lpthread"])
            .arg(format!("-fuse-ld={linker}"));
        support::run(cc.current_dir(package.folder.root()));
        launches(&package, linker);
    }
}

/// As docs/coming-from.md says: the module comes after the rlib, which has the library of cc.
#[test]
fn links_code_of_cc_that_a_module_calls_if_it_is_linked_whole() {
    let Some(package) = package("cu", &format!("{PTX}{ALONE}cudart = \"none\"\n")) else {
        return;
    };
    // The stand-in for CUDA's runtime is the code of cc.
    let folder = static_runtime(&package, "cc", RUNTIME, "x86_64");
    fs::rename(folder.join("libcudart_static.a"), folder.join("libcode.a")).unwrap();
    let module = link_options(&package.builds());
    let folder = format!("-L{}", folder.display());
    for linker in LINKERS {
        let plain = [&module[..], &[folder.clone(), "-lstatic=code".to_owned()]].concat();
        let output = program_of_library(&package, &plain, linker);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("undefined reference to"), "{errors}");
        // `cc::Build::link_lib_modifier("+whole-archive")`
        let code = [folder.clone(), "-lstatic:+whole-archive=code".to_owned()];
        for options in [[&code[..], &module].concat(), [&module[..], &code].concat()] {
            for link in [program_of_library, program_alone] {
                text(&link(&package, &options, linker));
                launches(&package, linker);
            }
        }
    }
}
