//! Builds for a host of another processor than this machine's: aarch64, whose programs run under qemu with a runtime
//! that says what is registered.

use crate::shared_build::example;
use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::package::{MANIFEST, OUT, Package, text};

const HOST: &str = "aarch64-unknown-linux-gnu";
const KEYS: &str = "sources = [\"kernels/*.c\"]\nartifact = [\"hda\", \"device-archive\"]\n\
    targets = [\"aarch64-unknown-linux-gnu\", \"x86_64-pc-linux-gnu\", \"gfx942\", \"sm_90\"]\n";
/// Named as those of another release than the compiler's would not be.
const RUNTIME: &str = "libomptarget.so.19.1";

/// Tells the machine of each image and the name of each entry (`docs/spec/linker-wrapper.md` §5.1: 32 bytes in LLVM 19), and has
/// regions run on the host.
const RECORDER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct entry { void *address; char *name; uint64_t size; int32_t flags, data; };
struct image { unsigned char *start, *end; struct entry *first, *last; };
struct binary { int32_t count; struct image *images; struct entry *first, *last; };
void __tgt_register_lib(struct binary *binary) {
  for (int i = 0; i < binary->count; i++) {
    unsigned char *at = binary->images[i].start;
    printf("image %d\n", memcmp(at, "\x7f" "ELF", 4) ? -1 : at[18] | at[19] << 8);
  }
  for (struct entry *at = binary->first; at != binary->last; at++)
    printf("entry %s\n", strrchr(at->name, '_'));
}
void __tgt_unregister_lib(struct binary *binary) { printf("end of %d\n", binary->count); }
int __tgt_target_kernel(void *ident, int64_t device, int32_t teams, int32_t threads, void *host, void *arguments) {
  printf("kernel\n");
  return 1;
}
"#;
/// Has a region's code run by one thread, which takes the whole loop.
const OMP: &str = r#"
#include <stdarg.h>
#include <stdint.h>
typedef void outlined(int *thread, int *bound, void *, void *, void *, void *, void *, void *);
static void run(outlined *code, int count, va_list from) {
  int thread = 0;
  void *values[6] = {0};
  for (int i = 0; i < count && i < 6; i++) values[i] = va_arg(from, void *);
  code(&thread, &thread, values[0], values[1], values[2], values[3], values[4], values[5]);
}
#define FORK(name) void name(void *ident, int count, outlined *code, ...) { \
  va_list from; va_start(from, code); run(code, count, from); va_end(from); }
FORK(__kmpc_fork_teams)
FORK(__kmpc_fork_call)
int __kmpc_global_thread_num(void *ident) { return 0; }
void __kmpc_for_static_init_8u(void *ident, int thread, int schedule, int32_t *last, uint64_t *lower, uint64_t *upper,
                               int64_t *stride, int64_t step, int64_t chunk) { *last = 1; *stride = 1 << 30; }
void __kmpc_for_static_fini(void *ident, int thread) {}
"#;
const MAIN: &str = "#include <stdio.h>\nint run(int x);\nint main(void) { printf(\"%d\\n\", run(41)); return 0; }\n";
/// Machines are numbers of ELF: aarch64, NVIDIA and AMD.
const SAID: [&str; 7] = [
    "42",
    "end of 3",
    "entry _l3",
    "image 183",
    "image 190",
    "image 224",
    "kernel",
];

struct Cross {
    package: Package,
    cc: PathBuf,
    qemu: PathBuf,
}

impl Cross {
    fn new() -> Option<Self> {
        let cc = support::tool("qemu", &["aarch64-linux-gnu-gcc"])?;
        let qemu = support::tool("qemu", &["qemu-aarch64", "qemu-aarch64-static"])?;
        support::tool("cuda", &["ptxas"])?;
        let package = Package::new(KEYS)?;
        // Where clang finds it for devices, and a link for the host does not take it.
        fs::create_dir(package.at("linkers")).unwrap();
        fs::rename(package.at("llvm/bin/ld.lld"), package.at("linkers/ld.lld")).unwrap();
        let cross = Self { package, cc, qemu };
        let put = |name: &str, text: &str| cross.package.put(name, text);
        put("runtime/target.c", RECORDER);
        put("runtime/omp.c", OMP);
        put("main.c", MAIN);
        let library = |source: &str, name: &str| {
            let mut cc = cross.cc();
            cc.args(["-shared", "-fPIC", "-Wl,-soname"]).arg(name);
            support::run(cc.arg("-o").arg(format!("runtime/{name}")).arg(source));
        };
        library("runtime/target.c", RUNTIME);
        library("runtime/omp.c", "libomp.so");
        std::os::unix::fs::symlink(RUNTIME, cross.at("runtime/libomptarget.so")).unwrap();
        Some(cross)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.package.at(name)
    }

    fn cc(&self) -> Command {
        let mut cc = Command::new(&self.cc);
        cc.current_dir(self.package.folder.root());
        cc
    }

