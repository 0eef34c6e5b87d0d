//! A build script, run as Cargo runs it: what it builds, tells Cargo, and says when something is wrong.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::package::{CPU, KERNEL, MANIFEST, Package, text};

#[test]
fn starts_no_compiler_when_nothing_changed_and_few_when_little_did() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put(
        "kernels/other.c",
        "int other(void) {\n#pragma omp target\n  {}\n  return 1;\n}\n",
    );
    package.builds();
    // The version, two sources for host and device, a device link, a relocatable link.
    assert_eq!(package.starts(), 1 + 2 * 2 + 1 + 1);
    package.builds();
    assert_eq!(package.starts(), 7, "nothing changed");
    package.put("kernels/k.h", "#define ONE 2\n");
    package.builds();
    assert_eq!(
        package.starts(),
        7 + 2 + 1 + 1,
        "one source includes the header"
    );
    package.put("kernels/k.h", "#define ONE 2\n");
    package.builds();
    assert_eq!(package.starts(), 11, "the same content");
    text(
        &package
            .script()
            .env("CPATH", "/nonexistent")
            .output()
            .unwrap(),
    );
    assert_eq!(
        package.starts(),
        11 + 4 + 1,
        "a variable that the compiler reads; the objects are the same"
    );
}

#[test]
fn watches_sources_headers_patterns_and_the_compiler() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let told = package.builds();
    for name in [
        "Cargo.toml",
        "kernels/k.c",
        "kernels/k.h",
        "kernels",
        "llvm/bin/clang",
    ] {
        let line = format!("cargo::rerun-if-changed={}\n", package.at(name).display());
        assert!(told.contains(&line), "{line}{told}");
    }
    for name in [
        "OFFLOAD_TARGETS",
        "OFFLOAD_TARGETS_x86_64_unknown_linux_gnu",
        "CPATH",
        "DOCS_RS",
        "OFFLOAD_MAX_DECOMPRESSED_SIZE",
    ] {
        assert!(
            told.contains(&format!("cargo::rerun-if-env-changed={name}\n")),
            "{name}\n{told}"
        );
    }
    assert!(
        !told.contains("OUT_DIR") && !told.contains("looks-again"),
        "{told}"
    );
    // What this build wrote is newer than its start: Cargo would run the script again.
    let written = format!("rerun-if-changed={}", package.at("target").display());
    assert!(!told.contains(&written), "{told}");
    // Each editor has another PATH. The programs that were found in it are watched.
    assert!(!told.contains("rerun-if-env-changed=PATH\n"), "{told}");
    package.put("kernels/other.c", &KERNEL.replace("run", "other"));
    let mut script = package.script();
    let told = text(&script.env("OFFLOAD_TARGETS", "gfx90a").output().unwrap());
    let program = package.at("llvm/bin/llvm-link");
    let line = format!("cargo::rerun-if-changed={}\n", program.display());
    assert_eq!(told.matches(&line).count(), 1, "{line}{told}");
}

#[test]
fn warns_of_variables_that_nothing_reads() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    for name in [
        "OFFLOAD_TARGTES",
        "OFFLOAD_TARGET",
        "OFFLOAD_WAVEFRONT_SIZE",
        "OFFLOAD_NAME",
        // These are read here, for another host, by a tool, or by kernels in Rust.
        "OFFLOAD_OPT_LEVEL_aarch64_unknown_linux_gnu",
        "OFFLOAD_LINK_REPORT",
        "OFFLOAD_DEVICE_THREADS",
        "OFFLOAD_CC_x86_64_unknown_linux_gnu",
    ] {
        script.env(name, "2");
    }
    let told = text(&script.output().unwrap());
    let warnings = told
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::warning="));
    let warnings: Vec<&str> = warnings.collect();
    let reads = "has no effect: offload-build reads no such variable";
    assert_eq!(
        warnings,
        [
            format!("`OFFLOAD_NAME` {reads}"),
            format!("`OFFLOAD_TARGET` {reads}; did you mean `OFFLOAD_TARGETS`?"),
            format!("`OFFLOAD_TARGTES` {reads}; did you mean `OFFLOAD_TARGETS`?"),
            format!("`OFFLOAD_WAVEFRONT_SIZE` {reads}"),
        ]
    );
    // When the variable is removed, Cargo runs the script again, and the warning goes.
    assert!(
        told.contains("cargo::rerun-if-env-changed=OFFLOAD_TARGTES\n"),
        "{told}"
    );
}

#[test]
fn leaves_tables_of_targets_alone_that_a_variable_leaves_out() {
    let table = "[package.metadata.offload.target.gfx90a]\nflags = [\"-Wno-everything\"]\n";
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    let Some(package) = Package::new(&format!("{keys}{table}")) else {
        return;
    };
    let mut script = package.script();
    let told = text(
        &script
            .env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu")
            .output()
            .unwrap(),
    );
    assert!(!told.contains("rustc-cfg=offload_target_gfx90a"), "{told}");
    package.put(
        "Cargo.toml",
        &format!("{MANIFEST}{CPU}{}", table.replace("90a", "90b")),
    );
    let error = package.fails(&mut package.script());
    assert_eq!(
        error,
        "[package.metadata.offload.target.\"gfx90b\"]: `gfx90b` is not a known processor; did you mean `gfx90a`? [OFF504]"
    );
}

#[test]
fn takes_tables_of_targets_that_a_variable_may_add() {
    let keys = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\"]\n";
    let package = |target: &str, listed: &str| {
        let package = Package::new("")?;
        package.put(
            "kernels/k.cu",
            "extern \"C\" __attribute__((global)) void k(int *x) { *x = LOAD; }\n",
        );
        let table =
            format!("[package.metadata.offload.target.{target}]\ndefine = {{ LOAD = 2 }}\n");
        let keys = keys.replace("\"sm_80\"", listed);
        let keys = format!(
            "{keys}flags = [\"-nogpuinc\", \"-nogpulib\"]\ndefine = {{ LOAD = 1 }}\n{table}"
        );
        package.declare(&keys);
        Some(package)
    };
    let plan = |package: &Package, capability: &str| {
        let mut script = package.script();
        text(&script.env("CUDA_COMPUTE_CAP", capability).output().unwrap())
    };
    let Some(sm_90) = package("compute_90", "\"compute_80\"") else {
        return;
    };
    let warning = "cargo::warning=[package.metadata.offload.target.\"compute_90\"] has no effect: `compute_90` is not one of `targets`, \
                   and no variable adds it to this build\n";
    let without = plan(&sm_90, "");
    assert!(without.contains(warning), "{without}");
    // Code asks for it in each build.
    let known = "cargo::rustc-check-cfg=cfg(offload_target_compute_90)\n";
    assert!(without.contains(known), "{without}");
    let with = plan(&sm_90, "90");
    assert!(!with.contains("has no effect"), "{with}");
    // `native` is replaced on each machine by its own GPU.
    let native = package("compute_90", "\"compute_80\", \"native\"").unwrap();
    let without = text(
        native
            .script()
            .env("DOCS_RS", "1")
            .output()
            .as_ref()
            .unwrap(),
    );
    assert!(!without.contains("has no effect"), "{without}");
    for (target, missing) in [
        ("sm_9O", "a known processor; did you mean `sm_90`? [OFF504]"),
        ("sm_99", "a known processor; did you mean `sm_89`? [OFF504]"),
        (
            "gfx90a",
            "a valid target of `cuda` [OFF503]\nhint: `cuda` is for NVIDIA GPUs (`sm_80`); for AMD GPUs set `language = \"hip\"`, in a \
             module of its own",
        ),
        ("native", "one of `targets`"),
    ] {
        let package = package(target, "\"sm_80\"").unwrap();
        let error = package.fails(&mut package.script());
        let expected =
            format!("[package.metadata.offload.target.{target:?}]: `{target}` is not {missing}");
        assert_eq!(error, expected);
    }
}

#[test]
fn tells_cargo_what_to_link() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let told = package.builds();
    for line in [
        "cargo::rustc-cfg=offload_target_x86_64_pc_linux_gnu\n",
        "cargo::rustc-check-cfg=cfg(offload_target_x86_64_pc_linux_gnu)\n",
        "cargo::rustc-check-cfg=cfg(offload_stub)\n",
        "cargo::rustc-link-lib=static:+whole-archive=pack_kernels_",
        "cargo::rustc-link-lib=dylib=omptarget\n",
        "cargo::rustc-link-arg=-Wl,-rpath,",
    ] {
        assert!(told.contains(line), "{line}{told}");
    }
    assert!(package.has_library());
    // Programs load a copy of the runtime: another one is copied again.
    let runtime = package.at("llvm/lib/libomptarget.so.19.1");
    let runtimes = [runtime.clone(), runtime.canonicalize().unwrap()];
    let is_watched = runtimes.iter().any(|file| {
        let line = format!("cargo::rerun-if-changed={}\n", file.display());
        told.contains(&line)
    });
    assert!(is_watched, "{told}");
}

