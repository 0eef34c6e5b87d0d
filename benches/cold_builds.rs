//! Cold builds of build-dependencies: what a first build pays before its build script starts.
//!
//! Each candidate is the only build-dependency of an empty package, with default features. Cargo builds it from nothing
//! as it builds crates of a registry: without debug information, not incrementally. Candidates take turns. One has no
//! build-dependency: its build script calls the installed `cargo-offload`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::clock::{Clock, Spent, number};
use crate::crates;
use crate::folder::{Folder, run};

/// Candidates: the crate, its row in `[build-dependencies]` and the body of `main` in `build.rs`.
const OTHERS: [(&str, &str, &str); 5] = [
    (
        "no build-dependency",
        "",
        "std::process::Command::new(\"cargo-offload\").arg(\"build-script\").status().unwrap();",
    ),
    ("cc", "cc = \"1\"", "cc::Build::new().compile(\"x\");"),
    ("cmake", "cmake = \"0.1\"", "cmake::build(\"x\");"),
    (
        "cxx-build",
        "cxx-build = \"1\"",
        "cxx_build::bridge(\"x\").compile(\"x\");",
    ),
    (
        "bindgen",
        "bindgen = \"0.72\"",
        "bindgen::Builder::default().generate().unwrap();",
    ),
];

pub(crate) fn measure() {
    let folder = Folder::new();
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut candidates = vec![(
        "offload-build",
        format!("offload-build.path = {library:?}"),
        "offload_build::Build::from_manifest().unwrap().run().unwrap();",
    )];
    candidates.extend(OTHERS.map(|(name, row, body)| (name, row.to_owned(), body)));
    // Versions of the lock file; Cargo adds those of the other candidates.
    let lock = library.join("../Cargo.lock");
    candidates.retain(|(name, row, body)| {
        let package = folder.path(name);
        package_with(&package, row, body);
        if *name == "offload-build" {
            fs::copy(&lock, package.join("Cargo.lock")).expect("the lock file");
        }
        let fetched = cargo(&package).arg("fetch").arg("--quiet").status();
        let is_there = fetched.expect("cargo starts").success();
        if !is_there {
            println!("  {name}: not measured, its crates cannot be fetched");
        }
        is_there
    });
    println!(
        "\ncold build of a build script and its build-dependency; offload-build is {} crates",
        crates::compiled().len()
    );
    let rounds = number("OFFLOAD_BENCH_ROUNDS", 3).max(1);
    for jobs in [1, 2] {
        let mut times: Vec<Vec<Spent>> = vec![Vec::new(); candidates.len()];
        for _ in 0..rounds {
            for ((name, ..), times) in candidates.iter().zip(&mut times) {
                times.push(build(&folder.path(name), jobs));
            }
        }
        for ((name, ..), times) in candidates.iter().zip(&mut times) {
            print(name, jobs, times);
        }
    }
}

fn package_with(package: &Path, row: &str, body: &str) {
    fs::create_dir_all(package).expect("a folder");
    let put = |name: &str, text: &str| fs::write(package.join(name), text).expect("a file");
    put(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"user\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
             [build-dependencies]\n{row}\n"
        ),
    );
    put("lib.rs", "");
    // The script is linked with what it calls, and calls nothing.
    put(
        "build.rs",
        &format!(
            "fn main() {{\n    if std::env::var_os(\"NEVER\").is_some() {{\n        {body}\n    }}\n}}\n"
        ),
    );
}

fn cargo(package: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(package)
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("CARGO_TARGET_DIR");
    cargo
}

fn build(package: &Path, jobs: usize) -> Spent {
    let _ = fs::remove_dir_all(package.join("target"));
    let clock = Clock::start();
    run(cargo(package)
        .args(["build", "--quiet", "--offline"])
        .arg(format!("--jobs={jobs}")));
    clock.stop()
}

/// Prints the median and the fastest round.
fn print(name: &str, jobs: usize, times: &mut [Spent]) {
    times.sort_unstable_by_key(|spent| spent.time);
    let median = times[times.len() / 2];
    let cores = if jobs == 1 { "1 core" } else { "2 cores" };
    median.print(
        &format!("{name}, {cores}"),
        &format!("fastest {:7.2} s", times[0].time.as_secs_f64()),
    );
}