    /// The build script, in a cross build.
    fn script(&self) -> Command {
        let mut script = self.package.script();
        let cuda = support::tool("cuda", &["ptxas"]).unwrap();
        let cuda = cuda.ancestors().nth(2).unwrap().to_owned();
        let path = format!("{}:/usr/bin:/bin", self.at("linkers").display());
        script
            .env("TARGET", HOST)
            .env("CUDA_PATH", cuda)
            .env("PATH", path);
        script
    }

    /// What a program says, in order of the alphabet: images have no order of their own.
    fn says(&self, program: &str) -> Vec<String> {
        let mut run = Command::new(&self.qemu);
        run.args(["-L", "/usr/aarch64-linux-gnu", "-E"])
            .arg(format!("LD_LIBRARY_PATH={}", self.at("runtime").display()));
        let said = support::run(run.arg(self.at(program)));
        let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// The machines of the objects in an archive, or of one object.
fn machines(file: &Path) -> Vec<String> {
    let header = support::run(Command::new("readelf").arg("-h").arg(file));
    let machines = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Machine:"));
    machines.map(|machine| machine.trim().to_owned()).collect()
}

#[test]
fn registers_in_programs_for_another_processor() {
    let Some(cross) = Cross::new() else {
        return;
    };
    let build = |script: &mut Command| {
        let _ = fs::remove_dir_all(cross.at("target"));
        text(&script.output().unwrap())
    };
    let link = |folder: &str, program: &str| {
        let library = cross.package.files();
        let library = library
            .iter()
            .find(|name| name.ends_with("_offload.a"))
            .unwrap();
        assert_eq!(machines(Path::new(library)), ["AArch64"]);
        let mut cc = cross.cc();
        cc.args([
            "main.c",
            "-Wl,--whole-archive",
            library,
            "-Wl,--no-whole-archive",
        ]);
        cc.args([
            &format!("-L{folder}"),
            "-lomptarget",
            "-lomp",
            "-o",
            program,
        ]);
        support::run(&mut cc);
    };
    let links = format!("{OUT}/offload/runtime");
    let told = build(cross.script().env("LIBRARY_PATH", cross.at("runtime")));
    let warning = format!(
        "cargo::warning=module `kernels`: no image for `x86_64-pc-linux-gnu`: programs for `{HOST}` cannot load images \
         for another processor\ncargo::warning=hint: OFFLOAD_TARGETS_aarch64_unknown_linux_gnu lists the targets of \
         builds for this host\n"
    );
    assert!(told.contains(&warning), "{told}");
    // No folder of this machine is of use where the program runs.
    assert!(!told.contains("rpath"), "{told}");
    assert!(
        told.contains(&format!("native={}\n", cross.at(&links).display())),
        "{told}"
    );
    link(&links, "gcc");
    assert_eq!(cross.says("gcc"), SAID);

    // The same folder, from rustc's flags; and lld joins the objects.
    let lld = Path::new("/usr/lib/llvm-19/bin/ld.lld");
    std::os::unix::fs::symlink(lld, cross.at("llvm/bin/ld.lld")).unwrap();
    let flags = format!(
        "-Copt-level=1\x1f-L\x1fnative={}",
        cross.at("runtime").display()
    );
    build(cross.script().env("CARGO_ENCODED_RUSTFLAGS", flags));
    link(&links, "lld");
    assert_eq!(cross.says("lld"), SAID);
}

#[test]
fn makes_archives_for_programs_for_another_processor() {
    let Some(cross) = Cross::new() else {
        return;
    };
    text(
        &cross
            .script()
            .env("LIBRARY_PATH", cross.at("runtime"))
            .output()
            .unwrap(),
    );
    let folder = cross.at(&format!("{OUT}/offload/artifacts"));
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let archives = [
        "libbc-pack-aarch64-unknown-linux-gnu.a",
        "libbc-pack-amdgcn-gfx942.a",
        "libbc-pack-nvptx64-sm_90.a",
        "libpack.a",
    ];
    assert_eq!(names, archives);
    assert_eq!(machines(&folder.join("libpack.a")), ["AArch64"]);
    assert_eq!(machines(&folder.join(archives[0])), ["AArch64"]);
    let entries = support::run(
        Command::new(env!("CARGO_BIN_EXE_cargo-offload"))
            .args(["offload", "archive", "list"])
            .arg(folder.join("libpack.a")),
    );
    for entry in [
        "host    aarch64-unknown-linux-gnu ",
        "openmp  aarch64-unknown-linux-gnu ",
        "openmp  amdgcn-amd-amdhsa gfx942 ",
        "openmp  nvptx64-nvidia-cuda sm_90 ",
    ] {
        assert!(entries.contains(entry), "{entries}");
    }
    assert!(!entries.contains("x86_64"), "{entries}");

    // The compiler for that host is found by the first object.
    support::run(cross.cc().args(["-c", "main.c"]));
    let mut link = Command::new(env!("CARGO_BIN_EXE_offload-link"));
    link.current_dir(cross.package.folder.root())
        .args(["main.o", "-o", "program", "-Lruntime", "-L"])
        .arg(&folder)
        .arg("-lpack");
    support::run(&mut link);
    assert_eq!(machines(&cross.at("program")), ["AArch64"]);
    assert_eq!(cross.says("program"), SAID);
}

/// The commands of the example, with the build script in Cargo's place: Rust for the other host is not installed.
#[test]
fn links_the_example_for_another_processor() {
    let Some(cross) = Cross::new() else {
        return;
    };
    let example = example("cross-build");
    let mut script = cross.script();
    script
        .env("CARGO_MANIFEST_DIR", &example)
        .env("CARGO_PKG_NAME", "scale")
        .env("LIBRARY_PATH", cross.at("runtime"))
        .current_dir(&example);
    text(&script.output().unwrap());
    let folder = cross.at(&format!("{OUT}/offload/artifacts"));
    let mut files: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let readme = fs::read_to_string(example.join("README.md")).unwrap();
    let listed = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    lib/"));
    assert_eq!(files, listed.collect::<Vec<_>>());

    support::run(cross.cc().arg("-c").arg(example.join("program/main.c")));
    let mut link = Command::new(env!("CARGO_BIN_EXE_offload-link"));
    link.current_dir(cross.package.folder.root())
        .args(["-o", "scale", "main.o", "-L"])
        .arg(&folder)
        .args(["-lscale", "-Lruntime"]);
    support::run(&mut link);
    assert_eq!(machines(&cross.at("scale")), ["AArch64"]);
    // The CPU and two GPUs of AMD.
    let said = [
        "2 4 6",
        "end of 3",
        "entry _l4",
        "image 183",
        "image 224",
        "image 224",
        "kernel",
    ];
    assert_eq!(cross.says("scale"), said);
}

#[test]
fn says_where_the_runtime_of_another_host_was_searched() {
    let Some(cross) = Cross::new() else {
        return;
    };
    let mut script = cross.script();
    let told = text(&script.env("OFFLOAD_MISSING", "skip").output().unwrap());
    let lines: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::warning="))
        .collect();
    let said = lines.join("\n");
    let start =
        format!("module `kernels`: no image for `{HOST}`: `libomptarget.so` not found (searched: ");
    assert!(said.starts_with(&start), "{said}");
    for searched in [
        "llvm/lib/aarch64-unknown-linux-gnu, ",
        ", /usr/aarch64-linux-gnu/lib, ",
    ] {
        assert!(lines[0].contains(searched), "{said}");
    }
    assert!(
        said.contains(
            "\nhint: programs for aarch64-unknown-linux-gnu need this library for their host "
        ),
        "{said}"
    );
    // Said once; the images for GPUs are there, and whoever links the program has the runtime.
    assert_eq!(said.matches("libomptarget.so").count(), 1, "{said}");
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_gfx942\n"),
        "{told}"
    );
    assert!(
        told.contains("cargo::rustc-link-lib=dylib=omptarget\n"),
        "{told}"
    );

    // Without a CPU's image it is said, too; that of this machine or of another release does not count.
    fs::rename(
        cross.at("runtime/libomptarget.so.19.1"),
        cross.at("runtime/libomptarget.so.18.1"),
    )
    .unwrap();
    fs::remove_file(cross.at("runtime/libomptarget.so")).unwrap();
    std::os::unix::fs::symlink("libomptarget.so.18.1", cross.at("runtime/libomptarget.so"))
        .unwrap();
    let keys = KEYS.replace(
        "\"aarch64-unknown-linux-gnu\", \"x86_64-pc-linux-gnu\", ",
        "",
    );
    cross
        .package
        .put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    let folders = format!("/usr/lib/llvm-19/lib:{}", cross.at("runtime").display());
    let told = text(
        &cross
            .script()
            .env("LIBRARY_PATH", folders)
            .output()
            .unwrap(),
    );
    assert!(
        told.contains("cargo::warning=`libomptarget.so` not found (searched: "),
        "{told}"
    );

    // The root of the host's files has clang's folder again.
    let inside = cross
        .at("root")
        .join(cross.at("llvm/lib").strip_prefix("/").unwrap());
    fs::create_dir_all(&inside).unwrap();
    fs::copy(
        cross.at("runtime/libomptarget.so"),
        inside.join("libomptarget.so"),
    )
    .unwrap();
    let flags = format!("flags = [\"--sysroot={}\"]\n", cross.at("root").display());
    cross
        .package
        .put("Cargo.toml", &format!("{MANIFEST}{keys}{flags}"));
    let told = text(&cross.script().output().unwrap());
    assert!(!told.contains("libomptarget.so"), "{told}");
}
