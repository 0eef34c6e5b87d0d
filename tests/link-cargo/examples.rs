//! The examples, built and run as a user would: both registrations, three linkers, and as program, test, shared library and
//! static library of a C program; with `OFFLOAD_TEST_ALL=1` each registration with each linker in each of three profiles.
//!
//! Every program runs with `OMP_TARGET_OFFLOAD=MANDATORY` and fails by itself when a kernel did not run on a
//! device or a result is wrong, so here only what is built and what is said is looked at.

use crate::shared_build;
use crate::small_examples::expect_in_readme;
use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::dependencies;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const RUNTIME: &str = "/usr/lib/llvm-19/lib";

/// How the programs of one build are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// With the stock linker.
    Complete,
    /// With `offload-link` as the linker.
    Deferred,
}

impl Mode {
    /// In Cargo's configuration.
    fn rustc_linker(self) -> Option<&'static str> {
        match self {
            Self::Complete => None,
            Self::Deferred => Some(env!("CARGO_BIN_EXE_offload-link")),
        }
    }
}

/// The linker behind the compiler driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linker {
    Bfd,
    Lld,
    RustLld,
}

const LINKERS: [Linker; 3] = [Linker::Bfd, Linker::Lld, Linker::RustLld];

impl Linker {
    /// For a C compiler, which knows nothing of rustc's lld.
    fn cc_flags(self) -> &'static [&'static str] {
        match self {
            Self::Bfd | Self::RustLld => &["-fuse-ld=bfd", support::WITHOUT_LIBLLVM],
            Self::Lld => &["-B/usr/lib/llvm-19/bin", "-fuse-ld=lld"],
        }
    }

    fn rustflags(self) -> &'static str {
        match self {
            Self::Bfd => {
                // As `support::WITHOUT_LIBLLVM`.
                "-Clinker-features=-lld -Clink-arg=-fuse-ld=bfd -Clink-arg=-Wl,--allow-shlib-undefined"
            }
            Self::Lld => {
                "-Clinker-features=-lld -Clink-arg=-B/usr/lib/llvm-19/bin -Clink-arg=-fuse-ld=lld"
            }
            Self::RustLld => "",
        }
    }
}

