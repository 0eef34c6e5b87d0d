//! Every tool and thin archives, whose members are files that somebody else chose.

#![cfg(target_os = "linux")]

use crate::linker::text;
use crate::support::folder::Folder;
use crate::support::shim_clang::{OBJECT, bundle};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const TOOLS: [(&str, &str); 4] = [
    ("offload-link", env!("CARGO_BIN_EXE_offload-link")),
    ("offload-bundler", env!("CARGO_BIN_EXE_offload-bundler")),
    ("offload-packager", env!("CARGO_BIN_EXE_offload-packager")),
    ("cargo-offload", env!("CARGO_BIN_EXE_cargo-offload")),
];

/// A command line for each way in which a tool reads an archive.
const READERS: [&[&str]; 6] = [
    &[
        "offload-link",
        "--linker-path=/bin/true",
        "--dry-run",
        "-o",
        "out",
        "--whole-archive",
        "k.a",
    ],
    &["offload-bundler", "-type=a", "-list", "-input=k.a"],
    &["offload-packager", "--list", "k.a"],
    &["cargo-offload", "offload", "inspect", "k.a"],
    &["cargo-offload", "offload", "archive", "list", "k.a"],
    &[
        "cargo-offload",
        "offload",
        "archive",
        "split",
        "--out",
        "parts",
        "k.a",
    ],
];

struct Place(Folder);

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Place {
    fn new() -> Self {
        Self(Folder::new())
    }

    /// Runs a tool, which may have 64 files open, and needs no minute.
    fn run(&self, line: &[&str]) -> Output {
        let (name, path) = TOOLS.iter().find(|(name, _)| *name == line[0]).unwrap();
        // The linker wrapper behaves by its name.
        let tool = match *name {
            "offload-link" => {
                let link = self.path("offload-ld");
                let _ = symlink(path, &link);
                link
            }
            _ => PathBuf::from(path),
        };
        self.command("timeout")
            .args(["60", "sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""])
            .arg(tool)
            .args(&line[1..])
            .env_remove("OFFLOAD_LINK_REPORT")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn error(&self, line: &[&str]) -> String {
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {said}");
        let code = " [OFF809]";
        let has_code = line[0] == "offload-link";
        assert_eq!(said.contains(code), has_code, "{line:?}: {said}");
        said.replace(code, "")
    }
}

/// Writes an archive as `ar rcT` does: only the header of each member.
fn thin(members: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = b"!<thin>\n".to_vec();
    for (name, size) in members {
        let name = format!("{name}/");
        let line = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        bytes.extend(line.into_bytes());
    }
    bytes
}

#[test]
fn reads_more_members_than_a_process_may_have_files() {
    for line in READERS {
        let folder = Place::new();
        let inspects = ["offload-packager", "inspect"];
        let content = match line.iter().any(|word| inspects.contains(word)) {
            true => OBJECT.to_vec(),
            false => bundle(),
        };
        let names: Vec<String> = (0..1100).map(|number| format!("m{number}.bc")).collect();
        for name in &names {
            folder.write(name, &content);
        }
        let size = content.len() as u64;
        let members: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), size)).collect();
        folder.write("k.a", thin(&members));
        if line[0] == "offload-link" {
            // Nothing here links 1,100 times the same text: that they are read is in the report.
            let args = [line, &["--report=json:report"]].concat();
            let _ = folder.run(&args);
            let report = fs::read_to_string(folder.path("report")).unwrap_or_default();
            assert!(
                report.contains("m1099.bc"),
                "{}",
                text(&folder.run(&args).stderr)
            );
            continue;
        }
        let output = folder.run(line);
        assert!(
            output.status.success(),
            "{line:?}: {}",
            text(&output.stderr)
        );
        let split = folder.path("parts");
        if split.exists() {
            let parts = fs::read_dir(split)
                .unwrap()
                .map(|part| part.unwrap().path());
            let parts: Vec<Vec<u8>> = parts.map(|part| fs::read(part).unwrap()).collect();
            assert!(!parts.is_empty(), "{line:?}");
            let count = |part: &Vec<u8>| part.windows(5).filter(|at| at == b".bc/ ").count();
            assert!(
                parts
                    .iter()
                    .all(|part| count(part) > 0 || part.len() > 100_000)
            );
        } else {
            let lines = text(&output.stdout).lines().count();
            assert!(lines >= 1100, "{line:?}: {lines} lines");
        }
    }
}

