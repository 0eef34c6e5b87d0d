//! Libraries of device code in projects of CMake and in builds by pkg-config.

use crate::shared_build::{cargo_offload, example, has_openmp};
use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{run, tool};

/// Requests of a program for version 0.1.0 of a library, and whether it fits.
const REQUESTS: [(&str, bool); 9] = [
    ("0.1.0 EXACT", true),
    ("0.1", true),
    ("0", true),
    ("0.1.1", false),
    ("0.2", false),
    ("0.0", false),
    ("1", false),
    ("0.0.5...0.1", true),
    ("0.0.5...<0.1", false),
];

/// An installed library, in a folder to which it was moved.
struct Place {
    dir: tempfile::TempDir,
    cmake: PathBuf,
}

impl Place {
    fn new() -> Option<Self> {
        let cmake = tool("cmake", &["cmake"])?;
        has_openmp().then_some(())?;
        let dir = tempfile::tempdir().unwrap();
        let mut build = cargo_offload("cmake-library", "build");
        run(build.arg("--out").arg(dir.path().join("first/lib")));
        // A space is the only character that pkg-config quotes.
        fs::rename(dir.path().join("first"), dir.path().join("in stalled")).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        let place = Self { dir, cmake };
        symlink(
            env!("CARGO_BIN_EXE_offload-link"),
            place.path("bin/offload-link"),
        )
        .unwrap();
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program that finds offload-link.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        command
            .current_dir(self.dir.path())
            .env("PATH", std::env::join_paths(folders).unwrap());
        command
    }

    fn configure(&self, source: &Path) -> Command {
        let build = self.path("build");
        let _ = fs::remove_dir_all(&build);
        let mut command = self.command(&self.cmake);
        let prefix = self.path("in stalled");
        command
            .args([Path::new("-S"), source, Path::new("-B"), &build])
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        command
    }

    /// Runs a program, whose kernel must run on a device.
    fn expect_results(&self, program: &str) {
        let mut program = self.command(self.path(program));
        let text = run(program.env("OMP_TARGET_OFFLOAD", "MANDATORY"));
        assert_eq!(text, "on a device: 2 4 6\n");
    }
}

#[test]
fn links_a_library_of_kernels_by_find_package() {
    let Some(place) = Place::new() else {
        return;
    };
    let source = example("cmake-library").join("program");
    for compiler in ["g++", "clang++-19"] {
        let mut configure = place.configure(&source);
        run(configure.arg(format!("-DCMAKE_CXX_COMPILER={compiler}")));
        run(place.command(&place.cmake).args(["--build", "build"]));
        place.expect_results("build/program");
    }
    for (option, expected) in [
        (
            "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
            "the library is for x86_64-unknown-linux-gnu, this build is for aarch64",
        ),
        (
            "-DOFFLOAD_LINK=OFFLOAD_LINK-NOTFOUND",
            "offload-link not found: install it (cargo install cargo-offload), or set OFFLOAD_LINK to its path",
        ),
    ] {
        fs::remove_file(place.path("bin/offload-link")).unwrap();
        let mut configure = place.configure(&source);
        configure.args([
            "-DCMAKE_SYSTEM_NAME=Linux",
            "-DCMAKE_SYSTEM_PROCESSOR=x86_64",
        ]);
        configure.env("PATH", "/usr/bin:/bin");
        let output = configure.arg(option).output().unwrap();
        symlink(
            env!("CARGO_BIN_EXE_offload-link"),
            place.path("bin/offload-link"),
        )
        .unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        // CMake breaks lines.
        let text: Vec<&str> = text.split_whitespace().collect();
        assert!(text.join(" ").contains(expected), "{text:?}");
    }
}