#[test]
fn writes_the_same_bytes_wherever_it_builds() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let unique = |told: &str| {
        let directive = "cargo::rustc-link-lib=static:+whole-archive=";
        let library = told.lines().find_map(|line| line.strip_prefix(directive));
        library.unwrap().to_owned()
    };
    let name = unique(&package.builds());
    let library = || {
        let files = package.files();
        let path = files
            .iter()
            .find(|file| file.ends_with("_offload.a"))
            .unwrap()
            .clone();
        fs::read(path).unwrap()
    };
    let first = library();
    fs::rename(package.at("target"), package.at("before")).unwrap();
    fs::create_dir_all(package.at("target/a")).unwrap();
    let elsewhere = package.at("target/elsewhere/build/pack-0123/out");
    text(
        &package
            .script()
            .env("OUT_DIR", &elsewhere)
            .env("NUM_JOBS", "1")
            .output()
            .unwrap(),
    );
    assert!(first == library(), "the library differs");
    // Cargo has another folder for the same package with other features, and one program may have both.
    let other = package.at("target/build/pack-4567/out");
    let mut script = package.script();
    let told = text(&script.env("OUT_DIR", &other).output().unwrap());
    assert_ne!(unique(&told), name);
    let image = |out: &Path| {
        let image = out.join("offload/kernels/x86_64-pc-linux-gnu/image");
        fs::read(image).unwrap()
    };
    assert!(image(&elsewhere) != image(&other), "kernels of one name");
}

#[test]
fn obeys_variables_over_the_manifest() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    let told = text(
        &script
            .env("OFFLOAD_TARGETS", "gfx90a;x86_64-pc-linux-gnu")
            .output()
            .unwrap(),
    );
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_gfx90a\n"),
        "{told}"
    );
    let error = package.fails(package.script().env("OFFLOAD_OPT_LEVEL", "9"));
    assert_eq!(
        error,
        "OFFLOAD_OPT_LEVEL: `9` is not one of `0`, `1`, `2`, `3`, `s`, `z`"
    );
    // For modules without host code.
    let told = text(&script.env("OFFLOAD_REGISTER", "none").output().unwrap());
    let library = "cargo::rustc-link-lib=static:+whole-archive=pack_kernels_";
    assert!(told.contains(library), "{told}");
}

#[test]
fn optimizes_device_code_in_every_profile_and_host_code_as_cargo_does() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    // Of the host's compile and of the device's.
    let levels = |opt_level: &str, profile: &str| {
        let starts = package.at("starts");
        let _ = fs::remove_file(&starts);
        let _ = fs::remove_dir_all(package.at("target"));
        let mut script = package.script();
        script.env("OPT_LEVEL", opt_level).env("PROFILE", profile);
        text(&script.output().unwrap());
        let text = fs::read_to_string(&starts).unwrap();
        ["--offload-host-only", "--offload-device-only"].map(|option| {
            let line = text.lines().find(|line| line.contains(option)).unwrap();
            let level = line.split(' ').find(|word| word.starts_with("-O"));
            level.unwrap().to_owned()
        })
    };
    assert_eq!(levels("0", "debug"), ["-O0", "-O3"]);
    assert_eq!(levels("s", "release"), ["-Os", "-O3"]);
    let keys = format!("{MANIFEST}{CPU}[package.metadata.offload.profile.dev]\nopt-level = 0\n");
    package.put("Cargo.toml", &keys);
    assert_eq!(levels("1", "debug"), ["-O0", "-O0"]);
    assert_eq!(levels("1", "release"), ["-O1", "-O3"]);
}

#[test]
fn refuses_to_lose_a_target_and_says_how_to_go_on() {
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"sm_80\", \"x86_64-pc-linux-gnu\", \"gfx90a\", \"sm_90\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let script = || {
        let mut script = package.script();
        script.env("CUDA_PATH", "/nonexistent");
        script
    };
    let error = package.fails(&mut script());
    let lines: Vec<&str> = error.lines().collect();
    let start = "module `kernels`: no image for `sm_80`, `sm_90`: `ptxas` not found (searched: /nonexistent/bin, ";
    let [reason, install, ways] = lines.as_slice() else {
        panic!("{error}");
    };
    assert!(reason.starts_with(start), "{error}");
    assert!(
        install.starts_with(
            "hint: install NVIDIA's compilers (Debian's non-free, Ubuntu: `apt install "
        ),
        "{error}"
    );
    assert_eq!(
        *ways,
        "hint: OFFLOAD_TARGETS=x86_64-pc-linux-gnu,gfx90a builds the other targets; \
         OFFLOAD_MISSING=skip leaves out the targets that cannot be built"
    );
    assert!(!package.has_library());
    // Where the last link makes the images, it has no tool either, and rustc shows nothing of a link that succeeds.
    assert_eq!(
        package.fails(script().env("OFFLOAD_REGISTER", "deferred")),
        error
    );
    // Both ways are ways.
    let others = "x86_64-pc-linux-gnu,gfx90a";
    let told = text(&script().env("OFFLOAD_TARGETS", others).output().unwrap());
    assert!(!told.contains("cargo::warning="), "{told}");
    text(&script().env("OFFLOAD_MISSING", "skip").output().unwrap());
    assert!(package.has_library());
    package.put(
        "Cargo.toml",
        &format!("{MANIFEST}{keys}missing = \"error\"\n"),
    );
    assert_eq!(package.fails(&mut script()), error);
}

#[test]
fn leaves_an_image_out_only_with_a_line_that_says_so() {
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"sm_80\"]\nmissing = \"skip\"\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let mut script = package.script();
    let told = text(&script.env("CUDA_PATH", "/nonexistent").output().unwrap());
    let line = "cargo::warning=module `kernels`: no image for `sm_80`: `ptxas` not found (searched: /nonexistent/bin,";
    assert!(told.contains(line), "{told}");
    let note = "\ncargo::warning=note: the module is built without `sm_80`\n";
    assert!(told.contains(note), "{told}");
    assert!(!told.contains("rustc-cfg=offload_target_sm_80"), "{told}");
    assert!(
        told.contains("looks-again"),
        "a ptxas that appears is found by the next build: {told}"
    );
    // The program can tell, too.
    package.put(
        "main.rs",
        "#[path = \"target/build/pack-0123/out/kernels.rs\"]\nmod kernels;\n\
         fn main() { for skipped in kernels::SKIPPED { println!(\"{}: {}\", skipped.target, skipped.reason); } }\n",
    );
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition=2024",
        "main.rs",
        "-Clink-args=-Wl,--unresolved-symbols=ignore-all",
    ]);
    support::run(rustc.current_dir(package.folder.root()));
    // Targets that lack the same thing share a warning.
    let mut script = package.script();
    script
        .env("CUDA_PATH", "/nonexistent")
        .env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu,sm_80,sm_90");
    let told = text(&script.output().unwrap());
    let line = "cargo::warning=module `kernels`: no image for `sm_80`, `sm_90`: `ptxas` not found ";
    assert!(told.contains(line), "{told}");
    assert_eq!(told.matches("`ptxas` not found").count(), 1, "{told}");
    let note = "\ncargo::warning=note: the module is built without `sm_80`, `sm_90`\n";
    assert!(told.contains(note), "{told}");
    let printed = support::run(&mut Command::new(package.at("main")));
    let start = "sm_80: `ptxas` not found (searched: /nonexistent/bin, ";
    assert!(
        printed.starts_with(start) && printed.lines().count() == 1,
        "{printed}"
    );
}

#[test]
fn reports_a_kernel_that_does_not_compile_and_forgets_it() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("kernels/k.c", "int run(int x) { return y; }\n");
    let mut script = package.script();
    let error = package.fails(script.env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu,gfx90a"));
    // Once for all three passes, and the command once and last.
    let (text, command) = error.rsplit_once('\n').unwrap();
    assert_eq!(
        text,
        "kernels/k.c for the host: `llvm/bin/clang` failed (exit status: 1)\n\
         kernels/k.c:1:25: error: use of undeclared identifier 'y'\n    \
         1 | int run(int x) { return y; }\n      |                         ^\n\
         also for x86_64-pc-linux-gnu, gfx90a"
    );
    assert!(command.starts_with("command: llvm/bin/clang "), "{error}");
    assert!(!package.has_library());
    let left = package.files();
    assert!(
        left.iter().all(|file| !file.ends_with(".o")
            && !file.ends_with(".part")
            && !file.ends_with(".key")),
        "{left:?}"
    );
    package.put("kernels/k.c", KERNEL);
    package.builds();
    assert!(package.has_library());
}

