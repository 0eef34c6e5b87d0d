//! Build scripts. `OFFLOAD_BENCH_PARTS` selects parts, such as `cold,kernels`; the default is all:
//!
//! | part      | what is measured                                                                        |
//! |-----------|-----------------------------------------------------------------------------------------|
//! | `cold`    | a user's first build of the build-dependency, beside others (`cold_builds.rs`)          |
//! | `sources` | many sources of CUDA, beside nvcc and `cc` (`many_sources.rs`)                          |
//! | `image`   | a crate with a large image, linked and included (`large_image.rs`)                      |
//! | `kernels` | a build script with 64 kernels for 3 targets, beside one command line for each file     |
//!
//! Rows of `kernels`:
//!
//! | rows               | what is measured                                                                   |
//! |--------------------|------------------------------------------------------------------------------------|
//! | ours               | the build script alone, without Cargo: compiles, a device link for each target, packing |
//! | `clang`, `nvcc`    | each source for all targets by one command, without a link: as people do it by hand |
//!
//! Each row is one run: its time, and that of the processors, which other work on the machine changes less. What a shim in the place of clang and `llvm-link` counts is beside the seconds: what others
//! start is counted by command lines, of which each runs a compiler for each target.

#[path = "clock.rs"]
mod clock;
#[path = "cold_builds.rs"]
mod cold_builds;
#[path = "../tests/support/crates.rs"]
#[allow(
    unreachable_pub,
    reason = "a module of several crates, none of which exports it"
)]
mod crates;
#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "large_image.rs"]
mod large_image;
#[path = "many_sources.rs"]
mod many_sources;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use clock::Clock;
use folder::{Folder, run};

const LLVM: &str = "/usr/lib/llvm-22/bin";
/// Set for the process that is the build script.
const SCRIPT: &str = "OFFLOAD_BENCH_SCRIPT";
const SOURCES: usize = 64;
/// A header of so many of them.
const GROUP: usize = 8;

/// Starts a program, after a byte more in a file.
const SHIM: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int log = open(LOG, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (argc > 1 && write(log, "x", 1) != 1) return 1;
  argv[0] = REAL;
  return execv(REAL, argv);
}
"#;

fn main() {
    if std::env::var_os(SCRIPT).is_some() {
        let built = offload_build::Build::from_manifest().and_then(offload_build::Build::run);
        built.expect("the build script succeeds");
        return;
    }
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let wanted = std::env::var("OFFLOAD_BENCH_PARTS").unwrap_or_default();
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.split(',').any(|part| part == name) {
            part();
        }
    }
}

/// Parts of the bench by name.
const PARTS: [(&str, fn()); 4] = [
    ("cold", cold_builds::measure),
    ("sources", many_sources::measure),
    ("image", large_image::measure),
    ("kernels", kernels),
];

fn kernels() {
    for code in [Code::Hip, Code::HipByFile, Code::Cuda] {
        let bench = Bench::new(code);
        println!(
            "\n{SOURCES} kernels of {}{}, targets {}",
            code.language(),
            code.keys(),
            code.targets().join(", ")
        );
        for jobs in [1, 2] {
            let _ = fs::remove_dir_all(bench.folder.path("out"));
            bench.ours(&format!("ours, cold, {}", jobs_text(jobs)), jobs);
        }
        bench.ours("ours, nothing changed", 2);
        bench.edit("kernels/group.h", &header(2));
        bench.ours(&format!("ours, a header of {GROUP} edited"), 2);
        bench.edit(
            &code.source(0),
            &kernel(code, 0).replace("seed + 0", "seed + 7"),
        );
        bench.ours("ours, a source edited", 2);
        if code != Code::HipByFile {
            bench.theirs();
        }
    }
}

fn jobs_text(jobs: usize) -> &'static str {
    match jobs {
        1 => "1 core",
        _ => "2 cores",
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Code {
    Hip,
    /// Each source compiled to machine code by itself, as `clang` without `-fgpu-rdc` does.
    HipByFile,
    Cuda,
}

impl Code {
    fn language(self) -> &'static str {
        match self {
            Self::Hip | Self::HipByFile => "hip",
            Self::Cuda => "cuda",
        }
    }

    fn keys(self) -> &'static str {
        match self {
            Self::HipByFile => " with rdc = false",
            Self::Hip | Self::Cuda => "",
        }
    }

    fn targets(self) -> [&'static str; 3] {
        match self {
            Self::Hip | Self::HipByFile => ["gfx90a", "gfx942", "gfx1100"],
            Self::Cuda => ["sm_80", "sm_86", "sm_90"],
        }
    }

    fn source(self, index: usize) -> String {
        let extension = match self {
            Self::Hip | Self::HipByFile => "hip",
            Self::Cuda => "cu",
        };
        format!("kernels/k{index:02}.{extension}")
    }
}

