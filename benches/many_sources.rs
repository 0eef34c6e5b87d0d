//! Many `.cu` files with host code and a shared header, built cold and after one edit: by our build script with nvcc and
//! with clang, by `nvcc -c` for each file, and by `cc::Build::cuda(true)`.
//!
//! `OFFLOAD_BENCH_SOURCES` sets the number of files (50). All candidates use two jobs and build for one target. Rows of `cc` are
//! `cargo build`s whose build script is compiled already. All others run without Cargo, and ours packs and archives, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::clock::{Clock, number};
use crate::folder::{Folder, run};
use crate::{LLVM, build_script};

const TARGET: &str = "sm_80";

pub(crate) fn measure() {
    let Some(cuda) = std::env::var_os("CUDA_PATH").map(PathBuf::from) else {
        return println!("\nno CUDA_PATH: many sources of CUDA are not measured");
    };
    let bench = ManySources {
        folder: Folder::new(),
        count: number("OFFLOAD_BENCH_SOURCES", 50).max(1),
        cuda,
    };
    bench.create();
    println!(
        "\n{} sources of cuda with host code and a shared header, target {TARGET}, 2 jobs",
        bench.count
    );
    for (name, compiler) in [
        ("nvcc", bench.cuda.join("bin/nvcc")),
        ("clang 22", PathBuf::from(format!("{LLVM}/clang"))),
    ] {
        if !compiler.is_file() {
            println!("  ours with {name}: not measured, {compiler:?} is missing");
            continue;
        }
        let _ = fs::remove_dir_all(bench.folder.path("out"));
        bench.ours(&format!("ours with {name}, cold"), &compiler);
        bench.edit();
        bench.ours(&format!("ours with {name}, a source edited"), &compiler);
    }
    bench.by_hand("nvcc -c for each file, cold", 0..bench.count);
    bench.edit();
    bench.by_hand("nvcc -c, a source edited", 0..1);
    bench.cc();
}

struct ManySources {
    folder: Folder,
    count: usize,
    cuda: PathBuf,
}

impl ManySources {
    fn source(&self, index: usize) -> PathBuf {
        self.folder.path(format!("kernels/k{index:02}.cu"))
    }

    fn create(&self) {
        fs::create_dir(self.folder.path("objects")).expect("a folder");
        self.folder.write("kernels/common.cuh", HEADER);
        for index in 0..self.count {
            fs::write(self.source(index), source(index, 1)).expect("a file");
        }
        let manifest = format!(
            "[package]\nname = \"bench\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
             [build-dependencies]\ncc = {{ version = \"1\", features = [\"parallel\"] }}\n\
             [package.metadata.offload]\nlanguage = \"cuda\"\nhost = true\nsources = [\"kernels/*.cu\"]\n\
             targets = [\"{TARGET}\"]\nopt-level = 3\n"
        );
        self.folder.write("Cargo.toml", manifest);
        self.folder.write("lib.rs", "");
        self.folder.write("build.rs", CC_SCRIPT);
    }

    /// Changes a constant of the first source.
    fn edit(&self) {
        let source_file = self.source(0);
        let text = fs::read_to_string(&source_file).expect("the source");
        let factor = text.matches("* 1.5f").count() + 1;
        // The cache trusts no file that was written less than a moment ago.
        std::thread::sleep(Duration::from_millis(50));
        fs::write(source_file, source(0, factor)).expect("a file");
        std::thread::sleep(Duration::from_millis(50));
    }

    fn ours(&self, name: &str, compiler: &Path) {
        let mut command = build_script(self.folder.root(), &self.folder.path("out"));
        command
            .env("CUDA_PATH", &self.cuda)
            .env("OFFLOAD_COMPILER", compiler)
            .env("OFFLOAD_MISSING", "error");
        let clock = Clock::start();
        run(command.stdout(Stdio::null()));
        clock.print(name, "");
    }

    /// Compiles each file by a command line of its own, two at a time.
    fn by_hand(&self, name: &str, sources: std::ops::Range<usize>) {
        let left = Mutex::new(sources);
        let clock = Clock::start();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(index) = left.lock().ok().and_then(|mut left| left.next()) {
                        let mut nvcc = Command::new(self.cuda.join("bin/nvcc"));
                        nvcc.args(["-c", "-O3", &gencode()]).arg(self.source(index));
                        let object = self.folder.path(format!("objects/{index}.o"));
                        run(nvcc.arg("-o").arg(object).stderr(Stdio::null()));
                    }
                });
            }
        });
        clock.print(name, "");
    }

    fn cc(&self) {
        let cargo = |arguments: &[&str], is_ready: bool| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .current_dir(self.folder.root())
                .args(arguments)
                .env_remove("CARGO_TARGET_DIR")
                .env("NVCC", self.cuda.join("bin/nvcc"))
                .env("BENCH_GENCODE", gencode())
                .env("CUDA_PATH", &self.cuda);
            if is_ready {
                cargo.env("BENCH_COMPILE", "1");
            }
            cargo
        };
        let fetched = cargo(&["fetch", "--quiet"], false).status();
        if !fetched.expect("cargo starts").success() {
            return println!("  cc: not measured, its crates cannot be fetched");
        }
        let build = ["build", "--release", "--quiet", "--offline", "--jobs=2"];
        run(&mut cargo(&build, false));
        let clock = Clock::start();
        run(cargo(&build, true).stderr(Stdio::null()));
        clock.print("cc::Build::cuda(true), cold", "with cargo build");
        self.edit();
        let clock = Clock::start();
        run(cargo(&build, true).stderr(Stdio::null()));
        clock.print("cc::Build::cuda(true), a source edited", "with cargo build");
    }
}

