//! The kit for machines with a GPU: `.ci/gpu-kit` builds it, `run.sh` in it runs its programs and prints a table.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A kit whose programs are shell scripts.
struct Kit(tempfile::TempDir);

impl Kit {
    /// `cuda` and `hip` are the last commands of `loads probe`.
    fn new(cuda: &str, hip: &str) -> Self {
        let kit = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(kit.0.path().join("bin")).unwrap();
        std::fs::copy(
            root().join("tests/gpu_kit/run.sh"),
            kit.0.path().join("run.sh"),
        )
        .unwrap();
        kit.program(
            "loads",
            &format!("case $* in 'probe cuda') {cuda} ;; 'probe hip') {hip} ;; esac"),
        );
        let tar = "tar -cf - -C bin . | gzip > openmp.tar.gz";
        let mut sh = Command::new("sh");
        assert!(
            sh.args(["-c", tar])
                .current_dir(kit.0.path())
                .status()
                .unwrap()
                .success()
        );
        for name in ["launches", "rust-kernels", "cuda-offload-link", "cuda-llvm"] {
            kit.program(name, "");
        }
        kit.program("compares", "[ $1 != speeds ] || echo 'speed of kernels'");
        // These fail unless they must use a GPU and find the kit's runtime.
        for name in [
            "openmp-saxpy",
            "openmp-offload-link",
            "openmp-llvm",
            "openmp-archive",
        ] {
            kit.program(
                name,
                "[ $OMP_TARGET_OFFLOAD = MANDATORY ] && [ -x ${LD_LIBRARY_PATH%%:*}/loads ] ",
            );
        }
        kit
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.0.path().join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// The exit status, and of each row its program, linker and result.
    fn run(&self) -> (i32, Vec<[String; 3]>, String) {
        rows_of(&run(self.0.path()))
    }
}

fn run(kit: &Path) -> Output {
    Command::new("sh")
        .arg(kit.join("run.sh"))
        .env("GPU_KIT_SECONDS", "20")
        .output()
        .unwrap()
}

fn rows_of(output: &Output) -> (i32, Vec<[String; 3]>, String) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let rows = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let [program, linked, _, result] = cells[..] else {
                return None;
            };
            Some([program, linked, result].map(str::to_owned))
        })
        .skip(2)
        .collect();
    (output.status.code().unwrap(), rows, text)
}

/// Number of rows.
const ROWS: usize = 22;

/// Programs that only NVIDIA's GPUs run.
fn is_cuda(program: &str) -> bool {
    program.starts_with("CUDA") || ["Rust kernels, PTX", "Rust kernels, panic"].contains(&program)
}

/// Programs that only AMD's GPUs run.
fn is_hip(program: &str, linked: &str) -> bool {
    program.starts_with("HIP") || (program, linked) == ("OpenMP program", "clang-linker-wrapper")
}

#[test]
fn runs_what_serves_the_gpu_and_skips_other_programs() {
    let kit = Kit::new(
        "echo sm_90 NVIDIA H100, driver 12040",
        "echo libamdhip64.so is missing; exit 1",
    );
    let (status, rows, text) = kit.run();
    assert_eq!((status, rows.len()), (0, ROWS), "{text}");
    assert!(
        text.starts_with("cuda: sm_90 NVIDIA H100, driver 12040\nhip: libamdhip64.so is missing\n"),
        "{text}"
    );
    assert!(text.ends_with("\n\nspeed of kernels\n"), "{text}");
    for [program, linked, result] in rows {
        let expected = if is_hip(&program, &linked) {
            "skipped: no AMD GPU"
        } else {
            "ok"
        };
        assert_eq!(result, expected, "{program}, {linked}");
    }

    // An older GPU uses PTX, and machine code for its own generation.
    let kit = Kit::new(
        "echo sm_86 NVIDIA A10, driver 12040",
        "echo 'hipInit: hipErrorNoDevice (100)'; exit 1",
    );
    let (status, rows, text) = kit.run();
    assert_eq!(status, 0, "{text}");
    for [program, linked, result] in rows {
        let expected = match &*program {
            "CUDA module" => "ok",
            _ if program.ends_with(", PTX") || program.ends_with(", panic") => "ok",
            _ if program.ends_with(", LZ4") || program.ends_with(", zstd") => "ok",
            _ if is_hip(&program, &linked) => "skipped: no AMD GPU",
            _ => "skipped: no GPU for these targets",
        };
        assert_eq!(result, expected, "{program}, {linked}");
    }

    let kit = Kit::new(
        "echo libcuda.so.1 is missing; exit 1",
        "echo gfx90a AMD Instinct MI210, driver 60100",
    );
    let (status, rows, text) = kit.run();
    assert_eq!(status, 0, "{text}");
    for [program, linked, result] in rows {
        let expected = if is_cuda(&program) {
            "skipped: no NVIDIA GPU"
        } else {
            "ok"
        };
        assert_eq!(result, expected, "{program}, {linked}");
    }
}