/// Cargo shows the error when the build script ends, and 200 sources may include a header with a mistake.
#[test]
fn starts_no_further_compiles_after_twenty_failures() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("kernels/k.h", "int run(int x) { return y; }\n");
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    for source in 0..30 {
        package.put(&format!("kernels/k{source:02}.c"), "#include \"k.h\"\n");
    }
    package.put("progress", "");
    let mut script = package.script();
    script.env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu,gfx90a");
    script.env("OFFLOAD_PROGRESS", package.at("progress"));
    let error = package.fails(script.env("NUM_JOBS", "1"));
    let others: Vec<_> = (1..20)
        .map(|source| format!("kernels/k{source:02}.c"))
        .collect();
    let (_, end) = error.split_once("\nalso in ").unwrap();
    let (text, _) = end.split_once("\ncommand: ").unwrap();
    // Thirty sources, each for the host and two targets.
    let expected = format!(
        "{}\nafter 20 failures, 70 other steps were not started",
        others.join(", ")
    );
    assert_eq!(text, expected, "{error}");
    let progress = fs::read_to_string(package.at("progress")).unwrap();
    let failed = progress
        .lines()
        .filter(|line| line.ends_with(" for the host: failed"));
    assert_eq!(
        (progress.lines().count(), failed.count()),
        (20, 20),
        "{progress}"
    );
}

#[test]
fn colors_messages_as_cargo_is_told_to() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let targets = "x86_64-pc-linux-gnu,gfx90a";
    // A sequence that sets a terminal's title, in a line that clang quotes; the shim prints another.
    let title = "\x1b]0;pwned\x07";
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    let shim = shim.replace("exec", &format!("printf '{title}\\n' >&2\nexec"));
    package.put("llvm/bin/clang", &shim);
    let plain = "kernels/k.c:1:25: error: use of undeclared identifier 'y'\n";
    let fails = |colors: &str| {
        package.put(
            "kernels/k.c",
            &format!("int run(int x) {{ return y; }} // {title}\n"),
        );
        let mut script = package.script();
        script.env("OFFLOAD_TARGETS", targets);
        package.fails(script.env("CARGO_TERM_COLOR", colors))
    };
    let never = fails("never");
    assert!(never.contains(plain), "{never}");
    assert!(!never.contains('\x1b'), "{never:?}");
    let always = fails("always");
    assert!(always.contains("\x1b[0;1;31merror: \x1b[0m"), "{always:?}");
    assert_eq!(always.replace(title, "").matches("undeclared").count(), 1);
    for said in [&never, &always] {
        assert!(
            said.contains("\nalso for x86_64-pc-linux-gnu, gfx90a\n"),
            "{said}"
        );
        assert!(said.contains("\\x1b]0;pwned\\x07"), "{said:?}");
        assert!(
            !said.contains("\x1b]") && !said.contains('\x07'),
            "{said:?}"
        );
        assert!(!said.contains("-fcolor-diagnostics"), "{said}");
    }
    // Warnings are kept with the objects: colors are no reason to compile again, and go where nobody wants them.
    package.put("kernels/k.c", &format!("#warning odd\n{KERNEL}"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let builds = |colors: &str| {
        let mut script = package.script();
        text(&script.env("CARGO_TERM_COLOR", colors).output().unwrap())
    };
    let colored = builds("always");
    assert!(
        colored.contains("\x1b[0;1;35mwarning: \x1b[0m"),
        "{colored:?}"
    );
    let starts = package.starts();
    let plain = builds("never");
    assert!(
        plain.contains("warning: odd") && !plain.contains('\x1b'),
        "{plain:?}"
    );
    assert_eq!(package.starts(), starts);
}

#[test]
fn reports_a_device_link_that_fails() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("kernels/k.c", "#pragma omp declare target\nint far(int);\n#pragma omp end declare target\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x = far(x);\n  return x;\n}\n");
    let error = package.fails(&mut package.script());
    assert!(
        error.starts_with("device link for x86_64-pc-linux-gnu: `llvm/bin/clang` failed"),
        "{error}"
    );
    assert!(error.contains("undefined reference to `far'"), "{error}");
    assert!(error.contains("hint: "), "{error}");
    assert!(!package.has_library());
}

#[test]
fn links_kernels_for_gpus_that_the_optimizer_reshapes() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    // A parallel region below a call, and a call by pointer: modes and state machines that are chosen late.
    package.put(
        "kernels/k.c",
        "#pragma omp declare target\nint far(int);\n#pragma omp end declare target\n\
         int run(int x, int (*f)(int)) {\n#pragma omp target map(tofrom : x) firstprivate(f)\n  {\n    x = far(x);\n\
         #pragma omp parallel\n    x = far(x);\n  }\n\
         #pragma omp target map(tofrom : x) firstprivate(f)\n  x = f(x);\n  return x;\n}\n\
         #pragma omp declare target\nint far(int x) {\n#pragma omp parallel\n  x++;\n  return x;\n}\n#pragma omp end declare target\n",
    );
    let cuda = support::tool("cuda", &["ptxas"]);
    let targets = match &cuda {
        Some(_) => "gfx90a;sm_80",
        None => "gfx90a",
    };
    for level in ["1", "2", "3", "s"] {
        let mut script = package.script();
        if let Some(root) = cuda.as_deref().and_then(|path| path.ancestors().nth(2)) {
            script.env("CUDA_PATH", root);
        }
        script
            .env("OFFLOAD_TARGETS", targets)
            .env("OFFLOAD_OPT_LEVEL", level);
        text(&script.output().unwrap());
    }
}

#[test]
fn reports_a_source_without_any_target_region() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("kernels/k.c", "int run(int x) { return x; }\n");
    let error = package.fails(&mut package.script());
    assert!(error.starts_with("registration of `kernels`: no target region and no `declare target` variable in any source [OFF703]\nhint: "), "{error}");
}

#[test]
fn names_the_line_of_a_wrong_manifest() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let fails = |keys: &str| {
        package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
        package.fails(&mut package.script())
    };
    let unknown = fails("target-s = []\n");
    let (first, keys) = unknown.split_once('\n').unwrap();
    assert_eq!(
        first,
        "Cargo.toml:6:1: unknown key `target-s`; did you mean `targets`? [OFF501]"
    );
    assert!(
        keys.starts_with("hint: the keys are `language`, `sources`, `crate`, `features`, ")
            && keys.ends_with(", `name`, `module`, `profile`, `target`"),
        "{keys}"
    );
    assert_eq!(
        fails("[package.metadata.offload.target.sm_80]\nflag = 1\n"),
        "Cargo.toml:7:1: unknown key `flag`; did you mean `flags`? [OFF501]\nhint: the keys are `archives`, `link`, `define`, `flags`, `exclude`, `optional-kernels`"
    );
    let expected = "expected a processor (`gfx90a`, `sm_80`) or a host triple";
    assert_eq!(
        fails("sources = [\"kernels/k.c\"]\ntargets = [\"gfy90a\"]\n"),
        format!("Cargo.toml:7:1: `gfy90a` is not a valid target: {expected} [OFF503]")
    );
    assert_eq!(
        fails("sources = [\"kernels/k.c\"]\ntargets = [\"sm_80\", \"sm_80\"]\n"),
        "Cargo.toml:7:1: `sm_80` and `sm_80` are the same target"
    );
    // The manifest of the call before it.
    assert_eq!(
        package.fails(package.script().env("OFFLOAD_TARGETS", "gfx90a gfx1100")),
        "OFFLOAD_TARGETS: `gfx90a gfx1100` is not a valid target: a target has no blanks [OFF503]\n\
         hint: separate targets by commas"
    );
    assert_eq!(
        fails("sources = [\"kernels/none.c\"]\ntargets = [\"sm_80\"]\n"),
        "Cargo.toml:6:1: `kernels/none.c`: no such file [OFF506]"
    );
    assert_eq!(
        fails("targets = [\"sm_80\"]\n"),
        "[package.metadata.offload] has no `sources` [OFF508]\nhint: add for example `sources = [\"kernels/*.c\"]`"
    );
    assert_eq!(
        fails("sources = [\"kernels/k.c\"]\n"),
        "[package.metadata.offload] has no `targets` [OFF508]\nhint: add for example `targets = [\"gfx90a\"]`"
    );
}