#[test]
fn refuses_members_that_are_no_regular_files() {
    for line in READERS {
        for member in ["pipe", "folder", "zero"] {
            let folder = Place::new();
            let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
            assert!(made.unwrap().success());
            fs::create_dir(folder.path("folder")).unwrap();
            symlink("/dev/zero", folder.path("zero")).unwrap();
            folder.write("k.a", thin(&[(member, 5)]));
            let error = folder.error(line);
            let place = match line[0] {
                "offload-link" => format!("k.a({member}): "),
                _ => format!("k.a: member `{member}`: "),
            };
            let expected = format!("error: {place}`{member}` is not a regular file\n");
            assert!(error.ends_with(&expected), "{line:?}: {error}");
        }
    }
}

#[test]
fn refuses_members_that_are_larger_than_the_archive_says() {
    for line in READERS {
        let folder = Place::new();
        folder.write("m.o", OBJECT);
        folder.write("k.a", thin(&[("m.o", 5)]));
        let size = OBJECT.len();
        let expected =
            format!("`m.o` has {size:#x} bytes, expected at most 0x5, the size in the archive\n");
        if line[0] == "offload-link" {
            // Its device code may be old; without any other the host linker decides.
            let said = text(&folder.run(line).stderr);
            assert!(
                said.contains("warning: k.a(m.o): device code in it"),
                "{said}"
            );
            assert!(said.contains(&expected), "{said}");
            folder.write("fat.o", OBJECT);
            let error = folder.error(&[line, &["fat.o"]].concat());
            assert!(
                error.contains(&format!("error: k.a(m.o): {expected}")),
                "{error}"
            );
            continue;
        }
        let error = folder.error(line);
        let expected = format!("error: k.a: member `m.o`: {expected}");
        assert!(error.contains(&expected), "{line:?}: {error}");
    }
}

#[test]
fn ends_with_archives_in_each_other() {
    for line in READERS {
        let folder = Place::new();
        folder.write("k.a", thin(&[("k.a", 1000)]));
        let follows = line.contains(&"inspect") || line[0] == "offload-packager";
        let output = folder.run(line);
        let (code, said) = (output.status.code(), text(&output.stderr));
        if follows {
            assert_eq!(code, Some(1), "{line:?}: {said}");
            assert!(
                said.contains("the thin archive `k.a` contains itself"),
                "{line:?}: {said}"
            );
        } else {
            // Linkers find nothing in archives in archives, and neither do these.
            assert!(matches!(code, Some(0 | 1)), "{line:?}: {said}");
        }

        // Ten to the power of twelve, if each is followed.
        for level in 0..12 {
            let next = format!("{}.a", level + 1);
            let name = if level == 0 {
                "k.a".to_owned()
            } else {
                format!("{level}.a")
            };
            folder.write(&name, thin(&vec![(next.as_str(), 1000); 10]));
        }
        folder.write("12.a", thin(&[]));
        let output = folder.run(line);
        let (code, said) = (output.status.code(), text(&output.stderr));
        if follows {
            assert_eq!(code, Some(1), "{line:?}: {said}");
            let expected = "more than 10000 members of nested thin archives";
            assert!(said.contains(expected), "{line:?}: {said}");
        } else {
            assert!(matches!(code, Some(0 | 1)), "{line:?}: {said}");
        }
        for level in 0..20 {
            let next = format!("{}.a", level + 1);
            let name = if level == 0 {
                "k.a".to_owned()
            } else {
                format!("{level}.a")
            };
            folder.write(&name, thin(&[(next.as_str(), 1000)]));
        }
        folder.write("20.a", thin(&[]));
        if follows {
            let error = folder.error(line);
            assert!(
                error.contains("thin archives nested more than 16 deep"),
                "{error}"
            );
        }
    }
}
