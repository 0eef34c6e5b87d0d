//! Registration that survives Cargo: HIP and CUDA modules with host code in two versions of one crate, used through
//! another crate by every kind of program, in every profile, with every linker, by both registrations.
//!
//! The runtime is a stand-in that writes what it is told into a file. What it must be told follows from the sources:
//! each module's fat binary once, with its three kernels and its variable, and each launch of a kernel by an address
//! that was registered once, for the fat binary of the module that launches.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::launches::HEADER;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Each call is a line: of a registration the number of the fat binary, of a launch all that its address was
/// registered for.
const RUNTIME: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define NAME2(prefix, name) __##prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define NAME(name) NAME1(PREFIX, name)
struct wrapper { unsigned magic, version; const unsigned char *image; void *unused; };
static struct { const void *address; const char *name; int binary; } known[99];
static int kernels, count, handles[99];
static FILE *log_file(void) {
  static FILE *file;
  if (!file) { file = fopen(getenv("GPU_LOG"), "a"); setvbuf(file, 0, _IONBF, 0); }
  return file;
}
#define LOG(...) fprintf(log_file(), __VA_ARGS__)
void **NAME(RegisterFatBinary)(struct wrapper *w) {
  LOG("register %d magic %x aligned %d\n", count, w->magic, (unsigned long)w->image % ALIGNMENT == 0);
  return (void **)&handles[count++];
}
void NAME(RegisterFatBinaryEnd)(void *h) {}
void NAME(UnregisterFatBinary)(void *h) { LOG("unregister %d\n", (int)((int *)h - handles)); }
int NAME(RegisterFunction)(void *h, const void *a, char *b, char *c, int limit, void *t, void *u, void *v, void *w, int *x) {
  int binary = (int *)h - handles;
  LOG("function %d %s\n", binary, b);
  known[kernels].address = a; known[kernels].binary = binary; known[kernels++].name = b; return 0;
}
void NAME(RegisterVar)(void *h, void *a, char *b, char *c, int external, unsigned long size, int constant, int global) {
  LOG("variable %d %s %lu\n", (int)((int *)h - handles), b, size);
}
void NAME(RegisterManagedVar)(void) {}
void NAME(RegisterSurface)(void) {}
void NAME(RegisterTexture)(void) {}
static int launch(const void *a) {
  LOG("launch");
  for (int i = 0; i < kernels; i++) if (known[i].address == a) LOG(" %d %s", known[i].binary, known[i].name);
  LOG("\n"); return 0;
}
int NAME(PushCallConfiguration)(void) { return 0; }
int NAME(PopCallConfiguration)(void) { return 0; }
int hipLaunchKernel(const void *a) { return launch(a); }
int cudaLaunchKernel(const void *a) { return launch(a); }
"#;

/// A kernel that each file which uses it instantiates, and a function that one defines.
const SHARED: &str = "template <class T> __global__ void TEMPLATE(T *x) { *x += 1; }\n__device__ int twice(int x);\n";

/// A kernel of its own, one that is nobody else's, one that another file instantiates too, and a variable.
const SOURCE: &str = r#"
#include "gpu.h"
__device__ int FACTOR = 3;
static __global__ void inner(int *x) { *x = twice(FACTOR); }
__global__ void PLAIN(int *x) { *x = FACTOR; }
void other_launch(int *x);
extern "C" void LAUNCH(int *x) {
  TEMPLATE<<<1, 1>>>(x);
  inner<<<1, 1>>>(x);
  PLAIN<<<1, 1>>>(x);
}
"#;

/// A second file: a device function, and the template again.
const HELPER: &str = r#"
#include "gpu.h"
__device__ int twice(int x) { return 2 * x; }
extern "C" void HELPER(int *x) { TEMPLATE<<<1, 1>>>(x); }
"#;

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