/// The folder of what is built, and what Cargo is told.
type Profile = (&'static str, &'static [&'static str]);

const DEBUG: Profile = ("debug", &[]);
const FAT: Profile = (
    "release",
    &["--release", "--config", "profile.release.lto=\"fat\""],
);
const PROFILES: [Profile; 3] = [DEBUG, ("release", &["--release"]), FAT];

/// Each linker in each profile; without `OFFLOAD_TEST_ALL=1` in one, because each compiles dependencies of its own.
fn shapes() -> impl Iterator<Item = (Linker, Profile)> {
    let profiles = &PROFILES[..support::cases(1, 3)];
    LINKERS
        .into_iter()
        .flat_map(move |linker| profiles.iter().map(move |profile| (linker, *profile)))
}

/// For a test of what hangs on neither: every shape with `OFFLOAD_TEST_ALL=1`, otherwise those of rustc's own linker.
fn some_shapes() -> impl Iterator<Item = (Linker, Profile)> {
    shapes().filter(|(linker, _)| support::tests_all() || *linker == Linker::RustLld)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// A subcommand of Cargo on one of the examples.
///
/// With `--target` the flags do not reach build scripts: offload-build is compiled once for all of them.
fn cargo(example: &str, mode: Mode, linker: Linker, subcommand: &str, profile: &[&str]) -> Command {
    let folder = root().join("examples").join(example);
    let target_dir = target_dir(example, mode);
    let mut cargo = Command::new(env!("CARGO"));
    dependencies::copy_into(&target_dir, &mut cargo, mode.rustc_linker(), profile);
    support::sysroots::share_in(&target_dir);
    cargo
        .args([subcommand, "--target", TARGET])
        .args(profile)
        .current_dir(&folder)
        .env("RUSTFLAGS", linker.rustflags())
        .env("OMP_TARGET_OFFLOAD", "MANDATORY")
        .env("CARGO_TERM_COLOR", "never")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("OFFLOAD_REQUIRE");
    if support::tool("cuda", &["ptxas"]).is_none() {
        cargo.env("OFFLOAD_MISSING", "skip");
    }
    if let Some(linker) = mode.rustc_linker() {
        cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker);
    }
    cargo
}

fn target_dir(example: &str, mode: Mode) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("examples")
        .join(example)
        .join(format!("{mode:?}"))
}

#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether the tools are here; says so when not.
fn ready() -> bool {
    support::tool("llvm19", &["clang"]).is_some()
        && support::tool("omptarget19", &["libomptarget.so.19.1"]).is_some()
}

/// Builds and runs `openmp-saxpy` in every shape, with one registration. Without `OFFLOAD_TEST_ALL=1` with the linkers that
/// `registration_matrix` has with the other one, and with rustc's own.
fn saxpy(mode: Mode) {
    let first = usize::from(mode == Mode::Complete);
    for (linker, (folder, flags)) in support::share(shapes(), first, 2) {
        let text = stdout(&succeed(&mut cargo(
            "openmp-saxpy",
            mode,
            linker,
            "run",
            flags,
        )));
        assert!(
            text.contains("saxpy    on a device: true, 1048576 results right: true"),
            "{text}"
        );
        assert!(text.contains("image    gfx90a "), "{text}");
        if support::tool("cuda", &["ptxas"]).is_some() {
            assert!(text.contains("image    sm_80 "), "{text}");
            if mode == Mode::Complete {
                expect_in_readme("openmp-saxpy", &text);
            }
        }
        succeed(cargo("openmp-saxpy", mode, linker, "test", flags).args(["--test", "kernels"]));

        let out = target_dir("openmp-saxpy", mode).join(TARGET).join(folder);
        let program = out.join("from-c");
        let c = |arguments: &[&str]| {
            let mut cc = match mode {
                Mode::Complete => Command::new("cc"),
                Mode::Deferred => Command::new(env!("CARGO_BIN_EXE_offload-link")),
            };
            cc.arg(root().join("examples/openmp-saxpy/tests/main.c"))
                .arg("-o")
                .arg(&program);
            cc.args(linker.cc_flags())
                .args(arguments)
                .arg(format!("-Wl,-rpath,{RUNTIME}"));
            succeed(&mut cc);
            succeed(Command::new(&program).env("OMP_TARGET_OFFLOAD", "MANDATORY"));
        };
        let path = |name: &str| out.join(name).display().to_string();
        c(&[
            &path("libopenmp_saxpy.so"),
            &format!("-Wl,-rpath,{}", out.display()),
        ]);
        let runtime = format!("-L{RUNTIME}");
        c(&[
            &path("libopenmp_saxpy.a"),
            &runtime,
            "-lomptarget",
            "-lomp",
            "-lpthread",
            "-ldl",
            "-lm",
        ]);
        own_region(mode, &path("libopenmp_saxpy.a"), &program);
    }
}

/// Links a C program that has a target region of its own with the Rust library, as clang does it: with
/// LLVM's linker wrapper, which must leave complete modules alone, or with ours in its place.
fn own_region(mode: Mode, library: &str, program: &Path) {
    let mut clang = Command::new("clang-19");
    clang.args(["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"]);
    if mode == Mode::Deferred {
        let folder = program.with_file_name("wrapper");
        let link = folder.join("clang-linker-wrapper");
        std::fs::create_dir_all(&folder).unwrap();
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_offload-link"), link).unwrap();
        clang.arg(format!("-B{}", folder.display()));
    }
    clang
        .arg(root().join("examples/openmp-saxpy/tests/own_region.c"))
        .arg(library);
    clang
        .args(["-lm", "-lpthread", "-ldl"])
        .arg(format!("-Wl,-rpath,{RUNTIME}"));
    succeed(clang.arg("-o").arg(program));
    succeed(Command::new(program).env("OMP_TARGET_OFFLOAD", "MANDATORY"));
}

// Builds in one folder take turns, so each test has all linkers of one registration.

#[test]
fn registers_complete_modules_in_every_shape() {
    if ready() {
        saxpy(Mode::Complete);
    }
}

#[test]
fn links_deferred_modules_in_every_shape() {
    if ready() {
        saxpy(Mode::Deferred);
    }
}

#[test]
fn finds_the_kernels_of_a_library_that_the_program_depends_on() {
    if !ready() {
        return;
    }
    for mode in support::share([Mode::Complete, Mode::Deferred], 1, 2) {
        for (linker, (_, flags)) in some_shapes() {
            let text = stdout(&succeed(&mut cargo(
                "openmp-library",
                mode,
                linker,
                "run",
                flags,
            )));
            assert_eq!(text, "dot product, on a device: 338350 (expected 338350)\n");
        }
        succeed(cargo("openmp-library", mode, Linker::RustLld, "test", &[]).arg("--workspace"));
    }
}

/// A C program without device code of its own, and a library of kernels that Cargo built.
#[test]
fn links_the_archive_of_a_package_into_a_c_program() {
    if !ready() {
        return;
    }
    let example = root().join("examples/device-archives");
    let folder = target_dir("device-archives", Mode::Complete);
    let (library, again) = (folder.join("lib"), folder.join("again"));
    let linker = Mode::Deferred.rustc_linker();
    let (_, flags) = if support::tests_all() { FAT } else { DEBUG };
    let build = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
        dependencies::copy_into(&folder, &mut command, linker, flags);
        command
            .args(["offload", "build"])
            .args(flags)
            .args(arguments)
            .env("CARGO", env!("CARGO"))
            .current_dir(&example);
        stdout(&succeed(&mut command))
    };
    let names = [
        "libbc-vectors-amdgcn-gfx90a.a",
        "libbc-vectors-nvptx64-sm_90.a",
        "libbc-vectors-x86_64-pc-linux-gnu.a",
        "libvectors.a",
    ];
    let said = |folder: &Path| -> String {
        let lines = names.map(|name| format!("{}\n", folder.join(name).display()));
        lines.concat()
    };
    let _ = std::fs::remove_dir_all(&library);
    let printed = build(&["--out", library.to_str().unwrap()]);
    assert_eq!(printed, said(&library));
    // What was up to date is installed, too.
    let _ = std::fs::remove_dir_all(&again);
    let printed = build(&[&format!("--out={}", again.display())]);
    assert_eq!(printed, said(&again));
    for name in names {
        let [one, other] =
            [&library, &again].map(|folder| std::fs::read(folder.join(name)).unwrap());
        assert_eq!(one, other, "{name}");
    }

    let object = object(&example, &folder);
    for linker in [Linker::Bfd, Linker::Lld] {
        let program = folder.join(format!("program-{linker:?}"));
        // Without offload-link it would start, and crash in the first region.
        let mut stock = Command::new("clang-19");
        stock
            .args(linker.cc_flags())
            .arg("-o")
            .arg(&program)
            .arg(&object)
            .arg(format!("-L{}", library.display()))
            .args(["-lvectors", &format!("-L{RUNTIME}"), "-lomptarget", "-lomp"]);
        for wrapper in [
            &[][..],
            &["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"],
        ] {
            let output = stock.args(wrapper).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{wrapper:?}");
            assert!(text.contains("__offload_needs_offload_link"), "{text}");
        }
        let mut link = Command::new(env!("CARGO_BIN_EXE_offload-link"));
        link.env("OFFLOAD_CC", "clang-19")
            .args(linker.cc_flags())
            .arg("-o")
            .arg(&program)
            .arg(&object)
            .arg(format!("-L{}", library.display()))
            .args(["-lvectors", "-Wl,--gc-sections"])
            .arg(format!("-Wl,-rpath,{RUNTIME}"));
        // Who does not name the runtime gets that of the compiler's release, in the device's link too.
        if linker == Linker::Bfd {
            let folder = format!("-L{RUNTIME}");
            link.args([&folder, "-lomptarget", "-lomp"]);
        }
        succeed(&mut link);
        let run = succeed(Command::new(&program).env("OMP_TARGET_OFFLOAD", "MANDATORY"));
        assert_eq!(stdout(&run), "dot product on a device: 19800, right: yes\n");
        expect_in_readme("device-archives", &stdout(&run));
    }
}

