//! Registrations for hosts other than x86-64 and aarch64 ELF: the C form, compiled by clang.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "linker_support.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use offload_build::format::offload_entry::EntryTable as Layout;
use offload_build::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_build::registration::hip_symbols::HipSymbols;
use offload_build::registration::openmp::{Blob, BlobSection, OpenMp};
use offload_build::registration::sycl::{Sycl, SyclImage};
use offload_build::target::ImageKind;
use support::tool;

fn succeed(dir: &Path, command: &mut Command) -> Output {
    let output = command.current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// The sources, with the image that they name.
fn sources(dir: &Path) -> Vec<&'static str> {
    fs::write(dir.join("image"), b"image").unwrap();
    let table = EntryTable::StartStop {
        section: "llvm_offload_entries",
    };
    let files = [Path::new("image")];
    let openmp = OpenMp {
        images: &[Blob {
            bytes: b"image",
            image: 1..4,
        }],
        table,
        section: BlobSection::Finished,
        globals: &[],
    };
    fs::write(dir.join("openmp.c"), openmp.to_c(&files).unwrap()).unwrap();
    for (runtime, name) in [(Runtime::Hip, "hip.c"), (Runtime::Cuda, "cuda.c")] {
        let old = Layout::V19.section(runtime.kind()).unwrap();
        let tables = [
            HostTable {
                layout: Layout::V19,
                table: EntryTable::StartStop { section: old },
            },
            HostTable {
                layout: Layout::V21,
                table,
            },
        ];
        let fat_binary = FatBinary {
            runtime,
            bytes: b"image",
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        fs::write(dir.join(name), fat_binary.to_c(files[0]).unwrap()).unwrap();
    }
    let sycl = Sycl {
        images: &[SyclImage {
            bytes: b"image",
            kind: ImageKind::from_raw(0),
            triple: "spirv64",
            symbols: b"kernel",
            compile_options: "",
            link_options: "",
        }],
        section: BlobSection::Finished,
        globals: &[],
    };
    fs::write(dir.join("sycl.c"), sycl.to_c(&files).unwrap()).unwrap();
    vec!["openmp.c", "hip.c", "cuda.c", "sycl.c"]
}

fn compile(clang: &PathBuf, dir: &Path, triple: &str, source: &str) {
    let mut command = Command::new(clang);
    command
        .arg(format!("--target={triple}"))
        .args(["-c", "-O2", "-Wall", "-Wextra", "-Werror", source]);
    succeed(dir, &mut command);
}

#[test]
fn compiles_for_every_host_that_clang_knows() {
    let Some(clang) = tool("llvm22", "clang") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for source in sources(dir.path()) {
        for triple in [
            "x86_64-unknown-linux-musl",
            "x86_64-unknown-freebsd",
            "aarch64-unknown-linux-gnu",
            "i686-unknown-linux-gnu",
            "armv7-unknown-linux-gnueabihf",
            "riscv64-unknown-linux-gnu",
            "powerpc64le-unknown-linux-gnu",
            "s390x-unknown-linux-gnu",
            "loongarch64-unknown-linux-gnu",
            "x86_64-pc-windows-msvc",
            "x86_64-pc-windows-gnu",
            "aarch64-pc-windows-msvc",
            "x86_64-apple-macosx14",
            "arm64-apple-macosx14",
        ] {
            compile(&clang, dir.path(), triple, source);
        }
    }
}