fn gencode() -> String {
    format!(
        "-gencode=arch={},code={TARGET}",
        TARGET.replace("sm", "compute")
    )
}

/// The build script of `cc`; without `BENCH_COMPILE` it only becomes an executable.
const CC_SCRIPT: &str = r#"
fn main() {
    println!("cargo::rerun-if-env-changed=BENCH_COMPILE");
    println!("cargo::rerun-if-changed=kernels");
    if std::env::var_os("BENCH_COMPILE").is_none() {
        return;
    }
    let files = std::fs::read_dir("kernels").unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "cu"));
    let mut build = cc::Build::new();
    build.cuda(true).cudart("none").opt_level(3);
    build.flag(std::env::var("BENCH_GENCODE").unwrap());
    build.files(files).compile("kernels");
}
"#;

const HEADER: &str = "#pragma once\n\
    struct Item { float weight, value[7]; };\n\
    static __device__ inline float mix(float a, float b) { return a * b + 0.5f * (a - b); }\n\
    template <int Step> __device__ float stencil(const Item &item, const float *tile, int thread, float sum) {\n  \
      #pragma unroll\n  \
      for (int j = 0; j < 7; j++) sum = mix(sum, item.value[j] * tile[(thread + j * Step) & 255]);\n  \
      return sum;\n}\n";

/// A kernel and the host function that launches it; `factor` changes the kernel.
fn source(index: usize, factor: usize) -> String {
    let factors = " * 1.5f".repeat(factor);
    format!(
        "#include \"common.cuh\"\n\
         __global__ void kernel{index}(Item *items, float *out, int count, float seed) {{\n  \
           __shared__ float tile[256];\n  \
           int thread = threadIdx.x;\n  \
           float sum = seed + {index}{factors};\n  \
           for (int i = thread; i < count; i += 256) {{\n    \
             tile[thread] = items[i].weight;\n    \
             __syncthreads();\n    \
             sum = stencil<{step}>(items[i], tile, thread, sum);\n    \
             __syncthreads();\n    \
             items[i].value[{index} % 7] = sum;\n  \
           }}\n  \
           out[thread] = sum;\n}}\n\
         extern \"C\" void launch{index}(Item *items, float *out, int count) {{\n  \
           kernel{index}<<<1, 256>>>(items, out, count, 1.0f);\n}}\n",
        step = index + 1
    )
}