#[test]
fn takes_each_file_once_and_names_what_it_cannot_examine() {
    let keys = "sources = [\"kernels/**/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, package.at("kernels").join(name)).unwrap();
    };
    // A folder in itself, another name of a source, and what Emacs puts beside a file that is edited.
    link(".", "loop");
    link(".", "again");
    link("k.c", "other.c");
    link("user@host.12:34", ".#k.c");
    package.builds();
    let object = "target/build/pack-0123/out/offload/kernels/host/kernels-k.c.o";
    assert!(package.at(object).is_file(), "{:#?}", package.files());
    // The version, one source for host and device, a device link, a relocatable link.
    assert_eq!(package.starts(), 5);
    link("gone.c", "dangling.c");
    assert_eq!(
        package.fails(&mut package.script()),
        "Cargo.toml:6:1: `kernels/**/*.c`: kernels/dangling.c: No such file or directory (os error 2)"
    );
    let fails = |pattern: &str| {
        let keys = format!("sources = [\"{pattern}\"]\ntargets = [\"sm_80\"]\n");
        package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
        package.fails(&mut package.script())
    };
    assert_eq!(
        fails("kernels/"),
        "Cargo.toml:6:1: `kernels/`: a folder\n\
         hint: `kernels/*.c` lists its sources, `kernels/**/*.c` also those of folders in it"
    );
    assert!(
        fails("").ends_with("hint: `*.c` lists its sources, `**/*.c` also those of folders in it")
    );
    assert_eq!(
        fails("kernels/*.{c,cpp}"),
        format!(
            "Cargo.toml:6:1: no file matches `kernels/*.{{c,cpp}}` in {} [OFF506]\n\
             hint: list one pattern for each: braces are not supported",
            package.folder.root().display()
        )
    );
    // A name that is also a pattern, of another file.
    package.put("kernels/[k].c", "int broken(\n");
    let keys = "sources = [\"kernels/[k].c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    let error = package.fails(&mut package.script());
    assert!(error.contains("kernels/[k].c:"), "{error}");
}

#[test]
fn says_what_was_searched_for_a_missing_compiler() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let empty = package.at("empty");
    let mut script = package.script();
    let error = package.fails(script.env_remove("OFFLOAD_COMPILER").env("PATH", &empty));
    assert!(error.starts_with("module `kernels`: no compiler for `openmp`: searched PATH for clang-24 to clang-16 and clang, found none [OFF601]\nhint: install clang "), "{error}");
    let mut script = package.script();
    let error = package.fails(script.env("OFFLOAD_COMPILER", "clang-99"));
    assert!(
        error.starts_with(
            "OFFLOAD_COMPILER: `compiler`: `clang-99` not found in PATH [OFF601]\nhint: "
        ),
        "{error}"
    );
    assert!(package.files().is_empty());
}

#[test]
fn refuses_a_compiler_whose_release_has_no_runtime() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    fs::remove_file(package.at("llvm/lib")).unwrap();
    let error = package.fails(&mut package.script());
    assert!(
        error.starts_with(
            "OFFLOAD_COMPILER: `compiler`: `llvm/bin/clang` has no libomptarget.so in "
        ) && error.contains(" [OFF606]\nhint: "),
        "{error}"
    );
    // Only whether it is a clang.
    assert_eq!(package.starts(), 1);
    // One that nobody declared has it.
    if Path::new("/usr/lib/llvm-19/lib/libomptarget.so").exists() {
        let path = std::env::var_os("PATH").unwrap();
        for compiler in ["llvm/bin/clang", "clang-42"] {
            let mut script = package.script();
            script.env("OFFLOAD_COMPILER", compiler).env("PATH", &path);
            let error = package.fails(&mut script);
            let hint = "\nhint: unset OFFLOAD_COMPILER to use `/";
            assert!(
                error.contains(hint) && !error.contains("install"),
                "{error}"
            );
        }
    }
}

#[test]
fn builds_a_stub_where_that_is_asked_for_or_documentation_is_made() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", "clang-99")
        .env("OFFLOAD_MISSING", "stub");
    let told = text(&script.output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    assert!(
        told.contains(
            "cargo::warning=OFFLOAD_COMPILER: `compiler`: `clang-99` not found in PATH [OFF601]\n"
        ),
        "{told}"
    );
    let note = "\ncargo::warning=note: the module is built without device code: target regions run on the host\n";
    assert!(told.contains(note), "{told}");
    let told = text(&script.env("PATH", package.at("empty")).output().unwrap());
    let hint = "\ncargo::warning=hint: install clang ";
    assert!(
        told.contains(hint) && !told.contains("OFFLOAD_MISSING=stub"),
        "{told}"
    );
    let host_file = package.at("target/build/pack-0123/out/kernels.rs");
    assert!(
        fs::read_to_string(&host_file)
            .unwrap()
            .contains("`clang-99` not found in PATH")
    );
    let told = text(&package.script().env("DOCS_RS", "1").output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    assert!(
        fs::read_to_string(&host_file)
            .unwrap()
            .contains("documentation is built without device code")
    );
    assert_eq!(package.starts(), 0);
    // Of the host code, without device code.
    assert!(package.has_library());
}

/// sccache compares the options of rustc, but not a library that is linked whole.
#[test]
fn tells_a_wrapper_of_rustc_that_a_library_has_changed() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let digests = |variable: &str, wrapper: &str| -> Vec<String> {
        let told = text(&package.script().env(variable, wrapper).output().unwrap());
        let digests = told
            .lines()
            .filter(|line| line.starts_with("cargo::rustc-cfg=offload_library="));
        digests.map(str::to_owned).collect()
    };
    assert_eq!(digests("RUSTC_WRAPPER", ""), [""; 0]);
    let first = digests("RUSTC_WRAPPER", "/opt/wrapper");
    assert_eq!(first.len(), 1);
    assert_eq!(digests("RUSTC_WORKSPACE_WRAPPER", "/opt/wrapper"), first);
    package.put("kernels/k.h", "#define ONE 2\n");
    let second = digests("RUSTC_WRAPPER", "/opt/wrapper");
    assert!(second.len() == 1 && second != first, "{second:?}");
    // The stub of a build without device code, too.
    let mut stub = package.script();
    let told = text(
        &stub
            .env("DOCS_RS", "1")
            .env("RUSTC_WRAPPER", "w")
            .output()
            .unwrap(),
    );
    assert!(told.contains("cargo::rustc-cfg=offload_library="), "{told}");
}

#[test]
fn prints_the_plan_instead_of_building() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let output = package
        .script()
        .env("OFFLOAD_DRY_RUN", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let plan = String::from_utf8(output.stderr).unwrap();
    let plan = plan.replace(&format!("{}/", package.folder.root().display()), "");
    let end = "\nError: OFFLOAD_DRY_RUN is set: the plan was printed, and nothing was built\n";
    assert!(plan.ends_with(end), "{plan}");
    let head = "\n# kernels/k.c for the host\nllvm/bin/clang --no-default-config -fopenmp -fopenmp-targets=x86_64-unknown-linux-gnu ";
    assert!(
        plan.starts_with("mkdir -p target/build/pack-0123/out/offload/kernels ")
            && plan.contains(head),
        "{plan}"
    );
    assert!(
        plan.contains("\nmv target/build/pack-0123/out/offload/kernels/host/kernels-k.c.o.part "),
        "{plan}"
    );
    assert!(
        plan.contains("\nar rcsD target/build/pack-0123/out/libpack_kernels_"),
        "{plan}"
    );
    // All but asking for the version.
    assert_eq!(package.starts(), 1);
    assert!(!package.has_library());
    let folder = package.at("new/plans");
    let error = package.fails(package.script().env("OFFLOAD_DRY_RUN", &folder));
    assert_eq!(
        error,
        "OFFLOAD_DRY_RUN is set: the plan was written to `new/plans/pack 1.2.3`, and nothing was built"
    );
    assert!(folder.join("pack 1.2.3").is_file());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn leaves_nothing_half_written_when_the_disk_is_full() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.builds();
    let before = package.files();
    let library = before
        .iter()
        .find(|file| file.ends_with("_offload.a"))
        .unwrap()
        .clone();
    let good = fs::read(&library).unwrap();
    package.put(
        "kernels/k.h",
        "#define ONE 3\nstatic const char big[60000] = {1};\nconst char *far = big;\n",
    );
    // No file may grow past 24 KiB: what a full disk is to every writer.
    let script = package.script();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 48; exec \"$0\""])
        .arg(script.get_program());
    limited.env_clear().current_dir(package.folder.root());
    limited.envs(
        script
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let error = package.fails(&mut limited);
    assert!(
        error.contains("File too large") || error.contains("failed"),
        "{error}"
    );
    assert!(
        package.files().iter().all(|file| !file.ends_with(".part")),
        "{:?}",
        package.files()
    );
    assert!(
        fs::read(&library).unwrap() == good,
        "the library of the last good build is touched"
    );
    package.builds();
    assert!(fs::read(&library).unwrap() != good);
}

