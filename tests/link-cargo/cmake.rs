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
            "offload-link not found: install it (cargo install offload-link), or set OFFLOAD_LINK to its path",
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
