//! Bundles and their entry IDs, ours and LLVM's: the same bytes, and each reads the other's.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use std::fs;
use std::process::Command;

use offload_build::target::EntryId;
use support::{Random, run, tool};

/// Cases for each release, type and direction.
const CASES: usize = 120;

/// A target as users write it, right or nearly so.
fn target(random: &mut Random) -> String {
    const ARCHITECTURES: [&str; 6] = ["x86_64", "aarch64", "amdgcn", "nvptx64", "spirv64", "arm"];
    const WORDS: [&str; 18] = [
        "",
        "unknown",
        "none",
        "pc",
        "amd",
        "nvidia",
        "suse",
        "linux",
        "amdhsa",
        "amdhsa1.0",
        "cuda",
        "windows",
        "mingw32",
        "gnu",
        "musl",
        "androideabi21",
        "gnueabi",
        "foo",
    ];
    const TARGET_IDS: [&str; 8] = [
        "",
        "-",
        "-gfx906",
        "-gfx90a:xnack+:sramecc-",
        "-gfx9-4-generic:xnack-",
        "-sm_70",
        "-generic",
        "-gfx906:bogus+",
    ];
    let kind = random.pick(&["host", "hip", "hipv4", "openmp"]);
    let [vendor, os, environment] = [0; 3].map(|_| *random.pick(&WORDS));
    let arch = random.pick(&ARCHITECTURES);
    let target_id = random.pick(&TARGET_IDS);
    format!("{kind}-{arch}-{vendor}-{os}-{environment}{target_id}")
}

#[test]
fn writes_entry_ids_as_the_bundler_does() {
    let Some(bundler) = tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, "").unwrap();
    for _ in 0..2 * CASES {
        let target = target(&mut random);
        // Where the host is needed and not the target, it comes second.
        let host = target
            .starts_with("openmp")
            .then_some(",host-x86_64-unknown-linux-gnu-");
        let mut command = Command::new(&bundler);
        command
            .arg("-type=bc")
            .arg(format!("-targets={target}{}", host.unwrap_or_default()));
        for _ in 0..1 + usize::from(host.is_some()) {
            command.arg("-input").arg(&input);
        }
        run(command.arg("-output").arg(&output));
        let bytes = fs::read(&output).unwrap();
        let size = u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
        let theirs = std::str::from_utf8(&bytes[56..56 + size]).unwrap();
        let ours = EntryId::parse_target(&target).unwrap();
        assert_eq!(ours.to_string(), theirs, "{target}");
    }
    println!("llvm22: {} entry IDs, equal", 2 * CASES);
}