/// The build script of a package, as Cargo starts it for a release build with two jobs.
fn build_script(package: &Path, out: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .env_clear()
        .env(SCRIPT, "1")
        .env("PATH", "/usr/bin:/bin")
        .env("CARGO_MANIFEST_DIR", package)
        .env("CARGO_PKG_NAME", "bench")
        .env("CARGO_PKG_VERSION", "1.0.0")
        .env("OUT_DIR", out)
        .env("TARGET", "x86_64-unknown-linux-gnu")
        .env("HOST", "x86_64-unknown-linux-gnu")
        .env("OPT_LEVEL", "3")
        .env("PROFILE", "release")
        .env("NUM_JOBS", "2");
    command
}

struct Bench {
    code: Code,
    folder: Folder,
    cuda: Option<PathBuf>,
}

impl Bench {
    fn new(code: Code) -> Self {
        let folder = Folder::new();
        let bench = Self {
            code,
            folder,
            cuda: std::env::var_os("CUDA_PATH").map(PathBuf::from),
        };
        for name in ["kernels", "llvm/bin", "theirs"] {
            fs::create_dir_all(bench.folder.path(name)).expect("a folder");
        }
        symlink("/usr/lib/llvm-22/lib", bench.folder.path("llvm/lib")).expect("a link");
        symlink(
            format!("{LLVM}/ld.lld"),
            bench.folder.path("llvm/bin/ld.lld"),
        )
        .expect("a link");
        bench.folder.write("shim.c", SHIM);
        for name in ["clang", "llvm-link"] {
            let mut command = Command::new(format!("{LLVM}/clang"));
            command
                .args(["-O2", "-static"])
                .arg(format!("-DREAL=\"{LLVM}/{name}\""))
                .arg(format!(
                    "-DLOG=\"{}\"",
                    bench.folder.path("starts").display()
                ))
                .arg(bench.folder.path("shim.c"))
                .arg("-o")
                .arg(bench.folder.path("llvm/bin").join(name));
            run(&mut command);
        }
        let mut manifest = format!(
            "[package]\nname = \"bench\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"{}\"\n\
             sources = [\"kernels/k[0-9]*\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n",
            code.language()
        );
        let _ = writeln!(manifest, "targets = {:?}", code.targets());
        if code == Code::HipByFile {
            manifest += "rdc = false\n";
        }
        bench.folder.write("Cargo.toml", &manifest);
        bench.folder.write("kernels/k.h", COMMON);
        bench.folder.write("kernels/group.h", header(1));
        for index in 0..SOURCES {
            bench.folder.write(code.source(index), kernel(code, index));
        }
        bench
    }

    /// What was written less than a moment ago is not trusted by the cache.
    fn edit(&self, name: &str, text: &str) {
        std::thread::sleep(Duration::from_millis(50));
        self.folder.write(name, text);
        std::thread::sleep(Duration::from_millis(50));
    }

    fn ours(&self, name: &str, jobs: usize) {
        let _ = fs::remove_file(self.folder.path("starts"));
        let mut command = build_script(self.folder.root(), &self.folder.path("out"));
        command
            .env("NUM_JOBS", jobs.to_string())
            .env("OFFLOAD_COMPILER", self.folder.path("llvm/bin/clang"))
            .env("OFFLOAD_MISSING", "error");
        if let Some(cuda) = &self.cuda {
            command.env("CUDA_PATH", cuda);
        }
        let clock = Clock::start();
        run(command.stdout(Stdio::null()));
        let starts = fs::metadata(self.folder.path("starts")).map_or(0, |file| file.len());
        clock.print(name, &format!("{starts:4} programs of LLVM started"));
    }