#[test]
fn reports_each_failure_and_runs_the_other_programs() {
    let kit = Kit::new(
        "echo sm_90 NVIDIA H100, driver 12040",
        "echo libamdhip64.so is missing; exit 1",
    );
    kit.program(
        "launches",
        "[ $1 != clang ] || { echo 'cudaErrorInsufficientDriver (35)'; exit 1; }",
    );
    kit.program("cuda-llvm", "echo wrong result; exit 1");
    kit.program("rust-kernels", "echo on the CPU:; echo saxpy: right");
    kit.program("cuda-offload-link", "sleep 60");
    kit.program(
        "openmp-saxpy",
        "printf 'first line\\n\\033[31mlast line\\n' >&2; kill -ABRT $$",
    );
    // What the loader prints, and its status.
    let loader = "error while loading shared libraries: libomp.so.5: cannot open shared object file: No such file";
    kit.program(
        "openmp-archive",
        &format!("echo \"$0: {loader}\" >&2; exit 127"),
    );
    let output = Command::new("sh")
        .arg(kit.0.path().join("run.sh"))
        .env("GPU_KIT_SECONDS", "1")
        .output()
        .unwrap();
    let (status, rows, text) = rows_of(&output);
    let bad: Vec<String> = rows
        .iter()
        .filter(|[_, _, result]| result != "ok" && result != "skipped: no AMD GPU")
        .map(|row| row.join(", "))
        .collect();
    assert_eq!(
        bad,
        [
            "CUDA host code, clang, offload-build, error: cudaErrorInsufficientDriver (35) (exit status 1)",
            "Rust kernels, offload-build, error: it found no GPU and ran on the CPU",
            "CUDA program, offload-link, error: no result after 1 seconds",
            "CUDA program, clang-linker-wrapper, wrong result",
            "OpenMP crate, offload-build, error: [31mlast line (exit status 134)",
            "OpenMP archive, offload-link, skipped: libomp.so.5 is missing",
        ]
    );
    assert_eq!((status, rows.len()), (1, ROWS), "{text}");
    // The table has one line for each; the whole output follows.
    assert!(
        text.contains("OpenMP crate, linked by offload-build:\nfirst line\n"),
        "{text}"
    );
}

#[test]
fn runs_all_programs_of_a_vendor_whose_driver_fails() {
    let probe = "echo 'cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)'; exit 1";
    let kit = Kit::new(probe, "echo libamdhip64.so is missing; exit 1");
    kit.program(
        "launches",
        "echo 'cudaErrorSystemDriverMismatch (803)'; exit 1",
    );
    let (status, rows, text) = kit.run();
    assert_eq!(status, 1, "{text}");
    let skipped = rows
        .iter()
        .filter(|[_, _, result]| result.starts_with("skipped"));
    assert!(
        skipped
            .clone()
            .all(|[program, linked, _]| is_hip(program, linked)),
        "{text}"
    );
    assert_eq!(skipped.count(), 3, "{text}");
}

/// What `make gpu-kit` does. On a machine with a GPU the programs run.
#[test]
#[ignore = "`make test-all`: builds the whole kit"]
fn builds_a_kit_that_runs_without_compilers() {
    let tools = [
        support::tool("cuda", &["nvcc"]),
        support::tool("cuda12", &["cuda-12/bin/ptxas"]),
        support::tool("llvm22", &["clang-linker-wrapper"]),
        support::tool("llvm19", &["clang-linker-wrapper"]),
        support::tool("omptarget19", &["libomptarget.so"]),
        support::tool("rustweb", &["lib.rs"]),
    ];
    let [Some(nvcc), Some(_), Some(_), Some(_), Some(_), Some(_)] = tools else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu-kit");
    let kit = folder.join("kit");
    let offload_link = env!("CARGO_BIN_EXE_offload-link");
    let mut script = Command::new(root().join(".ci/gpu-kit"));
    for (name, linker) in [("build", None), ("build/archives", Some(offload_link))] {
        support::dependencies::copy_into(&folder.join(name), &mut script, linker, &[]);
    }
    support::sysroots::share_in(&folder.join("build"));
    let offload_link = Path::new(offload_link);
    let output = script
        .args([&kit, &folder.join("build")])
        .env_remove("CARGO_TARGET_DIR")
        .arg(offload_link.parent().unwrap())
        .env("CUDA_PATH", nvcc.ancestors().nth(2).unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let mut command = Command::new(kit.join("run.sh"));
    let output = command
        .current_dir("/")
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let (status, rows, text) = rows_of(&output);
    assert_eq!((status, rows.len()), (0, ROWS), "{text}");
    let good = |result: &String| result == "ok" || result.starts_with("skipped: no ");
    assert!(rows.iter().all(|[_, _, result]| good(result)), "{text}");

    // A kernel that fails on the CPU panics.
    let compares = Command::new(kit.join("bin/compares")).arg("cpu").output();
    let compares = compares.unwrap();
    assert!(compares.status.success(), "{compares:?}");

    // With a driver that computes on the CPU, the programs that load modules tell right results from wrong ones.
    let driver = folder.join("driver");
    std::fs::create_dir_all(&driver).unwrap();
    let cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(driver.join("libcuda.so.1"))
        .arg(root().join("tests/gpu_kit/driver.c"))
        .status();
    assert!(cc.unwrap().success());
    command.env("LD_LIBRARY_PATH", &driver);
    for expected in ["ok", "wrong result"] {
        let (_, rows, text) = rows_of(&command.output().unwrap());
        let modules = rows
            .iter()
            .filter(|[program, ..]| program.starts_with("CUDA module"));
        let results: Vec<&str> = modules.map(|[.., result]| &**result).collect();
        assert_eq!(results, [expected; 2], "{text}");
        command.env("WRONG", "1");
    }
}
