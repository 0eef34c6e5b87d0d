//! Triples, ours and LLVM's.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use std::process::Command;

use offload_build::target::Triple;
use support::{Random, tool};

#[test]
fn normalizes_as_clang_does() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    // No `elf`: after `windows` clang repeats it. No `gnu` after an unknown system: there clang, not
    // LLVM, takes it for that of Hurd.
    const WORDS: [&str; 27] = [
        "x86_64",
        "aarch64",
        "amdgcn",
        "nvptx64",
        "riscv64",
        "s390x",
        "pc",
        "amd",
        "nvidia",
        "suse",
        "unknown",
        "none",
        "linux",
        "amdhsa",
        "cuda",
        "freebsd",
        "windows",
        "win32",
        "mingw32",
        "cygwin",
        "gnu",
        "musl",
        "android21",
        "msvc",
        "foo",
        "",
        "gnueabihf",
    ];
    let (mut random, mut compared) = (Random::new(), 0);
    while compared < 200 {
        let count = 1 + random.below(5);
        let words: Vec<&str> = (0..count).map(|_| *random.pick(&WORDS)).collect();
        let Ok(ours) = Triple::parse(&words.join("-")) else {
            continue;
        };
        let mut command = Command::new(&clang);
        command
            .arg(format!("--target={}", ours.as_str()))
            .arg("-print-target-triple");
        // It prints the triple and then refuses the one that it cannot compile for.
        let theirs = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(!theirs.is_empty(), "{command:?}");
        if theirs.contains("-hurd-") {
            continue;
        }
        assert_eq!(ours.to_string(), theirs.trim(), "{}", ours.as_str());
        compared += 1;
    }
}