const RELEASE: Profile = ("release", &["--release"], false);
const PROFILES: [Profile; 3] = [
    ("debug", &[], false),
    RELEASE,
    (
        "release",
        &["--release", "--config", "profile.release.lto=\"fat\""],
        true,
    ),
];

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
                 flags = [\"-nogpulib\", \"-nogpuinc\"]\n{define}\n"
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
    fn cargo(&self, linker: Linker, subcommand: &[&str]) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(subcommand)
            .args(["--target", TARGET, "--offline"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.target_dir())
            .env("RUSTFLAGS", linker.rustflags())
            .env("LIBRARY_PATH", self.root.join("runtime"))
            .env("GPU_LOG", self.log())
            .env("OFFLOAD_COMPILER", "clang-19")
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("OFFLOAD_REQUIRE");
        if self.mode == Mode::Deferred {
            let ours = env!("CARGO_BIN_EXE_offload-link");
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
        check(self, &log, what);
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

#[track_caller]
fn succeed(command: &mut Command) -> Output {
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

#[track_caller]
fn check(workspace: &Workspace, log: &str, what: &str) {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = log.lines().map(words).collect();
    let of = |first: &str| -> Vec<&Vec<String>> {
        lines.iter().filter(|words| words[0] == first).collect()
    };
    let binaries = match workspace.mode {
        Mode::Complete => 2,
        Mode::Deferred => 1,
    };
    assert_eq!(of("register").len(), binaries, "{what}: {log}");
    let magic = match workspace.language {
        Language::Hip => "48495046",
        Language::Cuda => "466243b1",
    };
    for (number, words) in of("register").into_iter().enumerate() {
        let expected = format!("register {number} magic {magic} aligned 1");
        assert_eq!(words.join(" "), expected, "{what}");
    }
    assert_eq!(of("unregister").len(), binaries, "{what}: {log}");

    // Each kernel of each version, with the number of its launches; what is a file's own has a name that ends so.
    let mut seen: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let short = |name: &str| {
        let own = name.find(".intern.").or(name.find("__intern__"));
        own.map_or(name.to_owned(), |end| format!("{}*", &name[..end]))
    };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for words in of("function") {
        let binary: usize = words[1].parse().unwrap();
        seen.insert((binary, short(&words[2])), 0);
        names.insert(words[2].clone(), binary);
    }
    for words in of("launch") {
        // An address that was registered for one kernel; each file that instantiates a template registers it.
        let (first, others) = words[1..].split_at(2);
        assert!(
            others.chunks(2).all(|other| other == first),
            "{what}: {log}"
        );
        let binary: usize = first[0].parse().unwrap();
        *seen.get_mut(&(binary, short(&first[1]))).unwrap() += 1;
    }
    let mut expected = BTreeMap::new();
    for (binary, version) in [(0, "1"), (1, "2")] {
        let (binary, own, inner) = match workspace.mode {
            Mode::Complete => (binary, "", 1),
            Mode::Deferred => (0, version, 2),
        };
        let (plain, scale) = (format!("plain{own}"), format!("scale{own}"));
        expected.insert((binary, "_ZL5innerPi*".to_owned()), inner);
        expected.insert((binary, format!("_Z{}{plain}Pi", plain.len())), 2);
        expected.insert((binary, format!("_Z{}{scale}IiEvPT_", scale.len())), 1);
    }
    assert_eq!(seen, expected, "{what}: {log}");
    // Those of one file only are two kernels, whatever fat binary they are in.
    let inner = names.keys().filter(|name| name.contains("inner"));
    assert_eq!(inner.count(), 2, "{what}: {log}");
    assert_eq!(of("variable").len(), 2, "{what}: {log}");
}

/// What is registered completely is finished: our linker leaves it alone.
fn under_our_linker(workspace: &Workspace) {
    let ours = env!("CARGO_BIN_EXE_offload-link");
    let _ = fs::remove_file(workspace.log());
    let mut cargo = workspace.cargo(Linker::RustLld, &["test", "-p", "app", "--test", "runs"]);
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", ours);
    succeed(&mut cargo);
    let log = fs::read_to_string(workspace.log()).unwrap();
    check(workspace, &log, "offload-link");
}

fn matrix(language: Language, mode: Mode) {
    let Some(workspace) = Workspace::new(language, mode) else {
        return;
    };
    // All of them with all where the registration is HIP's own; else one of the two differs at a time.
    let is_full = (language, mode) == (Language::Hip, Mode::Complete);
    for linker in LINKERS {
        let profiles: &[Profile] = match is_full || linker == Linker::RustLld {
            true => &PROFILES,
            false => &[RELEASE],
        };
        for &(folder, flags, fat) in profiles {
            let what = format!("{linker:?} {folder} fat {fat}");
            let built = workspace.target_dir().join(TARGET).join(folder);
            let _ = fs::remove_file(workspace.log());
            succeed(
                workspace
                    .cargo(linker, &["test", "-p", "app", "--test", "runs"])
                    .args(flags),
            );
            let log = fs::read_to_string(workspace.log()).unwrap();
            check(&workspace, &log, &format!("{what} test"));
            succeed(
                workspace
                    .cargo(
                        linker,
                        &["build", "--workspace", "--bins", "--lib", "--examples"],
                    )
                    .args(flags),
            );
            workspace.check(
                &format!("{what} bin"),
                &mut Command::new(built.join("app")),
                &built,
            );
            let example = built.join("examples/show");
            workspace.check(
                &format!("{what} example"),
                &mut Command::new(example),
                &built,
            );
            if !fat {
                let mut cargo = workspace.cargo(linker, &["build", "--example", "uses"]);
                let prefer = format!("{} -Cprefer-dynamic", linker.rustflags());
                cargo.current_dir(workspace.root.join("shared"));
                succeed(cargo.env("RUSTFLAGS", prefer).args(flags));
                let uses = built.join("examples/uses");
                workspace.check(&format!("{what} dylib"), &mut Command::new(uses), &built);
            }
            for (library, shape) in [("libplug.so", "cdylib"), ("libarchive.a", "staticlib")] {
                let program = workspace.root.join("program");
                let ours = env!("CARGO_BIN_EXE_offload-link");
                let cc = match mode {
                    Mode::Complete => "cc",
                    Mode::Deferred => ours,
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
fn registers_hip_at_the_last_link() {
    matrix(Language::Hip, Mode::Deferred);
}

#[test]
fn registers_cuda_at_the_last_link() {
    matrix(Language::Cuda, Mode::Deferred);
}