    /// The same by one command for each source.
    fn theirs(&self) {
        let flags = ["-O3", "-c"];
        let options: Vec<String> = match self.code {
            Code::Hip | Code::HipByFile => {
                let archs = self
                    .code
                    .targets()
                    .map(|target| format!("--offload-arch={target}"));
                let fixed = [
                    "-x",
                    "hip",
                    "--offload-device-only",
                    "--gpu-bundle-output",
                    "-nogpulib",
                    "-nogpuinc",
                ];
                fixed.map(str::to_owned).into_iter().chain(archs).collect()
            }
            Code::Cuda => {
                let archs = self.code.targets().map(|target| {
                    format!(
                        "-gencode=arch={},code={target}",
                        target.replace("sm", "compute")
                    )
                });
                std::iter::once("-fatbin".to_owned()).chain(archs).collect()
            }
        };
        let (name, program) = match (self.code, &self.cuda) {
            (Code::Hip | Code::HipByFile, _) => ("clang", PathBuf::from(format!("{LLVM}/clang"))),
            (Code::Cuda, Some(cuda)) if cuda.join("bin/nvcc").is_file() => {
                ("nvcc", cuda.join("bin/nvcc"))
            }
            (Code::Cuda, _) => return println!("  no nvcc below CUDA_PATH"),
        };
        for jobs in [1, 2] {
            let left = Mutex::new(0..SOURCES);
            let clock = Clock::start();
            std::thread::scope(|scope| {
                for _ in 0..jobs {
                    scope.spawn(|| {
                        while let Some(index) = left.lock().ok().and_then(|mut left| left.next()) {
                            let mut command = Command::new(&program);
                            command.args(&options);
                            // What makes a fat binary links nothing anyway.
                            command.args(&flags[..if name == "nvcc" { 1 } else { 2 }]);
                            let output = self.folder.path("theirs").join(index.to_string());
                            command.arg(self.folder.path(self.code.source(index)));
                            run(command.arg("-o").arg(output).stderr(Stdio::null()));
                        }
                    });
                }
            });
            let name = format!("{name} for each file, cold, {}", jobs_text(jobs));
            clock.print(&name, &format!("{SOURCES:4} command lines"));
        }
    }
}

/// What HIP and CUDA have in their headers, and nvcc by itself.
const COMMON: &str = "#ifndef __CUDACC_VER_MAJOR__\n#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    #define __shared__ __attribute__((shared))\n#endif\n\
    struct Item { float weight, value[7]; };\n\
    static __device__ inline float mix(float a, float b) { return a * b + 0.5f * (a - b); }\n";

fn header(number: usize) -> String {
    format!("static __device__ inline float grouped(float x) {{ return x * {number}.25f; }}\n")
}

/// Loops, shared memory and calls: an unrolled stencil over items.
fn kernel(code: Code, index: usize) -> String {
    let barrier = match code {
        Code::Hip | Code::HipByFile => "__builtin_amdgcn_s_barrier()",
        Code::Cuda => "BARRIER",
    };
    let thread = match code {
        Code::Hip | Code::HipByFile => "__builtin_amdgcn_workitem_id_x()",
        Code::Cuda => "THREAD",
    };
    // nvcc's words and clang's.
    let words = match code {
        Code::Hip | Code::HipByFile => "",
        Code::Cuda => {
            "#ifdef __CUDACC_VER_MAJOR__\n#define THREAD threadIdx.x\n#define BARRIER __syncthreads()\n#else\n\
             #define THREAD __nvvm_read_ptx_sreg_tid_x()\n#define BARRIER __syncthreads()\n#endif\n"
        }
    };
    let (group, grouped) = match index < GROUP {
        true => ("#include \"group.h\"\n", "grouped(sum)"),
        false => ("", "sum"),
    };
    format!(
        "#include \"k.h\"\n{group}{words}\
         extern \"C\" __global__ void kernel{index}(Item *items, float *out, int count, float seed) {{\n  \
           __shared__ float tile[256];\n  \
           int thread = {thread};\n  \
           float sum = seed + {index};\n  \
           for (int i = thread; i < count; i += 256) {{\n    \
             Item item = items[i];\n    \
             tile[thread] = item.weight;\n    \
             {barrier};\n    \
             #pragma unroll\n    \
             for (int j = 0; j < 7; j++)\n      \
               sum = mix(sum, item.value[j] * tile[(thread + j * {step}) & 255]);\n    \
             {barrier};\n    \
             items[i].value[{index} % 7] = sum;\n  \
           }}\n  \
           out[thread] = {grouped};\n}}\n",
        step = index + 1
    )
}
