//! Registrations for hosts other than x86-64 and aarch64 ELF: the C form, compiled by clang.

use crate::linker_support as support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::Embedded;
use offload_formats::names::ImageKind;
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use offload_formats::registration::openmp::{Blob, BlobSection, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{Global, NEEDS_OFFLOAD_LINK};
use support::tool;

/// What each registration of a deferred link has: a program may get several.
const MARKER: [Global<'static>; 1] = [Global::Marker {
    name: NEEDS_OFFLOAD_LINK,
}];

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
        entries: &[],
    };
    let files = [Path::new("image")];
    let openmp = OpenMp {
        images: &[Blob {
            bytes: Embedded::Bytes(b"image"),
            image: 1..4,
        }],
        table,
        section: BlobSection::Finished,
        globals: &MARKER,
    };
    fs::write(dir.join("openmp.c"), openmp.to_c(&files).unwrap()).unwrap();
    for (runtime, name) in [(Runtime::Hip, "hip.c"), (Runtime::Cuda, "cuda.c")] {
        let old = EntryLayout::V19.section(runtime.kind()).unwrap();
        let tables = [
            HostTable {
                layout: EntryLayout::V19,
                table: EntryTable::StartStop {
                    section: old,
                    entries: &[],
                },
            },
            HostTable {
                layout: EntryLayout::V21,
                table,
            },
        ];
        let fat_binary = FatBinary {
            runtime,
            bytes: Embedded::Bytes(b"image"),
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &MARKER,
        };
        fs::write(dir.join(name), fat_binary.to_c(files[0]).unwrap()).unwrap();
    }
    let sycl = Sycl {
        images: &[SyclImage {
            bytes: Embedded::Bytes(b"image"),
            kind: ImageKind::from_raw(0),
            triple: "spirv64",
            symbols: b"kernel",
            compile_options: b"",
            link_options: b"",
        }],
        section: BlobSection::Finished,
        globals: &MARKER,
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

/// The same, written by us.
fn objects_for_windows() -> [(&'static str, Vec<u8>); 3] {
    let table = EntryTable::StartStop {
        section: "llvm_offload_entries",
        entries: &[],
    };
    let fat_binary = |runtime| {
        let fat_binary = FatBinary {
            runtime,
            bytes: Embedded::Bytes(b"image"),
            tables: &[HostTable {
                layout: EntryLayout::V21,
                table,
            }],
            symbols: HipSymbols::default(),
            globals: &MARKER,
        };
        fat_binary.to_coff(WindowsAbi::Msvc).unwrap()
    };
    let openmp = OpenMp {
        images: &[Blob {
            bytes: Embedded::Bytes(b"image"),
            image: 1..4,
        }],
        table,
        section: BlobSection::Finished,
        globals: &MARKER,
    };
    [
        ("openmp.direct.o", openmp.to_coff(WindowsAbi::Msvc).unwrap()),
        ("hip.direct.o", fat_binary(Runtime::Hip)),
        ("cuda.direct.o", fat_binary(Runtime::Cuda)),
    ]
}

/// Functions that the registrations call, of a library that this machine has not.
const RUNTIMES: &str = "
int atexit(void (*f)(void)) { (void)f; return 0; }
int main(void) { return 0; }
#define STUB(name) void name(void) {}
STUB(__tgt_register_lib) STUB(__tgt_unregister_lib)
STUB(__hipRegisterFatBinary) STUB(__hipUnregisterFatBinary) STUB(__hipRegisterFunction)
STUB(__hipRegisterVar) STUB(__hipRegisterManagedVar) STUB(__hipRegisterSurface) STUB(__hipRegisterTexture)
STUB(__cudaRegisterFatBinary) STUB(__cudaUnregisterFatBinary) STUB(__cudaRegisterFunction)
STUB(__cudaRegisterVar) STUB(__cudaRegisterManagedVar) STUB(__cudaRegisterFatBinaryEnd)
";

/// An entry as clang writes it for Windows; that the section is right, another test knows.
const ENTRY: &str = "
struct entry { unsigned long long reserved; unsigned short version, kind; unsigned flags;
  const void *address; const char *name; unsigned long long size, data; void *auxiliary; };
__attribute__((section(\"llvm_offload_entries$OE\"), used))
const struct entry entry = { 0, 1, 4, 0, &entry, \"name\", 0, 0, 0 };
";

/// Links objects into a program of Windows and gives the sections of that: name, address and content.
fn link_for_windows(lld: &Path, dir: &Path, objects: &[&str]) -> Vec<(String, u64, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let mut link = Command::new(lld);
    link.args([
        "/nodefaultlib",
        "/entry:main",
        "/subsystem:console",
        "/opt:ref",
        "/out:a.exe",
    ])
    .args(["/include:entry", "runtimes.o", "entry.o"])
    .args(objects);
    succeed(dir, &mut link);
    let program = fs::read(dir.join("a.exe")).unwrap();
    let file = object::File::parse(&*program).unwrap();
    let sections = file.sections();
    let sections = sections.map(|section| {
        let name = section.name().unwrap().to_owned();
        (name, section.address(), section.data().unwrap().to_vec())
    });
    sections.collect()
}

/// The table of a program: entries, and zeros at both ends for each registration.
fn check_table(sections: &[(String, u64, Vec<u8>)], ends: usize, what: &str) {
    let mut tables = sections
        .iter()
        .filter(|(name, ..)| "llvm_offload_entries".starts_with(name));
    let (_, address, table) = tables
        .next()
        .unwrap_or_else(|| panic!("{what}: {sections:?}"));
    let zero = vec![0; 56 * ends];
    let (first, rest) = table.split_at(zero.len());
    assert_eq!(first, zero, "{what}");
    assert_eq!(
        rest[..16],
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0],
        "{what}"
    );
    let (_, last) = rest.split_at(56);
    assert!(
        last.len() >= zero.len() && last.iter().all(|byte| *byte == 0),
        "{what}"
    );
    if ends == 1 {
        // What the runtime walks: the entry alone.
        let walked = [address + 56, address + 112].map(u64::to_le_bytes).concat();
        let mut data = sections.iter().map(|(.., data)| data);
        let found = data.any(|data| data.windows(16).any(|bytes| bytes == walked));
        assert!(found, "{what}: nothing points at the table");
    }
}

#[test]
fn puts_the_entries_of_windows_between_its_ends() {
    let (Some(clang), Some(lld)) = (tool("llvm22", "clang"), tool("llvm22", "lld-link")) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("runtimes.c"), RUNTIMES).unwrap();
    fs::write(dir.join("entry.c"), ENTRY).unwrap();
    let triple = "x86_64-pc-windows-msvc";
    for source in ["runtimes.c", "entry.c"] {
        let mut command = Command::new(&clang);
        command
            .arg(format!("--target={triple}"))
            .args(["-c", "-w", "-fno-builtin", source]);
        succeed(dir, &mut command);
    }
    for (name, object) in objects_for_windows() {
        fs::write(dir.join(name), object).unwrap();
    }
    let mut objects = Vec::new();
    for source in sources(dir) {
        compile(&clang, dir, triple, source);
        if source == "sycl.c" {
            continue;
        }
        objects.push(source.replace(".c", ".o"));
        objects.push(source.replace(".c", ".direct.o"));
    }
    for source in &objects {
        let object = source;
        let sections = link_for_windows(&lld, dir, &[object]);
        check_table(&sections, 1, source);
        // The constructor, where the C runtime looks for it.
        let section = |wanted: &str| sections.iter().any(|(name, ..)| name == wanted);
        assert!(section(".CRT"), "{source}: {sections:?}");
    }
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    check_table(&link_for_windows(&lld, dir, &objects), 6, "all");
}

/// Sections with their flags, and symbols that others give.
fn structure(bytes: &[u8]) -> BTreeMap<String, String> {
    use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
    let file = object::File::parse(bytes).unwrap();
    let mut seen = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().unwrap();
        let SectionFlags::Coff { characteristics } = section.flags() else {
            panic!("{name}: no COFF")
        };
        // Those that an assembler always makes, and a table of jumps, which ours has not.
        let always = [".text", ".data", ".bss", ".rdata", ".drectve"].contains(&name);
        // HIP's fat binary is aligned as its runtime wants.
        let mask = if name == ".hip_fatbin" {
            !0x00f0_0000
        } else {
            !0
        };
        if !always {
            let flags = characteristics.0 & mask;
            seen.insert(format!("section {name}"), format!("{flags:#x}"));
        }
    }
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().unwrap();
        if !name.starts_with("__start_") && !name.starts_with("__stop_") {
            seen.insert(format!("undefined {name}"), String::new());
        }
    }
    seen
}

#[test]
fn has_the_sections_of_llvms_object_for_windows() {
    let (Some(clang), Some(wrapper)) = (
        tool("llvm22", "clang"),
        tool("llvm22", "clang-linker-wrapper"),
    ) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("main.c"), "int main(void) { return 0; }").unwrap();
    let mut compile = Command::new(clang);
    succeed(dir, compile.args(["-c", "main.c"]));
    // In the place of NVIDIA's fatbinary.
    fs::create_dir_all(dir.join("cuda/bin")).unwrap();
    let fatbinary = dir.join("cuda/bin/fatbinary");
    fs::write(
        &fatbinary,
        "#!/bin/sh\nprintf 'a fat binary, made long' > \"$3\"\n",
    )
    .unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&fatbinary, executable).unwrap();
    let nothing = support::found("true").expect("every system has `true`");
    for (name, ours) in objects_for_windows() {
        let kind = name.trim_end_matches(".direct.o");
        let mut link = Command::new(&wrapper);
        link.arg(format!("--linker-path={}", nothing.display()))
            .arg(format!("--cuda-path={}", dir.join("cuda").display()))
            .arg(format!("--override-image={kind}=main.o"))
            .args([
                "--host-triple=x86_64-pc-windows-msvc",
                "--save-temps",
                "-o",
                "l",
                "main.o",
            ]);
        succeed(dir, &mut link);
        let llvm = fs::read(dir.join(format!("l.{kind}.image.wrapper.o"))).unwrap();
        let (mut ours, mut expected) = (structure(&ours), structure(&llvm));
        if kind == "openmp" {
            // Finished images have a name of their own.
            let images = ours.remove("section .offloading.images");
            assert_eq!(images, expected.remove("section .llvm.offloading"));
        }
        assert_eq!(ours, expected, "{kind}");
    }
}
