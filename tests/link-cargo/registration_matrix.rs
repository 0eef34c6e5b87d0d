//! Registration that survives Cargo: HIP and CUDA modules with host code in two versions of one crate, used through
//! another crate by every kind of program, with every linker, by both registrations; with `OFFLOAD_TEST_ALL=1` each language
//! with each linker and each registration, and in every profile, too.
//!
//! The runtime is a stand-in that writes what it is told into a file. What it must be told follows from the sources:
//! each module's fat binary once, with its three kernels and its variable, and each launch of a kernel by an address
//! that was registered once, for the fat binary of the module that launches.

use crate::examples::succeed;
use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::dependencies;
use support::launches::{self, HEADER, HELPER, RUNTIME, SHARED, SOURCE};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const OURS: &str = env!("CARGO_BIN_EXE_offload-link");
const TEST: [&str; 5] = ["test", "-p", "app", "--test", "runs"];

/// Of both versions; the names of functions differ, as C's always must.
const LEAF: &str = r#"
mod kernels { include!(concat!(env!("OUT_DIR"), "/kernels.rs")); }
use std::ffi::c_void;
unsafe extern "C" {
    fn @LAUNCH@(x: *mut i32);
    fn @LAUNCH_KERNEL@(stub: *const c_void, grid: u64, z: u32, block: u64, bz: u32, args: *mut *mut c_void, shared: usize, stream: *mut c_void) -> i32;
}
/// Launches every kernel from C++, then one from Rust.
pub fn run() {
    let one = 1 | 1 << 32;
    let stub = kernels::find_kernel("@PLAIN@").unwrap().stub().unwrap();
    unsafe {
        @LAUNCH@(std::ptr::null_mut());
        assert_eq!(@LAUNCH_KERNEL@(stub, one, 1, one, 1, std::ptr::null_mut(), 0, std::ptr::null_mut()), 0);
    }
}
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Hip,
    Cuda,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Complete,
    Deferred,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linker {
    Bfd,
    Gold,
    Lld,
    RustLld,
}

const LINKERS: [Linker; 4] = [Linker::Bfd, Linker::Gold, Linker::Lld, Linker::RustLld];

impl Linker {
    fn rustflags(self) -> &'static str {
        match self {
            Self::Bfd => "-Clinker-features=-lld -Clink-arg=-fuse-ld=bfd",
            Self::Gold => "-Clinker-features=-lld -Clink-arg=-fuse-ld=gold",
            Self::Lld => {
                "-Clinker-features=-lld -Clink-arg=-B/usr/lib/llvm-19/bin -Clink-arg=-fuse-ld=lld"
            }
            Self::RustLld => "",
        }
    }

    fn cc_flags(self) -> &'static [&'static str] {
        match self {
            Self::Bfd | Self::RustLld => &["-fuse-ld=bfd"],
            Self::Gold => &["-fuse-ld=gold"],
            Self::Lld => &["-B/usr/lib/llvm-19/bin", "-fuse-ld=lld"],
        }
    }
}

/// What Cargo is told, and whether it is fat LTO, of which no shared Rust library is made.
type Profile = (&'static str, &'static [&'static str], bool);

const DEBUG: Profile = ("debug", &[], false);
const RELEASE: Profile = ("release", &["--release"], false);
const FAT: Profile = (
    "release",
    &["--release", "--config", "profile.release.lto=\"fat\""],
    true,
);

impl Language {
    fn prefix(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Cuda => "cuda",
        }
    }

    fn library(self) -> &'static str {
        match self {
            Self::Hip => "amdhip64",
            Self::Cuda => "cudart",
        }
    }

    fn targets(self) -> &'static str {
        match self {
            Self::Hip => "\"gfx90a\", \"gfx1100\"",
            Self::Cuda => "\"sm_80\", \"sm_90\"",
        }
    }
}

/// A workspace, which a later run of the tests finds built.
struct Workspace {
    root: PathBuf,
    language: Language,
    mode: Mode,
}

