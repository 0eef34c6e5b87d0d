//! Small examples, built and run as their READMEs say. The output in a README is what the program prints.

use crate::shared_build::{cargo, cargo_offload, example, has_openmp};
use crate::support::{self, run, tool};

use std::fs;
use std::process::Command;

/// Expects that the example's README has the lines of an output, next to each other and indented. Sizes differ between releases of clang.
#[track_caller]
pub(crate) fn expect_in_readme(name: &str, output: &str) {
    let readme = fs::read_to_string(example(name).join("README.md")).unwrap();
    let lines = output.lines().map(|line| format!("    {line}\n"));
    let block = lines.collect::<String>();
    assert!(
        without_sizes(&readme).contains(&without_sizes(&block)),
        "{readme}\n{block}"
    );
}

/// Replaces numbers of bytes and lines.
fn without_sizes(text: &str) -> String {
    let words = text.split_inclusive(' ').collect::<Vec<_>>();
    let mut left = String::new();
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).copied().unwrap_or_default();
        let is_counted = next.starts_with("bytes") || next.starts_with("lines");
        let is_number = word.trim_end().bytes().all(|byte| byte.is_ascii_digit());
        left.push_str(if is_counted && is_number { "N " } else { word });
    }
    left
}

#[test]
fn runs_a_program_in_c() {
    if !has_openmp() {
        return;
    }
    for mut cargo in [cargo("c-program", "run"), cargo_offload("c-program", "run")] {
        let text = run(&mut cargo);
        assert_eq!(text, "2 4 6\n");
        expect_in_readme("c-program", &text);
    }
}

#[test]
fn runs_the_second_program_with_the_kernels_of_a_library() {
    if !has_openmp() {
        return;
    }
    let text = run(cargo("openmp-library", "run").args(["-p", "norm"]));
    expect_in_readme("openmp-library", &text);
}

#[test]
fn builds_fewer_targets_of_a_workspace_for_development() {
    if !has_openmp() {
        return;
    }
    let text = run(&mut cargo("workspace", "run"));
    expect_in_readme("workspace", &text);
    assert!(text.starts_with("mean for x86_64-pc-linux-gnu\n"), "{text}");
    let mut config = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    config.args(["offload", "config", "--release", "-p", "mean"]);
    let text = run(config
        .env("CARGO", env!("CARGO"))
        .current_dir(example("workspace")));
    let targets = " = [\"x86_64-pc-linux-gnu\", \"gfx90a\", \"gfx942\", \"gfx1100\"] ";
    assert!(text.contains(targets), "{text}");
    if support::tests_all() {
        let mut release = cargo("workspace", "run");
        let text = run(release.arg("--release"));
        expect_in_readme("workspace", &text);
        assert!(text.starts_with("mean for x86_64-pc-linux-gnu gfx90a gfx942 gfx1100\n"));
    }
}

#[test]
fn names_the_instances_of_a_cuda_template() {
    if tool("llvm22", &["clang-22"]).is_none() || tool("cuda", &["ptxas"]).is_none() {
        return;
    }
    let mut cargo = cargo("cuda-module", "run");
    // A machine that has NVIDIA's driver must say the same.
    let text = run(cargo.env("OFFLOAD_DEVICE_CUDA", "/nonexistent"));
    expect_in_readme("cuda-module", &text);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
#[ignore = "`make test-all`: compiles offload-formats for one program"]
fn lists_the_images_of_its_own_program() {
    if !has_openmp() {
        return;
    }
    let text = run(&mut cargo("list-images", "run"));
    expect_in_readme("list-images", &text);
}

#[test]
fn has_the_ptx_of_each_source_as_text() {
    if tool("llvm19", &["clang"]).is_none() {
        return;
    }
    let text = run(&mut cargo("ptx-strings", "run"));
    expect_in_readme("ptx-strings", &text);
    let built = run(cargo("ptx-strings", "build").arg("--message-format=json"));
    let mut messages = built
        .lines()
        .map(|line| line.parse::<serde_json::Value>().unwrap());
    let program = messages.find_map(|message| Some(message["executable"].as_str()?.to_owned()));
    let mut inspect = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    let inspect = inspect.args(["offload", "inspect", "--kernels", "--search-data"]);
    let found = run(inspect.arg(program.unwrap()));
    for line in [
        "2 device images",
        "section .rodata",
        "affine",
        "fill_f32",
        "fill_f64",
    ] {
        assert!(found.contains(line), "{line} in {found}");
    }
}

#[test]
fn starts_with_nvidias_runtime() {
    let (Some(_), Some(ptxas)) = (tool("llvm19", &["clang"]), tool("cuda", &["ptxas"])) else {
        return;
    };
    let mut cargo = cargo("cuda-launch", "run");
    let toolkit = ptxas.ancestors().nth(2).unwrap();
    let text = run(cargo.env("CUDA_PATH", toolkit));
    if !text.ends_with("\nall results right\n") {
        expect_in_readme("cuda-launch", &text);
    }
}

/// Each example is a row of the table: its folder as a link, what it shows, the command and what it needs.
#[test]
fn has_a_row_for_each_example() {
    let index = fs::read_to_string(example("README.md")).unwrap();
    let rows = index.lines().filter_map(|line| line.strip_prefix("| ["));
    let mut named: Vec<&str> = rows
        .map(|row| {
            assert_eq!(row.matches(" | ").count(), 3, "{row}");
            let (name, rest) = row.split_once(']').unwrap();
            assert!(rest.starts_with(&format!("({name}) |")), "{row}");
            name
        })
        .collect();
    named.sort_unstable();
    let folders = fs::read_dir(example("")).unwrap();
    let folders = folders.map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut folders: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    folders.sort_unstable();
    assert_eq!(named, folders);
    for name in folders {
        let readme = fs::read_to_string(example(&name).join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{readme}");
        assert!(readme.lines().count() <= 40, "{name}: more than a screen");
        assert!(readme.contains("print"), "{name}: no output");
    }
}