#[test]
fn includes_the_kernels_of_a_hip_module() {
    if support::tool("llvm19", &["ld.lld"]).is_none() {
        return;
    }
    let mut cargo = cargo("hip-module", Mode::Complete, Linker::Bfd, "run", &[]);
    cargo.env("OFFLOAD_COMPILER", "clang-19");
    cargo.env("OFFLOAD_DEVICE_HIP", "/nonexistent/libamdhip64.so");
    let text = stdout(&succeed(&mut cargo));
    let (head, rest) = text.split_once('\n').unwrap();
    assert!(head.starts_with("3 images in "), "{text}");
    // A float, two pointers and a count, each at a multiple of its size.
    let described = "saxpy takes:\n  4 bytes at 0\n  8 bytes at 8\n  8 bytes at 16\n  4 bytes at 24\n\
         on gfx90a: wavefronts of 64\non gfx942: wavefronts of 64\non gfx1100: wavefronts of 32\n";
    let last = rest.strip_prefix(described);
    let last = last.unwrap_or_else(|| panic!("{text}"));
    let reason =
        "not launched: HIP's runtime is not installed: searched `/nonexistent/libamdhip64.so`\n";
    assert!(last.starts_with(reason), "{text}");

    // With a runtime that computes on the CPU.
    let Some(runtime) = support::gpu_driver::build("amdhip") else {
        return;
    };
    cargo.env("OFFLOAD_DEVICE_HIP", runtime);
    let text = stdout(&succeed(&mut cargo));
    let result = "all results right on stand-in 0 (gfx90a:sramecc+:xnack-, HIP)\n";
    assert!(text.ends_with(result), "{text}");
    let output = cargo.env("WRONG", "1").output().unwrap();
    assert!(
        stdout(&output).contains("\nwrong results on "),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn starts_with_amds_runtime() {
    let tools = [("llvm19", "ld.lld"), ("amdhip", "libamdhip64.so")];
    if tools
        .iter()
        .any(|(word, name)| support::tool(word, &[name]).is_none())
    {
        return;
    }
    let mut cargo = cargo("hip-launch", Mode::Complete, Linker::Bfd, "run", &[]);
    cargo.env("OFFLOAD_COMPILER", "clang-19");
    let text = stdout(&succeed(&mut cargo));
    let images = ["gfx90a", "gfx942", "gfx1100"]
        .map(|target| format!("saxpy for {target}: 288 bytes of arguments\n"));
    let (head, last) = text.split_at(images.concat().len());
    assert_eq!(head, images.concat());
    let ends = ["no GPU here: hipGetDeviceCount says ", "all results right"];
    assert!(ends.iter().any(|end| last.starts_with(end)), "{text}");
    if last.starts_with(ends[0]) {
        expect_in_readme("hip-launch", &text);
    }
}

/// The C program of `example`.
fn object(example: &Path, folder: &Path) -> PathBuf {
    let object = folder.join("main.o");
    let mut compile = Command::new("cc");
    compile.arg("-c").arg(example.join("program/main.c"));
    succeed(compile.arg("-o").arg(&object));
    object
}

#[test]
fn runs_the_kernels_of_two_crates_each_with_its_own_registration() {
    if !ready() {
        return;
    }
    for (linker, (_, flags)) in some_shapes() {
        let mut cargo = cargo("openmp-two-crates", Mode::Complete, linker, "run", flags);
        let text = stdout(&succeed(&mut cargo));
        assert_eq!(text, "first:  42 (expected 42)\nsecond: 22 (expected 22)\n");
        expect_in_readme("openmp-two-crates", &text);
    }
}

#[test]
fn joins_the_kernels_of_two_crates_in_one_device_link() {
    if !ready() {
        return;
    }
    for (linker, (_, flags)) in some_shapes() {
        let mut cargo = cargo("openmp-two-crates", Mode::Deferred, linker, "run", flags);
        let text = stdout(&succeed(cargo.args(["--features", "joined"])));
        assert_eq!(
            text,
            "first:  42 (expected 42)\nsecond: 22 (expected 22)\njoined: 43 (expected 43)\n"
        );
        expect_in_readme("openmp-two-crates", "joined: 43 (expected 43)");
    }
}

#[test]
fn needs_offload_link_to_join_them() {
    if !ready() {
        return;
    }
    let mut cargo = cargo(
        "openmp-two-crates",
        Mode::Complete,
        Linker::RustLld,
        "build",
        &[],
    );
    let output = cargo.args(["--features", "joined"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("device link for x86_64-pc-linux-gnu"),
        "{text}"
    );
    assert!(text.contains("first_twice"), "{text}");
}

/// A build folder of its own, for a test that builds what the others do not.
fn apart(cargo: &mut Command, mode: Mode, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    dependencies::copy_into(&folder, cargo, mode.rustc_linker(), &[]);
    folder
}

#[test]
fn names_offload_link_when_a_stock_linker_meets_a_deferred_module() {
    if !ready() {
        return;
    }
    for linker in LINKERS {
        let mut cargo = cargo("openmp-library", Mode::Complete, linker, "build", &[]);
        apart(&mut cargo, Mode::Complete, "stock");
        let output = cargo.env("OFFLOAD_REGISTER", "deferred").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("__offload_needs_offload_link"), "{text}");
    }
}

#[test]
fn registers_once_when_offload_link_meets_a_complete_module() {
    if !ready() {
        return;
    }
    let mut cargo = cargo(
        "openmp-library",
        Mode::Deferred,
        Linker::RustLld,
        "build",
        &[],
    );
    let folder = apart(&mut cargo, Mode::Deferred, "once");
    succeed(cargo.env("OFFLOAD_REGISTER", "complete"));
    // Stands before the runtime in the loader's order, and counts.
    let source = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n\
        void __tgt_register_lib(void *d) { puts(\"registered\"); fflush(stdout);\n\
        ((void (*)(void *))dlsym(RTLD_NEXT, \"__tgt_register_lib\"))(d); }\n";
    std::fs::write(folder.join("count.c"), source).unwrap();
    let library = folder.join("libcount.so");
    let mut cc = Command::new("cc");
    succeed(
        cc.args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(folder.join("count.c")),
    );
    let mut app = Command::new(folder.join(TARGET).join("debug/app"));
    app.env("LD_PRELOAD", library)
        .env("LD_LIBRARY_PATH", RUNTIME)
        .env("OMP_TARGET_OFFLOAD", "MANDATORY");
    let text = stdout(&succeed(&mut app));
    assert_eq!(
        text,
        "registered\ndot product, on a device: 338350 (expected 338350)\n"
    );
}

/// Expects the lines of a template's program in the quick start.
#[track_caller]
fn expect_in_quick_start(text: &str, expected: &str) {
    let page = std::fs::read_to_string(root().join("docs/quick-start.md")).unwrap();
    let is_shown = |line: &&str| line.starts_with("saxpy for ") || *line == expected;
    let lines: Vec<&str> = text.lines().filter(is_shown).collect();
    assert!(!lines.is_empty(), "{text}");
    for line in lines {
        assert!(page.contains(&format!("\n{line}\n")), "{line}");
    }
}

/// Creates, runs and tests each kind of package, as in the first minutes of a user; without `OFFLOAD_TEST_ALL=1` two kinds.
#[test]
fn builds_each_template_as_its_user_would() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        (&[][..], "rust", "[2.0, 4.0, 6.0]"),
        (&["--c"], "c", "2 4 6"),
        (&["--lib"], "library", ""),
        (
            &["--hip", "--vcs", "none"],
            "hip",
            " registers\nnot launched: HIP's runtime is not installed: ",
        ),
        (&["--cuda", "--lib"], "cuda", ""),
        (
            &["--rust"],
            "rusty",
            "`/nonexistent`\nhint: install AMD's driver and ROCm's runtime (Debian: `apt install libamdhip64-5`), \
             or set OFFLOAD_DEVICE_HIP to the library's path\n[2.0, 4.0, 6.0], computed by the CPU\n",
        ),
    ];
    let launches = [
        (
            "hip",
            "amdhip",
            "OFFLOAD_DEVICE_HIP",
            "(gfx90a:sramecc+:xnack-, HIP)",
        ),
        ("rusty", "cuda", "OFFLOAD_DEVICE_CUDA", "(sm_90, CUDA)"),
    ];
    // The last one.
    let has_rustc = support::tool("rustweb", &["lib.rs"]).is_some();
    let rows = &rows[..rows.len() - usize::from(!has_rustc)];
    for &(options, name, expected) in support::share(rows, 0, 3) {
        let mut new = cargo_offload(folder.path());
        // Until it is published, the crate is the one of this tree.
        new.args(["new", "--offload-build"])
            .arg(root().join("offload-build"))
            .args(options)
            .args(["--name", &format!("my-{name}"), name]);
        let is_library = options.contains(&"--lib");
        let next = if is_library { "test" } else { "run" };
        assert_eq!(
            stdout(&succeed(&mut new)),
            format!("Next: cd {name} && cargo {next}\n")
        );
        let crate_folder = folder.path().join(name);
        let is_versioned = !options.contains(&"--vcs");
        assert_eq!(crate_folder.join(".git").exists(), is_versioned, "{name}");
        assert_eq!(
            crate_folder.join("src/main.rs").exists(),
            !is_library,
            "{name}"
        );
        if !is_library {
            let text = stdout(&succeed(&mut template_cargo(&crate_folder, "run")));
            assert!(text.contains(expected), "{name}: {text}");
            // The quick start shows the test of this one.
            if name != "rusty" {
                expect_in_quick_start(&text, expected);
            }
        }
        // With a driver that computes on the CPU.
        for (_, word, variable, gpu) in launches.iter().filter(|row| row.0 == name) {
            if let Some(driver) = support::gpu_driver::build(word) {
                let mut cargo = template_cargo(&crate_folder, "run");
                cargo.env(
                    "GPU_SIGNATURES",
                    "saxpy=ABI 1: &Item<_, 3>, f32, &[f32], Global<f32>; shared = 0",
                );
                let text = stdout(&succeed(cargo.env(variable, driver)));
                let result = format!("\n[2.0, 4.0, 6.0], computed by stand-in 0 {gpu}\n");
                assert!(text.ends_with(&result), "{name}: {text}");
            }
        }
        let text = stdout(&succeed(&mut template_cargo(&crate_folder, "test")));
        let passed = match name {
            // The tests are the C program.
            "c" => "2 4 6\n",
            "library" => "test result: ok. 2 passed; 0 failed",
            _ => "test result: ok. 1 passed; 0 failed",
        };
        assert!(text.contains(passed), "{name}: {text}");
        if support::program("cargo-clippy").is_some() {
            let mut clippy = template_cargo(&crate_folder, "clippy");
            succeed(clippy.args(["--all-targets", "--", "-D", "warnings"]));
        }
    }
    // An error of Cargo is shown once.
    let mut again = cargo_offload(folder.path());
    let output = again.args(["new", "rust"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("already exists"), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");

    // A package cannot depend on one of its own name.
    for line in [
        &["offload-build"][..],
        &["--rust", "--name", "offload-device", "other"],
    ] {
        let mut own = cargo_offload(folder.path());
        let output = own.arg("new").args(line).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("choose another with --name"), "{text}");
        assert!(!folder.path().join(line[line.len() - 1]).exists());
    }
}

/// The name of a package stands in `use`, which rustfmt sorts.
#[test]
fn creates_packages_as_rustfmt_writes_them() {
    if support::program("rustfmt").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        "--openmp",
        "--lib",
        "--hip",
        "--hip --lib",
        "--cuda",
        "--cuda --lib",
        "--rust",
        "--rust --lib",
        "--c",
    ];
    for (number, options) in rows.into_iter().enumerate() {
        for name in [format!("a{number}"), format!("z{number}")] {
            let mut new = cargo_offload(folder.path());
            new.args(["new", "--vcs", "none", &name]);
            succeed(new.args(options.split(' ')));
            let package = folder.path().join(&name);
            let crates = [package.join("kernels"), package];
            for own in crates.iter().filter(|own| own.join("Cargo.toml").exists()) {
                let mut format = Command::new(env!("CARGO"));
                succeed(format.args(["fmt", "--check"]).current_dir(own));
            }
        }
    }
}

/// The script of `docs/ci.md`. Workflow and container start it, on a machine with its packages.
#[test]
fn runs_the_script_for_ci() {
    let folder = root().join("docs/ci");
    let packages = "clang-19 lld-19 llvm-19 libomp-19-dev";
    for name in ["workflow.yml", "Dockerfile"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.contains(packages), "{name}");
        assert!(text.contains("ci/build.sh"), "{name}");
        assert!(text.contains("cargo install cargo-offload"), "{name}");
    }
    if !ready() {
        return;
    }
    let target_dir = target_dir("openmp-saxpy", Mode::Complete).join("ci");
    let mut script = Command::new("sh");
    dependencies::copy_into(&target_dir, &mut script, None, &[]);
    let tools = Path::new(env!("CARGO_BIN_EXE_cargo-offload"));
    let path = std::env::var("PATH").unwrap();
    let output = succeed(
        script
            .arg(folder.join("build.sh"))
            .current_dir(root().join("examples/openmp-saxpy"))
            .env(
                "PATH",
                format!("{}:{path}", tools.parent().unwrap().display()),
            )
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("OFFLOAD_REQUIRE"),
    );
    let text = stdout(&output);
    for expected in [
        "test result: ok. 1 passed",
        "builds  gfx90a",
        "openmp-saxpy: 2 device images",
    ] {
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
}

/// A package that exists gets kernels, and keeps what it has.
#[test]
fn adds_kernels_to_a_package() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut none = cargo_offload(folder.path());
    let output = none.arg("init").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("Cargo.toml: "), "{text}");
    assert!(text.contains("`cargo offload new`"), "{text}");
    let mut new = cargo_offload(folder.path());
    let output = new
        .args(["new", "--offload-build", "/nonexistent", "unmade"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = "error: `--offload-build /nonexistent`: no such folder; expected ";
    assert!(
        text.contains(expected) && !folder.path().join("unmade").exists(),
        "{text}"
    );

    let mut new = Command::new(env!("CARGO"));
    new.args(["new", "--quiet", "app"])
        .current_dir(folder.path());
    succeed(&mut new);
    let app = folder.path().join("app");
    let manifest = app.join("Cargo.toml");
    let before = std::fs::read_to_string(&manifest).unwrap() + "# mine\n";
    std::fs::write(&manifest, &before).unwrap();
    let mut init = cargo_offload(&app);
    init.args(["init", "--hip", "--offload-build"])
        .arg(root().join("offload-build"));
    let text = stdout(&succeed(&mut init));
    assert!(
        text.starts_with(
            "Changed Cargo.toml\nCreated build.rs\nCreated kernels/saxpy.hip\nAdd to src/main.rs:\n"
        ),
        "{text}"
    );
    let after = std::fs::read_to_string(&manifest).unwrap();
    for line in before.lines() {
        assert!(after.lines().any(|other| other == line), "{line}: {after}");
    }
    // What it says to add is Rust.
    let added = text.split_once("Add to src/main.rs:\n").unwrap().1;
    let main =
        format!("{added}\nfn main() {{ println!(\"{{}}\", kernels::kernel::saxpy.name); }}\n");
    std::fs::write(app.join("src/main.rs"), main).unwrap();
    let text = stdout(&succeed(&mut template_cargo(&app, "run")));
    assert_eq!(text, "saxpy\n");
    let mut second = cargo_offload(&app);
    let output = second.args(["init", "--cuda"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!app.join("kernels/saxpy.cu").exists());

    // A build script of the user stays.
    let own = folder.path().join("own");
    let mut new = Command::new(env!("CARGO"));
    new.args(["new", "--quiet", "--lib", "own"])
        .current_dir(folder.path());
    succeed(&mut new);
    std::fs::write(own.join("build.rs"), "fn main() {}\n").unwrap();
    std::fs::create_dir(own.join("kernels")).unwrap();
    std::fs::write(own.join("kernels/old.cu"), "").unwrap();
    let text = stdout(&succeed(cargo_offload(&own).args(["init", "--cuda"])));
    assert!(text.contains("Kept build.rs\nAdd to build.rs:\n"), "{text}");
    let found = "Found kernels/old.cu: `sources` matches it, too\n";
    assert!(text.contains(found), "{text}");
    assert!(text.contains("\nAdd to src/lib.rs:\n"), "{text}");
    assert_eq!(
        std::fs::read_to_string(own.join("build.rs")).unwrap(),
        "fn main() {}\n"
    );
    // It may have another name, or not be wanted.
    let manifest = own.join("Cargo.toml");
    for (key, expected) in [
        ("build = \"script.rs\"", "Created script.rs\n"),
        (
            "build = false",
            "Cargo.toml: `build = false`: Cargo would run no build script\nhint: ",
        ),
    ] {
        std::fs::write(&manifest, format!("[package]\nname = \"own\"\n{key}\n")).unwrap();
        let output = cargo_offload(&own)
            .args(["init", "--hip"])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(expected), "{text}");
        assert_eq!(output.status.success(), key.contains("script"), "{text}");
    }
    assert!(own.join("script.rs").is_file());
}

#[test]
fn leaves_a_package_as_it_is_if_kernels_cannot_be_added() {
    let folder = tempfile::tempdir().unwrap();
    let package = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let package = &*format!("{package}build = \"scripts/build/main.rs\"\n");
    write("Cargo.toml", package);
    write("kernels", "notes");
    let init = || {
        cargo_offload(folder.path())
            .args(["init", "--hip"])
            .output()
            .unwrap()
    };
    assert_eq!(init().status.code(), Some(1));
    assert!(!folder.path().join("scripts").exists());
    let manifest = || std::fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    assert_eq!(manifest(), package);
    std::fs::remove_file(folder.path().join("kernels")).unwrap();
    // Tables in braces.
    for (start, end, expected) in [
        (
            "",
            "metadata = { docs = { rs = true } }\n",
            "docs = { rs = true }\n",
        ),
        (
            "build-dependencies = { cc = \"1\" }\n",
            "",
            "offload-build = ",
        ),
    ] {
        write("Cargo.toml", &format!("{start}{package}{end}"));
        let output = init();
        assert!(output.status.success(), "{output:?}");
        let after = manifest();
        assert!(after.contains(expected), "{after}");
        let document: toml_edit::DocumentMut = after.parse().unwrap();
        assert_eq!(document["package"]["name"].as_str(), Some("p"), "{after}");
        assert!(after.contains("[build-dependencies]\n"), "{after}");
        assert!(after.contains("[package.metadata"), "{after}");
    }
}

fn cargo_offload(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command
        .env("CARGO", env!("CARGO"))
        .current_dir(folder)
        .arg("offload");
    command
}

/// Cargo in a new package.
fn template_cargo(folder: &Path, command: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(command);
    shared_build::use_template_folder(&mut cargo, folder);
    cargo
        .env("OMP_TARGET_OFFLOAD", "MANDATORY")
        .env("OFFLOAD_DEVICE_HIP", "/nonexistent")
        .env("OFFLOAD_DEVICE_CUDA", "/nonexistent");
    cargo
}

/// Kernels in Rust: on the CPU without a tool for GPUs, and images for GPUs of both vendors, without the network.
#[test]
fn builds_kernels_in_rust_for_gpus_and_the_cpu() {
    let tools = [
        support::tool("rustweb", &["lib.rs"]),
        support::tool("llvm22", &["clang-22", "clang"]),
        support::tool("cuda", &["ptxas"]),
    ];
    if tools.iter().any(Option::is_none) {
        return;
    }
    let cargo = |subcommand: &str| {
        let mut cargo = cargo(
            "rust-kernels",
            Mode::Complete,
            Linker::RustLld,
            subcommand,
            &[],
        );
        cargo.env_remove("RUSTFLAGS").arg("--locked");
        cargo
    };
    let mut test = cargo("test");
    test.arg("--workspace")
        .env("OFFLOAD_RUSTC", "/nonexistent/rustc");
    let text = stdout(&succeed(&mut test));
    assert!(text.contains("test result: ok. 3 passed"), "{text}");

    let mut fetch = Command::new(env!("CARGO"));
    fetch.args(["fetch", "--locked", "--target", TARGET]);
    succeed(fetch.current_dir(root().join("examples/rust-kernels")));
    let mut run = cargo("run");
    run.arg("--offline")
        .env("OFFLOAD_DEVICE_HIP", "/nonexistent/hip")
        .env("OFFLOAD_DEVICE_CUDA", "/nonexistent/cuda");
    let targets = support::share(["gfx90a", "gfx1100", "sm_80", "sm_90"], 0, 2);
    let targets: Vec<&str> = targets.collect();
    if !support::tests_all() {
        run.env("OFFLOAD_TARGETS", targets.join(";"));
    }
    let text = stdout(&succeed(&mut run));
    let mut lines = text.lines();
    for target in &targets {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(&format!("{target}: ")), "{text}");
    }
    for kernel in ["matmul", "reduce", "saxpy"] {
        for target in &targets {
            let line = lines.next().unwrap_or_default();
            assert!(
                line.starts_with(&format!("{kernel} for {target}: ")),
                "{text}"
            );
        }
    }
    let last: Vec<&str> = lines.filter(|line| !line.starts_with("hint: ")).collect();
    let expected = [
        "no GPU found",
        "NVIDIA's driver is not installed: searched `/nonexistent/cuda`",
        "HIP's runtime is not installed: searched `/nonexistent/hip`",
        "on the CPU:",
        "saxpy: right",
        "matmul: right",
        "reduce: right",
    ];
    assert_eq!(last, expected);

    let folder = target_dir("rust-kernels", Mode::Complete).join(TARGET);
    // With `--target` too, sysroots are where all builds of the target folder find them.
    assert!(!folder.join("offload").exists());
    let builds = std::fs::read_dir(folder.join("debug/build")).unwrap();
    let found: Vec<PathBuf> = builds
        .map(|entry| entry.unwrap().path().join("out/offload/kernels"))
        .filter(|images| images.join("gfx90a").is_dir())
        .collect();
    let [images] = found.as_slice() else {
        panic!("{found:?}");
    };
    for target in targets {
        let mut inspect = cargo_offload(&root());
        inspect
            .args(["inspect", "--kernels", "--json"])
            .arg(images.join(target).join("image"));
        let json: serde_json::Value =
            serde_json::from_str(&stdout(&succeed(&mut inspect))).unwrap();
        let image = &json["files"][0]["containers"][0]["images"][0];
        assert_eq!(image["processor"], target);
        let arguments = |index: usize| -> Vec<(u64, u64)> {
            let kernel = &image["kernels"][index];
            let arguments = kernel["arguments"].as_array().unwrap().iter();
            let number = |value: &serde_json::Value| value.as_u64().unwrap();
            arguments
                .map(|argument| (number(&argument["offset"]), number(&argument["size"])))
                .collect()
        };
        let eights = |from: u64, to: u64| (from..to).step_by(8).map(|offset| (offset, 8));
        let scalar_first = |to: u64| [(0, 4)].into_iter().chain(eights(8, to));
        let names = ["matmul", "reduce", "saxpy"];
        for (index, name) in names.iter().enumerate() {
            assert_eq!(image["kernels"][index]["name"], *name, "{target}");
        }
        assert_eq!(arguments(0), scalar_first(56).collect::<Vec<_>>());
        assert_eq!(arguments(1), eights(0, 32).collect::<Vec<_>>());
        assert_eq!(arguments(2), scalar_first(40).collect::<Vec<_>>());
    }
}
