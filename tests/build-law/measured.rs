//! What other programs did when it was written down, they still do: commands in `docs/spec`, and the golden files.
//!
//! `UPDATE_GOLDENS=1` writes what they do now; review the diff as code.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UPDATE: &str = "UPDATE_GOLDENS";

// Other programs and the pages can break these, and no code of ours.

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn shows_what_the_bundler_does() {
    shows("bundler.md");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn shows_what_offload_binaries_are() {
    shows("offload-binary.md");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn shows_what_the_linker_wrapper_does() {
    shows("linker-wrapper.md");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn shows_what_the_hip_runtime_needs() {
    shows("hip-runtime.md");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn goldens_of_llvm_19_are_what_their_commands_write() {
    goldens("19.1.7", "llvm19", "clang-19", "19.1.7");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn goldens_of_llvm_22_are_what_their_commands_write() {
    goldens("22.1.8", "llvm22", "clang-22", "22.1.8");
}

#[test]
#[ignore = "`make test-all`: only the programs of others run"]
fn goldens_of_cuda_are_what_their_commands_write() {
    goldens("cuda-13.5", "cuda", "ptxas", "release 13.5");
}

/// Runs the console blocks of a page of `docs/spec`, in order and in one empty folder, and compares what they print.
///
/// # Panics
///
/// When a command prints something else.
fn shows(page: &str) {
    let tools = [
        ("llvm16", "clang-offload-bundler-16"),
        ("llvm19", "clang-linker-wrapper-19"),
        ("llvm22", "clang-linker-wrapper-22"),
    ];
    for (word, tool) in tools {
        if support::tool(word, &[tool]).is_none() {
            return;
        }
    }
    let path = root().join("docs/spec").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut shown = String::new();
    let mut commands = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        shown.push_str(line);
        shown.push('\n');
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|line| *line != "```") {
            let Some(first) = line.strip_prefix("$ ") else {
                continue; // Output: what is printed now takes its place.
            };
            shown.push_str(line);
            shown.push('\n');
            let mut command = first.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
                shown.push_str(more);
                shown.push('\n');
                command.push('\n');
                command.push_str(&more[2..]);
            }
            shown.push_str(&printed(&command, folder.path()));
            commands += 1;
        }
    }
    assert!(commands > 0, "{page}: no commands");
    println!("{page}: {commands} commands");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, shown).unwrap();
        return;
    }
    let differ = |(index, (shown, text)): (usize, (&str, &str))| {
        (shown != text).then(|| format!("{page}:{}: `{text}` is now `{shown}`", index + 1))
    };
    let both = shown.lines().zip(text.lines()).enumerate();
    let different = both.filter_map(differ).next();
    assert!(different.is_none(), "{}", different.unwrap());
    assert_eq!(shown.lines().count(), text.lines().count(), "{page}");
}

/// What a shell command prints to both streams, without blanks at the ends of lines, and its status unless that is 0.
fn printed(command: &str, folder: &Path) -> String {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("TMPDIR", "/tmp")
        .env_remove("CUDA_PATH")
        .env_remove("COMPRESSED_BUNDLE_FORMAT_VERSION")
        .env_remove("COMPILER_PATH")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut printed = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        printed.push_str(line.trim_end());
        printed.push('\n');
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => printed.push_str(&format!("[exit status: {code}]\n")),
        None => printed.push_str("[killed]\n"),
    }
    printed
}

/// Runs the commands of `tests/golden/README.md` for one folder, in an empty one, and compares each golden file.
///
/// A program of another release writes other bytes: then nothing is compared, and the test says so. `OFFLOAD_REQUIRE` cannot forbid it:
/// Debian updates its packages.
fn goldens(name: &str, word: &str, program: &str, version: &str) {
    let Some(path) = support::tool(word, &[program]) else {
        return;
    };
    let found = support::run(Command::new(path).arg("--version"));
    if !found.contains(version) {
        support::skip(version, &format!("{program} of this release"));
        return;
    }
    let golden = root().join("tests/golden");
    let page = fs::read_to_string(golden.join("README.md")).unwrap();
    let script = format!("set -e\n{}{}", block(&page, "Inputs"), block(&page, name));
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    let mut compared = 0;
    for entry in fs::read_dir(golden.join(name)).unwrap() {
        let entry = entry.unwrap();
        let written = fs::read(folder.path().join(entry.file_name())).unwrap();
        if written == fs::read(entry.path()).unwrap() {
            compared += 1;
        } else if std::env::var_os(UPDATE).is_some() {
            fs::write(entry.path(), written).unwrap();
        } else {
            panic!("{} is not what its commands write", entry.path().display());
        }
    }
    assert!(compared > 0 || std::env::var_os(UPDATE).is_some(), "{name}");
    println!("{name}: {compared} files");
}

/// The first shell block under a heading.
fn block<'a>(page: &'a str, heading: &str) -> &'a str {
    let section = page.split_once(&format!("\n## {heading}\n"));
    let (_, section) = section.unwrap_or_else(|| panic!("no heading `{heading}`"));
    let (_, block) = section.split_once("```sh\n").unwrap();
    block.split_once("```").unwrap().0
}

fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap().to_owned()
}