impl Workspace {
    fn new(language: Language, mode: Mode) -> Option<Self> {
        support::tool("llvm19", &["clang"])?;
        if language == Language::Cuda {
            support::tool("cuda", &["ptxas"])?;
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("matrix")
            .join(format!("{language:?}-{mode:?}"));
        let workspace = Self {
            root,
            language,
            mode,
        };
        workspace.write();
        let shared = format!("lib{}.so", language.library());
        let prefix = format!("-DPREFIX={}", language.prefix());
        let alignment = match language {
            Language::Hip => "-DALIGNMENT=4096",
            Language::Cuda => "-DALIGNMENT=8",
        };
        workspace.put("runtime/runtime.c", RUNTIME);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-w", &prefix, alignment, "runtime.c"])
            .args(["-o", &shared])
            .current_dir(workspace.root.join("runtime"));
        support::run(&mut cc);
        Some(workspace)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // What did not change keeps its time.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).unwrap();
        }
    }

    fn write(&self) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let repository = repository.canonicalize().unwrap();
        let offload_build = repository.join("offload-build");
        self.put(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"mid\", \"app\", \"plug\", \"archive\"]\n\
             exclude = [\"leaf1\", \"leaf2\", \"shared\"]\n",
        );
        // The versions of what build scripts need.
        let lock = fs::read_to_string(repository.join("Cargo.lock")).unwrap();
        if !self.root.join("Cargo.lock").exists() {
            self.put("Cargo.lock", &lock);
        }
        for version in ["1", "2"] {
            self.write_leaf(version, &offload_build);
        }
        let package = |name: &str, rest: &str| {
            let text = format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}"
            );
            self.put(&format!("{name}/Cargo.toml"), &text);
        };
        package("mid", "[dependencies]\nleaf = { path = \"../leaf1\" }\n");
        self.put("mid/src/lib.rs", "pub fn run() { leaf::run(); }\n");
        let both =
            "mid = { path = \"../mid\" }\nleaf2 = { package = \"leaf\", path = \"../leaf2\" }\n";
        let run = "{ mid::run(); leaf2::run(); }";
        package("app", &format!("[dependencies]\n{both}"));
        self.put("app/src/main.rs", &format!("fn main() {run}\n"));
        self.put("app/examples/show.rs", &format!("fn main() {run}\n"));
        self.put("app/tests/runs.rs", &format!("#[test] fn runs() {run}\n"));
        let exported = format!("#[no_mangle] pub extern \"C\" fn run_all() {run}\n");
        for (name, kind) in [("plug", "cdylib"), ("archive", "staticlib")] {
            package(
                name,
                &format!("[lib]\ncrate-type = [\"{kind}\"]\n[dependencies]\n{both}"),
            );
            self.put(&format!("{name}/src/lib.rs"), &exported);
        }
        let main = "void run_all(void);\nint main(void) { run_all(); return 0; }\n";
        self.put("main.c", main);
        // Not one of the workspace's: fat LTO makes no such library.
        package(
            "shared",
            &format!("[lib]\ncrate-type = [\"dylib\"]\n[dependencies]\n{both}[workspace]\n"),
        );
        self.put("shared/src/lib.rs", &format!("pub fn run_all() {run}\n"));
        self.put(
            "shared/examples/uses.rs",
            "fn main() { shared::run_all(); }\n",
        );
        if !self.root.join("shared/Cargo.lock").exists() {
            self.put("shared/Cargo.lock", &lock);
        }
    }

    fn write_leaf(&self, version: &str, offload_build: &Path) {
        let extension = match self.language {
            Language::Hip => "hip",
            Language::Cuda => "cu",
        };
        let (prefix, targets) = (self.language.prefix(), self.language.targets());
        // Where all is linked together, all must have names of its own, as in C++.
        let own = match self.mode {
            Mode::Complete => String::new(),
            Mode::Deferred => version.to_owned(),
        };
        let plain = format!("plain{own}");
        let define = format!(
            "define = {{ LAUNCH = \"launch_{version}\", HELPER = \"helper_{version}\", FACTOR = \"factor{own}\", \
             PLAIN = \"{plain}\", TEMPLATE = \"scale{own}\", twice = \"twice{own}\" }}"
        );
        let register = match self.mode {
            Mode::Complete => "complete",
            Mode::Deferred => "deferred",
        };
        self.put(
            &format!("leaf{version}/Cargo.toml"),
            &format!(
                "[package]\nname = \"leaf\"\nversion = \"{version}.0.0\"\nedition = \"2021\"\n\
                 [build-dependencies]\noffload-build = {{ path = {offload_build:?} }}\n\
                 [package.metadata.offload]\nlanguage = \"{prefix}\"\nhost = true\nregister = \"{register}\"\n\
                 sources = [\"kernels/*.{extension}\"]\ntargets = [{targets}]\n\
                 flags = [\"-nogpulib\", \"-nogpuinc\"]\nrdc = true\n{define}\n"
            ),
        );
        let build = "fn main() -> Result<(), offload_build::Error> { offload_build::Build::from_manifest()?.run() }\n";
        self.put(&format!("leaf{version}/build.rs"), build);
        let kernels = format!("leaf{version}/kernels");
        self.put(&format!("{kernels}/gpu.h"), &format!("{HEADER}{SHARED}"));
        self.put(&format!("{kernels}/kernel.{extension}"), SOURCE);
        self.put(&format!("{kernels}/helper.{extension}"), HELPER);
        let mangled = format!("_Z{}{plain}Pi", plain.len());
        let source = LEAF
            .replace("@LAUNCH@", &format!("launch_{version}"))
            .replace("@LAUNCH_KERNEL@", &format!("{prefix}LaunchKernel"))
            .replace("@PLAIN@", &mangled);
        self.put(&format!("leaf{version}/src/lib.rs"), &source);
    }

    fn target_dir(&self) -> PathBuf {
        self.root.join("target")
    }

    fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// With `--target` the flags do not reach build scripts: offload-build is compiled once for all of them.
    fn cargo(&self, linker: Linker, subcommand: &[&str], profile: &[&str]) -> Command {
        let ours = match self.mode {
            Mode::Complete => None,
            Mode::Deferred => Some(OURS),
        };
        self.cargo_in(&self.target_dir(), ours, linker, subcommand, profile)
    }

    /// `ours` is offload-link if it is the linker of Cargo's configuration.
    fn cargo_in(
        &self,
        target_dir: &Path,
        ours: Option<&str>,
        linker: Linker,
        subcommand: &[&str],
        profile: &[&str],
    ) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        dependencies::copy_into(target_dir, &mut cargo, ours, profile);
        cargo
            .args(subcommand)
            .args(["--target", TARGET, "--offline"])
            .args(profile)
            .current_dir(&self.root)
            .env("RUSTFLAGS", linker.rustflags())
            .env("LIBRARY_PATH", self.root.join("runtime"))
            .env("GPU_LOG", self.log())
            .env("OFFLOAD_COMPILER", "clang-19")
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("OFFLOAD_REQUIRE");
        if let Some(ours) = ours {
            cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", ours);
        }
        cargo
    }

    /// Runs a program, whose shared Rust libraries are in `built`, and looks at what the runtime was told.
    #[track_caller]
    fn check(&self, what: &str, program: &mut Command, built: &Path) {
        let _ = fs::remove_file(self.log());
        program
            .env("GPU_LOG", self.log())
            .env("LD_LIBRARY_PATH", self.loader_path(built));
        succeed(program);
        let log = fs::read_to_string(self.log()).unwrap();
        self.check_log(&log, what);
    }

    /// Checks the program without the images for one target. The symbols of images lead to its bundles, but nothing uses them.
    #[track_caller]
    fn check_pruned(&self, what: &str, built: &Path) {
        let dropped = match self.language {
            Language::Hip => "gfx90a",
            Language::Cuda => "sm_80",
        };
        let pruned = self.root.join("pruned");
        succeed(
            Command::new(env!("CARGO_BIN_EXE_cargo-offload"))
                .args(["offload", "prune", "--drop", dropped])
                .arg(built.join("app"))
                .arg("-o")
                .arg(&pruned),
        );
        self.check(what, &mut Command::new(&pruned), built);
    }

    #[track_caller]
    fn check_log(&self, log: &str, what: &str) {
        launches::check(
            log,
            self.language.prefix(),
            self.mode == Mode::Complete,
            what,
        );
    }

    fn loader_path(&self, built: &Path) -> String {
        let std = support::run(Command::new("rustc").args(["--print", "target-libdir"]));
        let folders = [
            self.root.join("runtime"),
            built.to_owned(),
            PathBuf::from(std.trim()),
        ];
        folders.map(|folder| folder.display().to_string()).join(":")
    }
}

