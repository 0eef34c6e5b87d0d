//! The figures that we publish: our tools beside LLVM's and beside the bare linker, in one run.
//!
//! `make bench` runs it. Every row gives the median of several rounds, in which the candidates take turns, so that
//! what else the machine does meets them all; and the fastest round, which it disturbs least.

#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "measure.rs"]
mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use folder::Folder;
use measure::{Row, measure, print};

const OURS: &str = env!("CARGO_BIN_EXE_offload-link");
const OPENMP: &str = "/usr/bin/clang-19";

fn main() {
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = Folder::new();
    let folder = folder.root();
    device_links(folder);
    example(folder);
}

/// A program of 40 objects, each with an image for the CPU device.
fn device_links(folder: &Path) {
    let objects = objects(folder, 40);
    // What clang would add by itself if it were to call the wrapper.
    let libraries = ["-fopenmp", "-L/usr/lib/llvm-19/lib", "-lomptarget"];
    let link = link_line(OPENMP, &objects, &libraries);
    let old = "/usr/lib/llvm-19/bin/clang-linker-wrapper";
    let rows = [("clang-linker-wrapper 19", old), ("offload-link", OURS)];
    let rows = rows.map(|(name, tool)| Row::new(name, &wrapped(tool, &link)));
    print(
        "link of 40 objects with device code, clang 19",
        measure(&rows, 9),
    );
}

/// `cargo build` of examples/openmp-saxpy: everything, nothing, and one header touched.
fn example(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = folder.join("example");
    let build = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--offline"])
            .current_dir(root.join("examples/openmp-saxpy"));
        cargo.env("CARGO_TARGET_DIR", &target);
        seconds(&mut cargo)
    };
    let (cold, warm) = (build(), build());
    println!("\ncargo build of examples/openmp-saxpy, three targets");
    println!("  cold, with offload-build   {cold:8.2} s");
    println!("  nothing changed            {warm:8.2} s");
}

/// Objects of one function each, made once by the clang that the links use.
fn objects(folder: &Path, count: usize) -> Vec<PathBuf> {
    let make = |index: usize| {
        let (source, object) = (
            folder.join(format!("{index}.c")),
            folder.join(format!("{index}.o")),
        );
        let entry = match index {
            0 => "int main(void) { return 0; }\n",
            _ => "",
        };
        let text = format!(
            "int f{index}(int x) {{\n#pragma omp target map(tofrom : x)\n  x += {index};\n  return x;\n}}\n{entry}"
        );
        fs::write(&source, text).expect("a source");
        let mut command = Command::new(OPENMP);
        command.args([
            "-O1",
            "-fopenmp",
            "-fopenmp-targets=x86_64-pc-linux-gnu",
            "-c",
        ]);
        command.arg(&source).arg("-o").arg(&object);
        assert!(command.status().expect("clang").success());
        object
    };
    (0..count).map(make).collect()
}

/// The linker's command line, as clang would run it.
fn link_line(clang: &str, objects: &[PathBuf], flags: &[&str]) -> Vec<String> {
    let output = objects[0].with_file_name("program");
    let plan = Command::new(clang)
        .args(flags)
        .arg("-###")
        .args(objects)
        .arg("-o")
        .arg(output)
        .output()
        .expect("clang -###");
    let text = String::from_utf8_lossy(&plan.stderr).into_owned();
    let line = text.lines().last().expect("a link line");
    line.trim()
        .trim_matches('"')
        .split("\" \"")
        .map(str::to_owned)
        .collect()
}

/// That command line behind a linker wrapper, as clang calls one.
fn wrapped(tool: &str, link: &[String]) -> Vec<String> {
    let own = [
        "--host-triple=x86_64-pc-linux-gnu".to_owned(),
        format!("--linker-path={}", link[0]),
    ];
    [tool.to_owned()]
        .into_iter()
        .chain(own)
        .chain(link[1..].iter().cloned())
        .collect()
}

fn seconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    assert!(command.status().expect("cargo starts").success());
    start.elapsed().as_secs_f64()
}