#[test]
fn takes_the_settings_of_the_workspace_that_cargo_says_the_package_is_in() {
    let keys = "sources = [\"kernels/*.c\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let own =
        "[package]\nname = \"pack\"\n[package.metadata.offload]\nsources = [\"kernels/k.c\"]\n";
    let defaults = "[workspace.metadata.offload]\nlanguage = \"openmp\"\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    let manifest = |name: &str, text: &str| package.put(&format!("{name}/Cargo.toml"), text);
    for file in ["k.c", "k.h"] {
        let text = fs::read_to_string(package.at("kernels").join(file)).unwrap();
        package.put(&format!("in/kernels/{file}"), &text);
    }
    package.put("in/src/lib.rs", "");
    let script = || {
        let mut script = package.script();
        script.env("CARGO_MANIFEST_DIR", package.at("in"));
        script
    };
    let lacks = "[package.metadata.offload] has no `language` [OFF508]\nhint: the languages are `openmp`, `hip`, `cuda`, `bitcode`, \
                 `rust`, `prebuilt`";

    manifest(".", &format!("[workspace]\nmembers = [\"in\"]\n{defaults}"));
    manifest("in", own);
    let told = text(&script().output().unwrap());
    let watched = format!("rerun-if-changed={}\n", package.at("Cargo.toml").display());
    assert!(told.contains(&watched), "{told}");

    manifest(".", &format!("[workspace]\nexclude = [\"in\"]\n{defaults}"));
    assert_eq!(package.fails(&mut script()), lacks, "an excluded package");
    manifest(".", &format!("[workspace]\n{defaults}"));
    assert_eq!(package.fails(&mut script()), lacks, "one that is no member");

    manifest("in", &format!("{own}[workspace]\n{defaults}"));
    text(&script().output().unwrap());

    manifest(
        "root",
        &format!("[workspace]\nmembers = [\"../in\"]\n{defaults}"),
    );
    manifest(
        "in",
        &own.replace("[package]\n", "[package]\nworkspace = \"../root\"\n"),
    );
    text(&script().output().unwrap());

    // A table for one target lies over that of the workspace, key for key.
    let table = |of: &str, keys: &str| format!("[{of}.metadata.offload.target.gfx90a]\n{keys}");
    let of_workspace = table(
        "workspace",
        "define = { A = 1, B = 2 }\nflags = [\"-DC=3\"]\n",
    );
    let of_package = table("package", "define = { B = 4 }\n");
    manifest(
        ".",
        &format!("[workspace]\nmembers = [\"in\"]\n{defaults}{of_workspace}"),
    );
    manifest("in", &format!("{own}targets = [\"gfx90a\"]\n{of_package}"));
    let output = script().env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    let is_compile = |line: &&str| line.contains("--offload-device-only");
    let compile = plan.lines().find(is_compile).unwrap();
    assert!(compile.contains(" -DA=1 -DB=4 -DC=3 "), "{compile}");
}

#[test]
fn watches_no_folder_in_which_cargo_builds() {
    let keys =
        "sources = [\"**/*.c\"]\nexclude = [\"llvm/**\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    package.put("target/build/other-0123/out/made.c", "no C at all");
    let told = package.builds();
    let watches = |name: &str| {
        let line = format!("cargo::rerun-if-changed={}\n", package.at(name).display());
        told.contains(&line.replace("/\n", "\n"))
    };
    assert!(watches("kernels"), "{told}");
    assert!(!watches("") && !watches("target"), "{told}");
}

#[test]
fn watches_headers_of_a_package_that_lies_in_the_compilers_prefix() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("kernels/k.h", "#include \"../llvm/src/one.h\"\n");
    package.put("llvm/src/one.h", "#define ONE 1\n");
    let told = package.builds();
    assert!(told.contains("/llvm/src/one.h\n"), "{told}");
    assert!(!told.contains("/stddef.h\n"), "{told}");
}

#[test]
fn reports_a_warning_once_for_all_passes() {
    let keys = "sources = [\"kernels/*.c\"]\nflags = [\"-Wall\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    package.put(
        "kernels/k.h",
        "#define ONE 1\nstatic int unused(void) { return 1; }\n",
    );
    package.put("kernels/k.c", &format!("static int lonely;\n{KERNEL}"));
    let told = package.builds();
    let count = |text: &str| told.matches(text).count();
    for warning in ["unused function 'unused'", "unused variable 'lonely'"] {
        assert_eq!(count(warning), 1, "{told}");
    }
    assert_eq!(count("cargo::warning=kernels/k.c for "), 1, "{told}");
    assert_eq!(count("generated."), 0, "{told}");
    let again = package.builds();
    assert_eq!(
        again, told,
        "Cargo shows what the last run says, so it says all again"
    );
}

#[test]
fn prints_no_more_of_a_compilers_messages_than_anybody_reads() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let lines: String = (0..4000)
        .map(|number| format!("#warning number {number}\\n"))
        .collect();
    package.put(
        "kernels/k.h",
        &format!("#define ONE 1\n{}", lines.replace("\\n", "\n")),
    );
    let told = package.builds();
    let warnings: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("cargo::warning="))
        .collect();
    let size: usize = warnings.iter().map(|line| line.len()).sum();
    assert!(size < 100 << 10, "{size}");
    let file = package.at("target/build/pack-0123/out/offload/kernels/warnings.txt");
    let last = warnings.last().unwrap();
    assert!(
        last.ends_with(&format!(" more lines; all of it is in {}", file.display())),
        "{last}"
    );
    assert!(fs::read_to_string(&file).unwrap().contains("number 3999"));
}

#[test]
fn builds_a_stub_when_the_tools_of_every_target_are_missing() {
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"sm_80\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let mut script = package.script();
    script.env("CUDA_PATH", "/nonexistent");
    let error = package.fails(&mut script);
    assert!(
        error.starts_with("module `kernels`: no image for `sm_80`: `ptxas` not found (searched: ")
            && error.ends_with(
                "\nmodule `kernels`: no image can be built\n\
                 hint: OFFLOAD_MISSING=stub builds the crate without device code"
            ),
        "{error}"
    );
    let told = text(&script.env("OFFLOAD_MISSING", "stub").output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    // The tools may be installed before the next build.
    let again = "/offload/looks-again-for-what-was-missing\n";
    assert!(told.contains(again), "{told}");
}

#[test]
fn takes_paths_from_the_package_or_from_the_root() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", "llvm/bin/clang")
        .env("OFFLOAD_SOURCES", package.at("kernels/k.c"));
    text(&script.output().unwrap());
}

#[test]
fn names_a_source_that_is_neither_c_nor_cpp() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    script.env("OFFLOAD_SOURCES", "kernels/*");
    assert_eq!(
        package.fails(&mut script),
        "OFFLOAD_SOURCES: `kernels/k.h` is not a source of `openmp` (`.c`, `.C`, `.cc`, `.cp`, `.cpp`, `.cxx`, `.c++` are)"
    );
    package.put("kernels/k.cu", KERNEL);
    script.env("OFFLOAD_SOURCES", "kernels/*.cu");
    let error = package.fails(&mut script);
    let hint = "\nhint: with `flags = [\"-x\", \"c++\"]` every source is C++, whatever its name";
    assert!(error.ends_with(hint), "{error}");
    package.put("kernels/k.inc", KERNEL);
    let mut script = package.script();
    script
        .env("OFFLOAD_SOURCES", "kernels/k.inc")
        .env("OFFLOAD_FLAGS", "-x;c");
    let told = text(&script.output().unwrap());
    let library = "cargo::rustc-link-lib=dylib=stdc++\n";
    assert!(!told.contains(library), "{told}");
    // Objects of C++ need its library.
    package.put("options", "-x c++\n");
    script.env("OFFLOAD_FLAGS", "-x;c;@options");
    let told = text(&script.output().unwrap());
    assert!(told.contains(library), "{told}");
}

/// Writes zeros over the numbers in `__omp_offloading_<number>_<number>_<function>`.
fn hide_numbers(bytes: &mut [u8]) {
    let prefix = b"__omp_offloading_";
    for start in 0..bytes.len() {
        if bytes[start..].starts_with(prefix) {
            let digits = bytes[start + prefix.len()..].iter_mut();
            let digits = digits.take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'_');
            digits
                .filter(|byte| **byte != b'_')
                .for_each(|byte| *byte = b'0');
        }
    }
}

#[test]
fn prints_a_plan_that_a_shell_runs() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    // What follows the images is made in the process of the build script.
    let images = plan.split("# registration of ").next().unwrap();
    let mut shell = Command::new("sh");
    text(&shell.args(["-e", "-c", images]).output().unwrap());
    let files = || {
        let made = package.files().into_iter();
        let made = made.filter(|file| file.ends_with("image") || file.ends_with("k.c.o"));
        made.map(|file| {
            let mut bytes = fs::read(&file).unwrap();
            // The shell leaves the numbers of the source in names of kernels, and the image has a hash table of them.
            match file.ends_with("image") {
                true => bytes = bytes.len().to_le_bytes().to_vec(),
                false => hide_numbers(&mut bytes),
            }
            (bytes, file)
        })
        .collect()
    };
    let by_hand: Vec<(Vec<u8>, String)> = files();
    assert_eq!(by_hand.len(), 3);
    fs::remove_dir_all(package.at("target")).unwrap();
    package.builds();
    assert!(by_hand == files());
}

