//! `cargo offload compress` and `decompress`, beside LLVM's bundler, and programs that print their registered bundles.

use crate::support::folder::Folder;
use std::num::NonZeroU64;
use std::process::{Command, Output};

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle::CompressedBundle;

use crate::support::{program, run, tool};

const IDS: [&str; 2] = [
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
];

/// Two bundles with wrappers, and a variable after them. Prints the magic and the version of each bundle.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdint.h>
#include <string.h>
__asm__(".section .hip_fatbin,\"a\"\n.p2align 12\n.globl one\none:\n.incbin \"plain\"\n"
        ".p2align 12\n.globl two\ntwo:\n.incbin \"plain\"\n.previous\n");
extern const char one[], two[];
struct wrapper { uint32_t magic, version; const char *unit; void *unused; };
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper wrappers[2] = {
  {0x48495046, 1, one, 0}, {0x48495046, 1, two, 0}};
static const char text[] = "after";
int main(void) {
  for (int i = 0; i < 2; i++) {
    uint16_t version;
    memcpy(&version, wrappers[i].unit + 4, 2);
    printf("%.4s %d %s\n", wrappers[i].unit, version, text);
  }
  return 0;
}
"#;

/// Images that compress well, of 300 KB each.
fn image(index: u8) -> Vec<u8> {
    (0..300_000_u32)
        .map(|at| (at / 100) as u8 ^ index)
        .collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    let images = [image(1), image(2)];
    let images: Vec<BundleImage<'_>> = std::iter::zip(IDS, &images)
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    let plain = bundle::to_bytes(&images, NonZeroU64::new(4096).unwrap()).unwrap();
    folder.write("plain", plain);
    folder
}

fn cargo_offload(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.arg("offload").args(arguments);
    command.current_dir(folder.root()).output().unwrap()
}

fn done(folder: &Folder, arguments: &[&str]) -> String {
    let output = cargo_offload(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn read(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.path(name)).unwrap()
}

/// Returns the version and method that are in a compressed bundle's header.
fn header(bytes: &[u8]) -> (u16, u16) {
    assert!(bytes.starts_with(b"CCOB"));
    CompressedBundle::parse(bytes, 0, bytes.len() as u64).unwrap();
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    (half(4), half(6))
}

#[test]
fn compresses_for_each_runtime_and_back() {
    let folder = folder();
    for (options, expected) in [
        (&[][..], (2, 1)),
        (&["--runtime=rocm-6.2"], (2, 0)),
        (&["--runtime=rocm-6.4"], (2, 1)),
        (&["--runtime=rocm-7.2"], (3, 1)),
        (
            &["--runtime=rocm-7.2", "--method=zlib", "--level=9"],
            (3, 0),
        ),
    ] {
        done(
            &folder,
            &[&["compress", "plain", "-o", "packed"], options].concat(),
        );
        assert_eq!(header(&read(&folder, "packed")), expected, "{options:?}");
        // From one compression to another, too.
        done(&folder, &["compress", "packed", "-o", "again"]);
        assert_eq!(header(&read(&folder, "again")), (2, 1));
        done(&folder, &["decompress", "packed", "-o", "back"]);
        assert!(
            read(&folder, "back") == read(&folder, "plain"),
            "{options:?}"
        );
    }
    let Some(bundler) = tool(
        "llvm19",
        &["clang-offload-bundler-19", "clang-offload-bundler"],
    ) else {
        return;
    };
    done(&folder, &["compress", "plain", "-o", "packed"]);
    run(Command::new(bundler)
        .args(["-type=o", "-unbundle", "-input=packed", "-output=image"])
        .arg(format!("-targets={}", IDS[1]))
        .current_dir(folder.root()));
    assert!(read(&folder, "image") == image(2));
}

#[test]
fn compresses_the_bundles_of_a_program() {
    let Some(cc) = program("cc") else { return };
    let folder = folder();
    folder.write("main.c", PROGRAM);
    for flags in [&["-pie"][..], &["-no-pie"]] {
        run(Command::new(&cc)
            .args(["main.c", "-o", "program"])
            .args(flags)
            .current_dir(folder.root()));
        let started = || run(&mut Command::new(folder.path("program")));
        assert_eq!(
            started(),
            "__CL 20033 after\n__CL 20033 after\n",
            "{flags:?}"
        );
        let before = read(&folder, "program").len();
        let text = done(&folder, &["compress", "--in-place", "program"]);
        assert!(text.ends_with(", 2 bundles\n"), "{text}");
        assert!(
            read(&folder, "program").len() + 1_000_000 < before,
            "{flags:?}"
        );
        assert_eq!(started(), "CCOB 2 after\nCCOB 2 after\n", "{flags:?}");
        // Nothing is left to do.
        let text = done(&folder, &["compress", "--in-place", "program"]);
        assert!(text.ends_with(", no bundle changes\n"), "{text}");
    }
}

#[test]
fn refuses_what_it_cannot_do() {
    let folder = folder();
    folder.write("text", "text");
    folder.write("elf", b"\x7fELF\x02\x01");
    for (arguments, status, expected) in [
        (&["compress", "plain"][..], 2, "--in-place"),
        (
            &["compress", "plain", "-o", "x", "--runtime=rocm"],
            2,
            "expected a release of ROCm such as `rocm-6.4`",
        ),
        (
            &["compress", "plain", "-o", "x", "--runtime=rocm-6.1"],
            1,
            "rocm-6.1 reads no compressed bundles",
        ),
        (
            &[
                "compress",
                "plain",
                "-o",
                "x",
                "--runtime=rocm-6.2",
                "--method=zstd",
            ],
            1,
            "rocm-6.2 does not read this method",
        ),
        (
            &["compress", "text", "-o", "x"],
            1,
            "text: expected an ELF file, an archive, a bundle,",
        ),
        (
            &["decompress", "elf", "-o", "x"],
            1,
            "decompressed bundles do not fit into a program",
        ),
        (
            &["compress", "plain", "text", "-o", "x"],
            1,
            "`--output` needs exactly one input file",
        ),
    ] {
        let output = cargo_offload(&folder, arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert!(!folder.path("x").exists(), "{arguments:?}");
    }
}