/// What is registered completely is finished: our linker leaves it alone.
fn under_our_linker(workspace: &Workspace) {
    let _ = fs::remove_file(workspace.log());
    // The linker is part of every fingerprint: in the other folder Cargo would build all again.
    let target_dir = workspace.root.join("target-offload-link");
    let mut cargo = workspace.cargo_in(&target_dir, Some(OURS), Linker::RustLld, &TEST, &[]);
    succeed(&mut cargo);
    let log = fs::read_to_string(workspace.log()).unwrap();
    workspace.check_log(&log, "offload-link");
}

fn matrix(language: Language, mode: Mode) {
    let Some(workspace) = Workspace::new(language, mode) else {
        return;
    };
    // All of them with all where the registration is HIP's own; else one of the two differs at a time.
    let is_full = support::tests_all() && (language, mode) == (Language::Hip, Mode::Complete);
    // Each linker in one of the tests. `examples` has the other registrations of GNU's and of LLVM's.
    let first = 2 * usize::from(mode == Mode::Deferred) + usize::from(language == Language::Cuda);
    for linker in support::share(LINKERS, first, 4) {
        let is_rusts = linker == Linker::RustLld;
        let profiles: &[Profile] = match support::tests_all() {
            true if is_full || is_rusts => &[DEBUG, RELEASE, FAT],
            true => &[RELEASE],
            false => &[DEBUG],
        };
        for &(folder, flags, fat) in profiles {
            let what = format!("{linker:?} {folder} fat {fat}");
            let built = workspace.target_dir().join(TARGET).join(folder);
            let _ = fs::remove_file(workspace.log());
            succeed(&mut workspace.cargo(linker, &TEST, flags));
            let log = fs::read_to_string(workspace.log()).unwrap();
            workspace.check_log(&log, &format!("{what} test"));
            let all = ["build", "--workspace", "--bins", "--lib", "--examples"];
            succeed(&mut workspace.cargo(linker, &all, flags));
            workspace.check(
                &format!("{what} bin"),
                &mut Command::new(built.join("app")),
                &built,
            );
            workspace.check_pruned(&format!("{what} pruned"), &built);
            let example = built.join("examples/show");
            workspace.check(
                &format!("{what} example"),
                &mut Command::new(example),
                &built,
            );
            if !fat {
                let mut cargo = workspace.cargo(linker, &["build", "--example", "uses"], flags);
                let prefer = format!("{} -Cprefer-dynamic", linker.rustflags());
                cargo.current_dir(workspace.root.join("shared"));
                succeed(cargo.env("RUSTFLAGS", prefer));
                let uses = built.join("examples/uses");
                workspace.check(&format!("{what} dylib"), &mut Command::new(uses), &built);
            }
            for (library, shape) in [("libplug.so", "cdylib"), ("libarchive.a", "staticlib")] {
                let program = workspace.root.join("program");
                let cc = match mode {
                    Mode::Complete => "cc",
                    Mode::Deferred => OURS,
                };
                let mut cc = Command::new(cc);
                cc.arg(workspace.root.join("main.c"))
                    .args(linker.cc_flags())
                    .arg(built.join(library))
                    .arg("-L")
                    .arg(workspace.root.join("runtime"))
                    .arg(format!("-l{}", language.library()))
                    .args(["-lstdc++", "-lm", "-ldl", "-lpthread", "-lgcc_s"])
                    .arg(format!("-Wl,-rpath,{}", built.display()))
                    .arg("-o")
                    .arg(&program);
                succeed(&mut cc);
                workspace.check(
                    &format!("{what} {shape}"),
                    &mut Command::new(&program),
                    &built,
                );
            }
        }
    }
    if mode == Mode::Complete {
        under_our_linker(&workspace);
    }
}

#[test]
fn registers_hip_completely() {
    matrix(Language::Hip, Mode::Complete);
}

#[test]
fn registers_cuda_completely() {
    matrix(Language::Cuda, Mode::Complete);
}

#[test]
#[ignore = "`make test-all`: `registers_cuda_at_the_last_link` links such programs"]
fn registers_hip_at_the_last_link() {
    matrix(Language::Hip, Mode::Deferred);
}

#[test]
fn registers_cuda_at_the_last_link() {
    matrix(Language::Cuda, Mode::Deferred);
}