#[test]
fn declares_the_cfg_of_every_target_that_any_layer_lists() {
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\", \"sm_80\"]\n\
                [package.metadata.offload.profile.dev]\ntargets = [\"x86_64-pc-linux-gnu\"]\n\
                [package.metadata.offload.profile.release]\ntargets = [\"sm_90\"]\n\
                [package.metadata.offload.profile.release.target.sm_70]\ndefine = { OLD = true }\n\
                [[package.metadata.offload.module]]\nname = \"on\"\n\
                [[package.metadata.offload.module]]\nname = \"off\"\nfeature = \"off\"\ntargets = [\"gfx942\"]\n\
                [features]\noff = []\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let told = package.builds();
    for name in [
        "gfx90a",
        "sm_70",
        "sm_80",
        "sm_90",
        "gfx942",
        "x86_64_pc_linux_gnu",
    ] {
        let line = format!("cargo::rustc-check-cfg=cfg(offload_target_{name})\n");
        assert!(told.contains(&line), "{line}{told}");
    }
    let set = "cargo::rustc-cfg=offload_target_";
    assert_eq!(told.matches(set).count(), 1, "{told}");
}

#[test]
fn builds_for_gpus_what_requires_unified_memory() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let source = format!("#pragma omp requires unified_shared_memory\n{KERNEL}");
    package.put("kernels/k.c", &source);
    let mut script = package.script();
    let told = text(&script.env("OFFLOAD_TARGETS", "gfx90a").output().unwrap());
    assert!(told.contains("offload_target_gfx90a\n"), "{told}");
    let file = fs::read_to_string(package.at("target/build/pack-0123/out/kernels.rs")).unwrap();
    let kernels = file.lines().find(|line| line.contains("KERNELS")).unwrap();
    assert_eq!(kernels.matches('"').count(), 2, "{kernels}");
}

#[test]
fn looks_behind_a_compiler_cache_for_the_compiler() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put("cache/ccache", "#!/bin/sh\nexit 1\n");
    for name in ["clang", "clang-19"] {
        std::os::unix::fs::symlink("ccache", package.at("cache").join(name)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", package.at("cache").display());
    let mut script = package.script();
    script.env_remove("OFFLOAD_COMPILER").env("PATH", path);
    let told = text(&script.output().unwrap());
    assert!(
        told.contains("rerun-if-changed=/usr/bin/clang-19\n"),
        "{told}"
    );
    script.env("OFFLOAD_COMPILER", "clang-19");
    text(&script.output().unwrap());
}

#[test]
fn leaves_no_file_of_a_module_whose_feature_is_off() {
    let Some(package) = Package::new(&format!("{CPU}feature = \"gpu\"\n[features]\ngpu = []\n"))
    else {
        return;
    };
    let file = package.at("target/build/pack-0123/out/kernels.rs");
    let mut script = package.script();
    text(&script.env("CARGO_FEATURE_GPU", "1").output().unwrap());
    assert!(file.is_file());
    let told = package.builds();
    assert!(
        !file.is_file() && !told.contains("rustc-link-lib"),
        "{told}"
    );
}

#[test]
fn leaves_no_file_of_a_module_that_is_no_longer_declared() {
    let Some(package) = Package::new(&format!("{CPU}name = \"former\"\n")) else {
        return;
    };
    let file = |name: &str| package.at("target/build/pack-0123/out").join(name);
    // Folders of other files have these names.
    for name in ["artifacts", "runtime", "Runtime", "last"] {
        package.builds();
        let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
        let former = manifest
            .split('"')
            .find(|part| file(&format!("{part}.rs")).is_file());
        let former = former.unwrap_or_else(|| panic!("{manifest}"));
        package.put(
            "Cargo.toml",
            &manifest.replace(&format!("\"{former}\""), &format!("\"{name}\"")),
        );
        // Of other programs.
        package.put("target/build/pack-0123/out/bindings.rs", "");
        package.builds();
        assert!(!file(&format!("{former}.rs")).exists(), "{former}");
        assert!(file(&format!("{name}.rs")).is_file() && file("bindings.rs").is_file());
    }
    // The build script itself has written a file of the former name.
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let own = "// Constants of the build script.\n";
    package.put("target/build/pack-0123/out/last.rs", own);
    package.put("Cargo.toml", &manifest.replace("\"last\"", "\"next\""));
    package.builds();
    assert_eq!(fs::read_to_string(file("last.rs")).unwrap(), own);
}

/// Cargo runs a build script again if a path that it names does not exist.
#[test]
fn names_no_build_script_that_is_not_there() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let line = "cargo::rerun-if-changed=build.rs\n";
    assert!(package.builds().contains(line));
    fs::rename(package.at("build.rs"), package.at("script.rs")).unwrap();
    assert!(!package.builds().contains(line));
}

#[test]
fn says_which_release_of_rust_a_package_must_require() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let mut script = package.script();
    let error = package.fails(script.env("CARGO_PKG_RUST_VERSION", "1.74.1"));
    assert!(
        error.starts_with("`rust-version = \"1.74.1\"` in Cargo.toml: "),
        "{error}"
    );
    text(
        &script
            .env("CARGO_PKG_RUST_VERSION", "1.77")
            .output()
            .unwrap(),
    );
    // Symbols have ASCII letters alone.
    text(&script.env("CARGO_PKG_NAME", "käse-1").output().unwrap());
    let libraries = package.files().into_iter();
    let mut libraries = libraries.filter(|name| name.ends_with("_offload.a"));
    assert!(libraries.any(|name| name.contains("libk_se_1_kernels_")));
}

#[test]
fn leaves_out_what_a_layer_below_defines_and_what_exclude_names() {
    let keys = "sources = [\"kernels/*.c\"]\nexclude = [\"./kernels/no.c\"]\n\
                targets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\ndefine = { A = 1, B = 2, C = 3 }\n\
                [package.metadata.offload.profile.dev]\ndefine = { A = false }\n\
                [package.metadata.offload.target.gfx90a]\ndefine = { B = false }\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    package.put("kernels/no.c", "#error excluded\n");
    let mut script = package.script();
    let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    assert!(!plan.contains("no.c") && !plan.contains("-DA=1"), "{plan}");
    let compiles = |line: &&str| line.contains(" -c ");
    for line in plan.lines().filter(compiles) {
        assert_eq!(line.contains("-DB=2"), !line.contains("gfx90a"), "{line}");
        assert!(line.contains("-DC=3"), "{line}");
    }
    assert_eq!(plan.lines().filter(compiles).count(), 3);
}

#[test]
fn says_which_target_or_language_is_meant() {
    let Some(package) = Package::new("") else {
        return;
    };
    let fails = |language: &str, target: &str, more: &str| {
        let keys = format!(
            "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"{language}\"\n\
             sources = [\"kernels/*.c\"]\ntargets = [\"{target}\"]\n{more}"
        );
        package.put("Cargo.toml", &keys);
        let mut script = package.script();
        package.fails(script.env_remove("OFFLOAD_COMPILER"))
    };
    let language = fails("OpenMP", "sm_80", "");
    assert!(language.ends_with("; did you mean `openmp`?"), "{language}");
    for (target, meant) in [("MI250", "gfx90a"), ("RTX 4090", "sm_89"), ("8.0", "sm_80")] {
        assert_eq!(
            fails("openmp", target, ""),
            format!(
                "Cargo.toml:7:1: `{target}` is not a valid target: expected a processor (`gfx90a`, `sm_80`) or a host \
                 triple; did you mean `{meant}`? [OFF503]"
            )
        );
    }
    let error = fails("openmp", "gfx90b", "compiler = \"llvm/bin/clang\"\n");
    let start = "module `kernels`: no image for `gfx90b`: Cargo.toml:7:1: `gfx90b` is not a known processor; did you mean \
                 `gfx90a`? [OFF504]\nhint: this LLVM has OpenMP's device runtime for gfx1010, ";
    assert!(error.starts_with(start), "{error}");
    let end = "\nnote: `libomptarget-amdgpu-gfx90b.bc` not found (searched: ";
    assert!(error.contains(end), "{error}");
    assert_eq!(error.matches("not a known processor").count(), 1, "{error}");
    let flags = "flags = [\"-nogpulib\", \"-nogpuinc\", \"-xhip\"]\n";
    let error = fails("hip", "gfx9999", flags);
    let start = "Cargo.toml:7:1: `gfx9999` is not a known processor [OFF504]\n\
                 hint: `cargo offload targets` lists the known processors; for a new GPU install a newer clang\n\
                 note: module `kernels`: no compiler for its targets: `";
    assert!(error.starts_with(start), "{error}");
    assert!(error.contains(" does not know `gfx9999`"), "{error}");
    assert_eq!(error.matches("not a known processor").count(), 1, "{error}");
    let mut script = package.script();
    script.env_remove("OFFLOAD_COMPILER");
    assert_eq!(package.fails(script.env("OFFLOAD_DRY_RUN", "1")), error);
    let gcc = support::program("gcc").unwrap();
    let more = format!("compiler = \"{}\"\n", gcc.display());
    let error = fails("openmp", "gfx90a", &more);
    let start = format!(
        "`compiler`: `{}` is not a clang: its version is `gcc ",
        gcc.display()
    );
    assert!(
        error.starts_with(&format!("Cargo.toml:8:1: {start}")),
        "{error}"
    );
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", &gcc);
    let error = package.fails(&mut script);
    assert!(
        error.starts_with(&format!("OFFLOAD_COMPILER: {start}")),
        "{error}"
    );
}