#[test]
fn fits_versions_as_cargo_does() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut lists = "cmake_minimum_required(VERSION 3.19)\nproject(versions C)\n".to_owned();
    for (request, _) in REQUESTS {
        lists += &format!(
            "unset(vectors_DIR CACHE)\nfind_package(vectors {request} QUIET)\n\
             message(STATUS \"{request}: ${{vectors_FOUND}}\")\n"
        );
    }
    fs::create_dir(place.path("versions")).unwrap();
    fs::write(place.path("versions/CMakeLists.txt"), lists).unwrap();
    let text = run(&mut place.configure(&place.path("versions")));
    for (request, fits) in REQUESTS {
        let line = format!("-- {request}: {}\n", i32::from(fits));
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn links_a_library_of_kernels_by_pkg_config() {
    let Some(place) = Place::new() else {
        return;
    };
    let Some(pkg_config) = tool("cmake", &["pkg-config"]) else {
        return;
    };
    let question = |options: &str| {
        let folder = place.path("in stalled/lib/pkgconfig");
        let mut command = place.command(&pkg_config);
        command.env("PKG_CONFIG_PATH", folder).arg("vectors");
        run(command.args(options.split(' '))).trim().to_owned()
    };
    assert_eq!(question("--modversion"), "0.1.0");
    assert_eq!(question("--variable=linker"), "offload-link");
    let main = example("cmake-library").join("program/main.cpp");
    let script = format!(
        "c++ {} -c {} -o main.o && {} -o program main.o {}",
        question("--cflags"),
        main.display(),
        question("--variable=linker"),
        question("--libs")
    );
    run(place.command("sh").args(["-c", &script]));
    place.expect_results("program");
}

/// A folder of a build, and `offload-link` in `PATH`.
struct Wrapper {
    dir: tempfile::TempDir,
    cmake: PathBuf,
}

impl Wrapper {
    fn new() -> Option<Self> {
        let cmake = tool("cmake", &["cmake"])?;
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("offload-link");
        symlink(env!("CARGO_BIN_EXE_offload-link"), link).unwrap();
        Some(Self { dir, cmake })
    }

    fn cmake(&self) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        let own = self.dir.path().to_owned();
        let folders = std::iter::once(own).chain(std::env::split_paths(&path));
        let mut command = Command::new(&self.cmake);
        command
            .current_dir(self.dir.path())
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env_remove("OFFLOAD_LINK_ACTIVE");
        command
    }

    /// Configures and builds an example; returns what its program prints, and the report of the link.
    fn run(&self, name: &str, options: &[String]) -> (String, String) {
        let mut configure = self.cmake();
        configure.arg("-S").arg(example(name)).args(["-B", "build"]);
        run(configure.args(options));
        let report = self.dir.path().join("report");
        let mut build = self.cmake();
        build.env("OFFLOAD_LINK_REPORT", format!("text:{}", report.display()));
        run(build.args(["--build", "build"]));
        let mut program = Command::new(self.dir.path().join("build").join(name));
        let text = run(program.env("OMP_TARGET_OFFLOAD", "MANDATORY"));
        (text, fs::read_to_string(report).unwrap())
    }
}

#[test]
fn links_openmp_kernels_of_a_cmake_project() {
    let (Some(wrapper), true) = (Wrapper::new(), has_openmp()) else {
        return;
    };
    let options = ["-DCMAKE_C_COMPILER=clang-19".to_owned()];
    let (text, report) = wrapper.run("cmake-openmp", &options);
    assert_eq!(text, "on a device: 2 4 6\n");
    assert_eq!(
        report.matches(": linked for x86_64-pc-linux-gnu\n").count(),
        2,
        "{report}"
    );
}

/// Stands for ROCm's CMake package, which needs more than Debian has.
const HIP_LANG: &str = r#"
add_library(hip-lang::device INTERFACE IMPORTED)
set_target_properties(hip-lang::device PROPERTIES
  INTERFACE_LINK_LIBRARIES "@RUNTIME@" INTERFACE_LINK_OPTIONS "$<$<LINK_LANGUAGE:HIP>:--hip-link>")
set(_CMAKE_HIP_DEVICE_RUNTIME_TARGET hip-lang::device)
"#;

/// Functions that ROCm's headers call for `threadIdx`, `blockIdx` and `blockDim`.
const INDICES: &str = "
#define OF(name, x) unsigned long __ockl_get_##name(unsigned i) { return i == 0 ? x##_x() : i == 1 ? x##_y() : x##_z(); }
OF(local_id, __builtin_amdgcn_workitem_id)
OF(group_id, __builtin_amdgcn_workgroup_id)
unsigned long __ockl_get_local_size(unsigned i) { return 256; }
";

#[test]
fn links_the_hip_language_of_cmake() {
    let tools = [
        tool("llvm19", &["clang"]),
        tool("amdhip", &["libamdhip64.so"]),
    ];
    let (Some(wrapper), [Some(_), Some(runtime)]) = (Wrapper::new(), tools) else {
        return;
    };
    let rocm = wrapper.dir.path().join("rocm");
    let package = rocm.join("lib/cmake/hip-lang");
    fs::create_dir_all(&package).unwrap();
    let text = HIP_LANG.replace("@RUNTIME@", &runtime.display().to_string());
    fs::write(package.join("hip-lang-config.cmake"), text).unwrap();
    let device_libraries = rocm.join("bitcode");
    support::device_libraries::put(&device_libraries, INDICES);
    let options = [
        "-DCMAKE_HIP_COMPILER=/usr/bin/clang++-19".to_owned(),
        "-DCMAKE_HIP_ARCHITECTURES=gfx90a;gfx1100".to_owned(),
        format!("-DCMAKE_HIP_COMPILER_ROCM_ROOT={}", rocm.display()),
        format!(
            "-DCMAKE_HIP_FLAGS=--rocm-path=/usr --rocm-device-lib-path={}",
            device_libraries.display()
        ),
    ];
    let (text, report) = wrapper.run("cmake-hip", &options);
    let ends = ["no GPU: hipErrorNoDevice\n", "all results right\n"];
    assert!(ends.contains(&&*text), "{text}");
    for processor in ["gfx90a", "gfx1100"] {
        let line = format!(": linked for amdgcn-amd-amdhsa {processor}\n");
        assert_eq!(report.matches(&line).count(), 2, "{report}");
    }
}