#[test]
fn names_the_package_of_headers_for_another_host() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    package.put(
        "kernels/k.c",
        &format!("#include <no-such-header.h>\n{KERNEL}"),
    );
    let mut script = package.script();
    script
        .env("TARGET", "aarch64-unknown-linux-gnu")
        .env("OFFLOAD_TARGETS", "gfx90a");
    let error = package.fails(&mut script);
    let hint = "\nhint: headers of the C library for aarch64-unknown-linux-gnu are in Debian's and Ubuntu's package \
                libc6-dev-arm64-cross; `flags = [\"--sysroot=DIR\"]` names others";
    assert!(error.contains(hint), "{error}");
    package.put(
        "kernels/k.c",
        &format!("#include <no_such_header>\n{KERNEL}"),
    );
    let error = package.fails(&mut script);
    let hint = "\nhint: headers of the C++ library for aarch64-unknown-linux-gnu are in Debian's and Ubuntu's package \
                g++-aarch64-linux-gnu; ";
    assert!(error.contains(hint), "{error}");
    script.env("TARGET", "x86_64-unknown-linux-gnu");
    let error = package.fails(&mut script);
    assert!(
        error.contains("file not found") && !error.contains("hint: headers"),
        "{error}"
    );
}

#[test]
fn builds_from_deep_folders_with_long_names_and_without_a_temporary_folder() {
    let Some(package) = Package::new("") else {
        return;
    };
    // 277 characters.
    let deep = format!("{}k.c", "a-rather-long-folder-name/".repeat(10));
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put(
        &format!("kernels/{deep}"),
        &KERNEL
            .replace("k.h", "../".repeat(10).as_str())
            .replace("../\"", "../k.h\""),
    );
    let name = "a_module_with_a_name".repeat(9);
    let declare = |name: &str| {
        let keys = format!(
            "sources = [\"kernels/**/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\nname = \"{name}\"\n"
        );
        package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    };
    declare(&name);
    let mut script = package.script();
    script.env("TMPDIR", "/nonexistent/folder");
    script.env("CARGO_PKG_NAME", "pack-of-a-long-name".repeat(3));
    text(&script.output().unwrap());
    assert!(package.has_library());
    declare(&name.repeat(2));
    let error = package.fails(&mut script);
    assert!(
        error.ends_with("` is longer than 200 characters"),
        "{error}"
    );
}

#[test]
fn finds_the_linker_of_the_clang_behind_a_script() {
    let keys = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"hip\"\n\
                sources = [\"k.hip\"]\ntargets = [\"gfx90a\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    let Some(package) = Package::new("") else {
        return;
    };
    package.put("Cargo.toml", keys);
    let kernel = "extern \"C\" __attribute__((global)) void one(int *x) { *x = 1; }\n";
    package.put("k.hip", kernel);
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    package.put("tools/bin/clang", &shim);
    let mut script = package.script();
    script
        .env("PATH", "/nowhere")
        .env("OFFLOAD_COMPILER", package.at("tools/bin/clang"));
    text(&script.output().unwrap());
}

#[test]
fn refuses_macros_that_no_compiler_takes() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    let keys =
        "define = { \"SQUARE(x)\" = \"((x) * (x))\", \"NONE()\" = 1, \"MORE(x, ...)\" = 2 }\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{CPU}{keys}"));
    package.put("kernels/k.h", "#define ONE SQUARE(1)\n");
    package.builds();
    for name in ["A B", "1A", "A=1", "A(", "A(1)", ""] {
        package.put(
            "Cargo.toml",
            &format!("{MANIFEST}{CPU}define = {{ \"{name}\" = 1 }}\n"),
        );
        assert_eq!(
            package.fails(&mut package.script()),
            format!(
                "Cargo.toml:8:1: `{name}` is not a macro: expected an identifier, or `NAME(x, y)`"
            )
        );
    }
}

#[test]
fn refuses_flags_that_a_key_stands_for() {
    let Some(package) = Package::new("") else {
        return;
    };
    let fails = |language: &str, flags: &str| {
        let keys = format!(
            "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"{language}\"\nflags = [{flags}]\n\
             sources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\"]\nhost = true\n"
        );
        let keys = match language {
            "openmp" => keys.replace("host = true\n", ""),
            "cuda" => keys.replace(".c\"", ".cu\"").replace("gfx90a", "sm_80"),
            _ => keys.replace(".c\"", ".hip\""),
        };
        package.put("Cargo.toml", &keys);
        let error = package.fails(&mut package.script());
        let (first, _) = error.split_once(" [OFF500]").unwrap_or((&error, ""));
        first.trim_start_matches("Error: ").trim().to_owned()
    };
    package.put("kernels/k.hip", "");
    package.put("kernels/k.cu", "");
    let start = "Cargo.toml:6:1:";
    for flag in ["-fgpu-rdc", "-fno-gpu-rdc", "-rdc=true", "-dc"] {
        let name = flag.trim_end_matches("=true");
        let expected = format!(
            "{start} `{name}` in `flags` changes only a part of the build: the key `rdc` does that"
        );
        assert_eq!(fails("hip", &format!("\"{flag}\"")), expected);
    }
    assert_eq!(
        fails("hip", "\"-Xarch_host\", \"--offload-compress\""),
        format!(
            "{start} `--offload-compress` in `flags` changes only a part of the build: the key `compress` does that"
        )
    );
    assert_eq!(
        fails("openmp", "\"-flto\""),
        format!(
            "{start} `-flto` in `flags` changes only a part of the build: remove it; device code with `rdc = true` is optimized \
             as a whole anyway"
        )
    );
    for (language, flag, instead) in [
        ("openmp", "-S", "remove it"),
        ("hip", "-fsyntax-only", "remove it"),
        (
            "cuda",
            "-ptx",
            "`targets` does that: `compute_80` makes PTX, `sm_80` a cubin",
        ),
        (
            "cuda",
            "--optix-ir",
            "`targets` does that: `compute_80` makes PTX, `sm_80` a cubin",
        ),
    ] {
        let expected =
            format!("{start} `{flag}` in `flags` changes what the compiler makes: {instead}");
        assert_eq!(fails(language, &format!("\"{flag}\"")), expected);
    }
    for (flags, name) in [
        (
            r#""-Xopenmp-target=amdgcn-amd-amdhsa", "-march=gfx908""#,
            "-march",
        ),
        (r#""-Xopenmp-target", "-mcpu=sm_90""#, "-mcpu"),
        (r#""--offload-arch=gfx908""#, "--offload-arch"),
        (
            r#""-fopenmp-targets=nvptx64-nvidia-cuda""#,
            "-fopenmp-targets",
        ),
    ] {
        let expected =
            format!("{start} `{name}` in `flags` names a processor: `targets` does that");
        assert_eq!(fails("openmp", flags), expected);
    }
    // Those of CPUs, and what is behind other options.
    for flags in [r#""-march=x86-64-v2""#, r#""-Xclang", "-flto""#] {
        let keys = format!("flags = [{flags}]\n");
        let manifest = format!(
            "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"openmp\"\n{keys}\
             sources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n"
        );
        package.put("Cargo.toml", &manifest);
        let output = package.script().output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!told.contains("in `flags`"), "{told}");
    }
}

#[test]
fn refuses_a_processor_that_the_release_does_not_know() {
    let keys = "sources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90b\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    let error = package.fails(&mut package.script());
    let expected = "module `kernels`: no image for `gfx90b`: Cargo.toml:";
    assert!(error.starts_with(expected), "{error}");
    assert!(
        error.contains("\nnote: `libomptarget-amdgpu-gfx90b.bc` not found (searched: "),
        "{error}"
    );
    assert!(
        error.contains("\nhint: this LLVM has OpenMP's device runtime for gfx1010, "),
        "{error}"
    );
    assert!(!package.has_library());
}

/// A device function in an archive of bundles, in archives of one target, and by name.
#[test]
fn links_libraries_of_device_code() {
    let Some(package) = Package::new("") else {
        return;
    };
    let (Some(clang), Some(bundler)) = (
        support::tool("llvm22", &["clang"]),
        support::tool("llvm22", &["clang-offload-bundler"]),
    ) else {
        return;
    };
    package.put("helper.c", "int helper(int x) { return x + 1; }\n");
    package.put("empty", "");
    // Bitcode that the clang of the module reads.
    let clang19 = support::tool("llvm19", &["clang"]).unwrap();
    let compile = |program: &Path, args: &[&str], output: &str| {
        let mut command = Command::new(program);
        command.current_dir(package.folder.root()).args(args);
        support::run(command.args(["-c", "helper.c", "-o", output]));
    };
    let amd = [
        "--target=amdgcn-amd-amdhsa",
        "-nogpulib",
        "-emit-llvm",
        "-fvisibility=protected",
    ];
    compile(
        &clang19,
        &[&amd[..], &["-mcpu=gfx90a"]].concat(),
        "gfx90a.bc",
    );
    compile(&clang, &["--target=x86_64-linux-gnu", "-fPIC"], "cpu.o");
    let mut bundle = Command::new(bundler);
    bundle.current_dir(package.folder.root()).args([
        "-type=bc",
        "-targets=host-x86_64-unknown-linux-gnu-,openmp-amdgcn-amd-amdhsa--gfx90a,\
         openmp-x86_64-pc-linux-gnu-",
        "-input=empty",
        "-input=gfx90a.bc",
        "-input=cpu.o",
        "-output=helper.bc",
    ]);
    support::run(&mut bundle);
    let archive = |name: &str, member: &str| {
        let mut ar = Command::new("ar");
        support::run(
            ar.current_dir(package.folder.root())
                .args(["rcD", name, member]),
        );
    };
    fs::create_dir_all(package.at("lib/libdevice")).unwrap();
    archive("lib/libhelper.a", "helper.bc");
    archive("lib/libdevice/libbc-split-amdgcn-gfx90a.a", "gfx90a.bc");
    fs::copy(package.at("cpu.o"), package.at("lib/none")).unwrap();

    let kernel = "#pragma omp declare target\nint helper(int);\n#pragma omp end declare target\n\
        int run(int x) {\n#pragma omp target map(tofrom : x)\n  x = helper(x);\n  return x;\n}\n";
    package.put("kernels/k.c", kernel);
    let with = |keys: &str| {
        let keys = format!("{MANIFEST}sources = [\"kernels/*.c\"]\n{keys}");
        package.put("Cargo.toml", &keys);
    };
    let both = "targets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    with(&format!("{both}archives = [\"lib/libhelper.a\"]\n"));
    let told = package.builds();
    assert!(package.has_library(), "{told}");
    let watched = format!(
        "cargo::rerun-if-changed={}",
        package.at("lib/libhelper.a").display()
    );
    assert!(told.contains(&watched), "{told}");

    let gpu = "targets = [\"gfx90a\"]\n";
    with(&format!("{gpu}link = [\"split\"]\n"));
    let mut script = package.script();
    script.env("LIBRARY_PATH", package.at("lib"));
    let told = text(&script.output().unwrap());
    assert!(told.contains("libbc-split-amdgcn-gfx90a.a"), "{told}");

    // A target that the archive lacks, with what it has; a library that is nowhere; a wrong path.
    with("targets = [\"gfx906\"]\narchives = [\"lib/libhelper.a\"]\n");
    assert_eq!(
        package.fails(&mut package.script()),
        "module `kernels`: no library code for `gfx906`: `lib/libhelper.a` has amdgcn-amd-amdhsa gfx90a, \
         x86_64-pc-linux-gnu"
    );
    with(&format!("{gpu}link = [\"nowhere\"]\n"));
    let said = package.fails(&mut package.script());
    assert!(
        said.contains(
            "no library `nowhere` for `gfx90a` (searched: libbc-nowhere-amdgcn-gfx90a.a, "
        ),
        "{said}"
    );
    // Files and options of a linker are not names.
    for (item, problem) in [
        (
            "lib/libhelper.a",
            " is a file, and `link` takes names, `foo` for `libfoo.a`: files belong in `archives`",
        ),
        (
            "split.bc",
            " is a file, and `link` takes names, `foo` for `libfoo.a`: files belong in `archives`",
        ),
        (
            "-lsplit",
            " is an option, and `link` takes names: write `split` for `-lsplit`",
        ),
        (
            "-l:libfoo.a",
            " is a file, and `link` takes names, `foo` for `libfoo.a`: files belong in `archives`",
        ),
        (
            "-L.",
            " is an option, and `link` takes names: write `foo` for `-lfoo`",
        ),
    ] {
        with(&format!("{gpu}link = [{item:?}]\n"));
        let said = package.fails(&mut package.script());
        assert!(said.ends_with(&format!(": `{item}`{problem}")), "{said}");
        assert!(said.starts_with("Cargo.toml:"), "{said}");
    }
    with(&format!("{gpu}archives = [\"lib/gone.a\"]\n"));
    let said = package.fails(&mut package.script());
    assert!(
        said.ends_with("`lib/gone.a`: no such file [OFF506]"),
        "{said}"
    );
    fs::write(package.at("lib/bad.a"), "!<arch>\nxx").unwrap();
    with(&format!("{gpu}archives = [\"lib/bad.a\"]\n"));
    let said = package.fails(&mut package.script());
    assert!(said.contains("lib/bad.a: "), "{said}");
}

#[test]
fn prints_a_code_for_each_part_of_a_build() {
    let keys = "sources = [\"kernels/k.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";
    let Some(package) = Package::new(keys) else {
        return;
    };
    package.put("kernels/k.c", KERNEL);
    let fails = |script: &mut Command, line: &str| {
        let error = package.fails_with_codes(script);
        assert!(
            error.lines().next().unwrap().ends_with(line),
            "{line}: {error}"
        );
    };
    // What was declared.
    fails(
        package.script().env("OFFLOAD_RDC", "perhaps"),
        "`off` [OFF500]",
    );
    // A library that is none.
    package.put("kernels.a", "!<arch>\nnothing");
    fails(
        package.script().env("OFFLOAD_ARCHIVES", "kernels.a"),
        " [OFF511]",
    );
    // A step.
    package.put("kernels/k.c", "#pragma omp target\nint");
    fails(&mut package.script(), "(exit status: 1) [OFF700]");
    // A file in the place of a folder.
    package.put("file", "");
    fails(
        package.script().env("OUT_DIR", package.at("file/out")),
        "Not a directory (os error 20) [OFF509]",
    );
}

/// Runtimes of one device could take either image, or the kernel of another module.
#[test]
fn warns_of_targets_that_runtimes_confuse() {
    let Some(package) = Package::new("") else {
        return;
    };
    package.put("kernels/k.hip", "__global__ void k(int *x) { *x = 1; }\n");
    let module = |name: &str, language: &str, source: &str, targets: &str| {
        format!(
            "[[package.metadata.offload.module]]\nname = \"{name}\"\nlanguage = \"{language}\"\n\
             sources = [\"kernels/{source}\"]\ntargets = [{targets}]\nmissing = \"stub\"\n"
        )
    };
    let cpu = "\"x86_64-pc-linux-gnu\"";
    let warnings = |modules: &[String]| {
        let manifest = format!(
            "[package]\nname = \"pack\"\n[workspace]\n{}",
            modules.concat()
        );
        package.put("Cargo.toml", &manifest);
        let mut script = package.script();
        let output = script.env("DOCS_RS", "1").output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let warnings = told
            .lines()
            .filter_map(|line| line.strip_prefix("cargo::warning="));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    let own =
        |found: Vec<String>, words: &str| found.iter().filter(|line| line.contains(words)).count();
    for (targets, count) in [
        ("\"gfx90a\", \"gfx90a:xnack+\"", 1),
        ("\"gfx90a:sramecc+\", \"gfx90a:xnack+\"", 1),
        ("\"gfx90a:xnack-\", \"gfx90a:xnack+\", \"gfx942\"", 0),
    ] {
        let found = warnings(&[module("kernels", "hip", "k.hip", targets)]);
        assert_eq!(own(found, "exclude each other"), count, "{targets}");
    }
    for (targets, count) in [(format!("\"sm_80\", {cpu}"), 0), (cpu.to_owned(), 1)] {
        let first = module("one", "openmp", "k.c", &format!("{cpu}, \"sm_80\""));
        let found = warnings(&[first, module("two", "openmp", "k.c", &targets)]);
        let words = "modules `one` and `two` have different `targets`";
        assert_eq!(own(found, words), count, "{targets}");
    }
}
