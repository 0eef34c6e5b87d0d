//! `cargo offload prune`: programs that print their own registered images, before and after.

use crate::commands::{cargo_offload, done};
use crate::support::folder::Folder;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Output};

use offload_formats::format::bundle::{self, Bundle, BundleImage};
use offload_formats::format::compressed_bundle;
use serde_json::Value;

use crate::support::{program, run, tool};

/// Two units in one section, each with a wrapper, and something behind them that has to stay where it is. The program
/// prints each image's ID, the remainder of its address, its size and a checksum; of a compressed unit, the unit's.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <stdint.h>
__asm__(".section .hip_fatbin,\"a\"\n.p2align 12\n.globl unit_one\nunit_one:\n.incbin \"one\"\n"
        ".p2align 12\n.globl unit_two\nunit_two:\n.incbin \"two\"\n.previous\n");
extern const char unit_one[], unit_two[];
struct wrapper { uint32_t magic, version; const char *unit; void *unused; };
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper wrappers[2] = {
  {0x48495046, 1, unit_one, 0}, {0x48495046, 1, unit_two, 0}};
static uint64_t word(const char *at) { uint64_t value; memcpy(&value, at, 8); return value; }
static unsigned sum(const char *at, uint64_t size) {
  unsigned hash = 5381;
  for (uint64_t i = 0; i < size; i++) hash = hash * 33 + (unsigned char)at[i];
  return hash;
}
int images(void) {
  for (int i = 0; i < 2; i++) {
    const char *unit = wrappers[i].unit, *head = unit + 32;
    if (memcmp(unit, "CCOB", 4) == 0) {
      printf("%d packed %u\n", i, (unsigned)((uintptr_t)unit % 4096));
      continue;
    }
    for (uint64_t n = word(unit + 24); n > 0; n--) {
      uint64_t start = word(head), size = word(head + 8), length = word(head + 16);
      printf("%d %.*s %u %u %u\n", i, (int)length, head + 24, (unsigned)((uintptr_t)(unit + start) % 4096),
             (unsigned)size, sum(unit + start, size));
      head += 24 + length;
    }
  }
  return 0;
}
"#;
const MAIN: &str = "int images(void); int main(void) { return images(); }\n";
const IDS: [&str; 4] = [
    "host-x86_64-unknown-linux-gnu-",
    "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
    "hipv4-amdgcn-amd-amdhsa--gfx1201",
];

/// A bundle with images of about 300 KB.
pub(crate) fn unit(seed: u64) -> Vec<u8> {
    let images: Vec<Vec<u8>> = (0..4)
        .map(|index| match index {
            0 => Vec::new(),
            _ => {
                let mut state = seed * 31 + index;
                let bytes = (0..300_000 + 1000 * index).map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 56) as u8
                });
                bytes.collect()
            }
        })
        .collect();
    let images: Vec<BundleImage<'_>> = std::iter::zip(IDS, &images)
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    bundle::to_bytes(&images, NonZeroU64::new(4096).unwrap()).unwrap()
}

pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8]| folder.write(name, bytes);
    write("one", &unit(1));
    write("two", &unit(2));
    write("images.c", PROGRAM.as_bytes());
    write("main.c", MAIN.as_bytes());
    folder
}

pub(crate) fn prune(folder: &Folder, arguments: &[&str]) -> Output {
    cargo_offload(folder, &[&["prune"], arguments].concat())
}

pub(crate) fn pruned(folder: &Folder, arguments: &[&str]) -> String {
    done(folder, &[&["prune"], arguments].concat())
}

pub(crate) fn cc(folder: &Folder, compiler: &Path, arguments: &[&str]) {
    run(Command::new(compiler)
        .args(arguments)
        .current_dir(folder.root()));
}

pub(crate) fn printed(folder: &Folder, command: &[&str]) -> String {
    let mut command_line = Command::new(command[0]);
    command_line.args(&command[1..]).current_dir(folder.root());
    run(&mut command_line)
}

pub(crate) fn size(folder: &Folder, name: &str) -> u64 {
    folder.path(name).metadata().unwrap().len()
}

/// Returns the lines without those for other GPUs than `kept`.
pub(crate) fn without_others(lines: &str, kept: &[&str]) -> String {
    let is_kept =
        |line: &&str| line.contains(" host-") || kept.iter().any(|name| line.contains(name));
    lines
        .lines()
        .filter(is_kept)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Checks a linked program or library: it prints the kept images as before, also after `strip`.
pub(crate) fn check(folder: &Folder, file: &str, command: &[&str], strip: &str, what: &str) {
    let before = printed(folder, command);
    assert_eq!(before.lines().count(), 8, "{what}: {before}");
    let expected = without_others(&before, &["gfx1100"]);
    assert_eq!(expected.lines().count(), 4, "{what}: {before}");
    let old = size(folder, file);
    pruned(folder, &["--keep=gfx1100", "--in-place", file]);
    let new = size(folder, file);
    assert_eq!(printed(folder, command), expected, "{what}");
    // Four images of about 300 KB go, but for parts of pages.
    assert!(new + 4 * 300_000 - 3 * 65_536 < old, "{what}: {old} {new}");
    // A second time changes nothing.
    let bytes = std::fs::read(folder.path(file)).unwrap();
    pruned(folder, &["--keep=gfx1100", "--in-place", file]);
    assert!(bytes == std::fs::read(folder.path(file)).unwrap(), "{what}");
    run(Command::new(strip).arg(file).current_dir(folder.root()));
    assert_eq!(printed(folder, command), expected, "{what}, stripped");
}

#[test]
fn prunes_programs_of_every_kind_and_linker() {
    let folder = folder();
    let cc_path = Path::new("cc");
    let mut linkers = vec!["-fuse-ld=bfd"];
    let lld = tool("llvm22", &["ld.lld-22", "ld.lld"]);
    let link = lld.as_ref().map(|lld| {
        let parent = lld.parent().unwrap().display();
        format!("-B{parent}")
    });
    if link.is_some() {
        linkers.push("-fuse-ld=lld");
    }
    let prefix = link.as_deref().unwrap_or("-pipe");
    let kinds: [(&str, &[&str]); 7] = [
        ("pie", &["-pie"]),
        ("not pie", &["-no-pie"]),
        ("static", &["-static"]),
        ("static pie", &["-static-pie"]),
        (
            "packed relocations",
            &["-pie", "-Wl,-z,pack-relative-relocs"],
        ),
        ("one segment", &["-pie", "-Wl,-z,noseparate-code"]),
        ("without relro", &["-pie", "-Wl,-z,norelro"]),
    ];
    for linker in linkers {
        for (kind, flags) in kinds {
            let what = format!("{linker} {kind}");
            let arguments = [
                &["-O1", "-fPIE", prefix, linker],
                flags,
                &["main.c", "images.c", "-o", "k"],
            ]
            .concat();
            cc(&folder, cc_path, &arguments);
            check(&folder, "k", &["./k"], "strip", &what);
        }
        let library = [
            prefix, linker, "-shared", "-fPIC", "images.c", "-o", "libk.so",
        ];
        cc(&folder, cc_path, &library);
        cc(
            &folder,
            cc_path,
            &["main.c", "-L.", "-lk", "-Wl,-rpath,.", "-o", "k"],
        );
        check(
            &folder,
            "libk.so",
            &["./k"],
            "strip",
            &format!("{linker} shared"),
        );
    }
}

/// Returns the value and the size of a symbol.
fn symbol(folder: &Folder, file: &str, name: &str) -> (u64, u64) {
    let lines = printed(folder, &["readelf", "-sW", file]);
    let line = lines
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")));
    let fields: Vec<&str> = line.unwrap().split_whitespace().collect();
    let value = u64::from_str_radix(fields[1], 16).unwrap();
    // Large sizes are hexadecimal.
    let size = match fields[2].strip_prefix("0x") {
        Some(size) => u64::from_str_radix(size, 16),
        None => fields[2].parse(),
    };
    (value, size.unwrap())
}

/// As `offload-build` names images: the program does not use the symbols.
#[test]
fn moves_symbols_of_images() {
    let folder = folder();
    let two = unit(2);
    let bundle = Bundle::parse(&*two, 0, two.len() as u64).unwrap();
    let place = |index: usize| bundle.entries[index].image.clone();
    let names = [1, 2].map(|index| format!("app_kernels_0123abcd_image_{index}"));
    let mut symbols = String::new();
    for (name, index) in names.iter().zip([1, 2]) {
        let (start, size) = (place(index).start, place(index).end - place(index).start);
        symbols += &format!(
            "__asm__(\".globl {name}\\n.hidden {name}\\n.set {name}, unit_two + {start}\\n\"\n\
             \".size {name}, {size}\\n\");\n\
             extern const char {name}[] __attribute__((visibility(\"hidden\")));\n"
        );
    }
    let program = format!("{PROGRAM}{symbols}");
    let [first, second] = &names;
    let source = |name: &str, more: &str| folder.write(name, format!("{program}{more}"));
    source("symbols.c", "");
    let used =
        |what: &str| format!("const char *volatile at; void used(void) {{ at = {what}; }}\n");
    source("address.c", &used(first));
    source(
        "byte.c",
        &format!("int used(void) {{ return {second}[0]; }}\n"),
    );
    source(
        "word.c",
        &format!("const char *volatile used = {second};\n"),
    );
    let link = |compiler: &Path, source: &str, flags: &[&str]| {
        let arguments = [&["-O1", "main.c", source, "-o", "k"], flags].concat();
        cc(&folder, compiler, &arguments);
    };
    let refused = || {
        let output = prune(&folder, &["--keep=gfx1100", "k", "-o", "none"]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let (compiler, pie) = (Path::new("cc"), ["-fPIE", "-pie"]);
    link(compiler, "symbols.c", &pie);
    let size = symbol(&folder, "k", second).1;
    assert_eq!(size, place(2).end - place(2).start);
    pruned(&folder, &["--keep=gfx1100", "k", "-o", "small"]);
    let (start, _) = symbol(&folder, "small", "unit_two");
    // The kept image is the first in the new bundle.
    assert_eq!(symbol(&folder, "small", second), (start + 4096, size));
    assert_eq!(symbol(&folder, "small", first), (start, 0));
    for (source, expected) in [
        (
            "address.c",
            "k: the program uses the device code at offset 0x",
        ),
        ("byte.c", "k: the program uses the device code at offset 0x"),
        ("word.c", "k: a relocation points to address 0x"),
    ] {
        link(compiler, source, &pie);
        let said = refused();
        assert!(said.contains(expected), "{source}: {said}");
    }
    // Other code is not searched, other names are for code of the user, and other files can use a symbol of a shared library.
    let symbol = "k: a symbol points to address 0x";
    let aarch64 = tool("qemu", &["aarch64-linux-gnu-gcc"]);
    for compiler in [Some(compiler), aarch64.as_deref()].into_iter().flatten() {
        link(compiler, "symbols.c", &["-fno-pie", "-no-pie"]);
        let said = refused();
        assert!(said.contains(symbol), "{}: {said}", compiler.display());
    }
    for other in [
        "image",
        "app_kernels_0123abcg_image",
        "app_0123abcd_image_x",
    ] {
        folder.write(
            "other.c",
            program.replace("app_kernels_0123abcd_image", other),
        );
        link(compiler, "other.c", &pie);
        let said = refused();
        assert!(said.contains(symbol), "{other}: {said}");
    }
    let exported = program
        .replace(&format!(".hidden {first}"), "")
        .replace("(\"hidden\")", "(\"default\")");
    folder.write("exported.c", exported);
    cc(
        &folder,
        compiler,
        &["-shared", "-fPIC", "exported.c", "-o", "k"],
    );
    let said = refused();
    assert!(said.contains(symbol), "{said}");
}

#[test]
fn prunes_programs_for_aarch64() {
    let (Some(qemu), Some(compiler)) = (
        tool("qemu", &["qemu-aarch64"]),
        tool("qemu", &["aarch64-linux-gnu-gcc"]),
    ) else {
        return;
    };
    let folder = folder();
    for flags in ["-pie", "-no-pie"] {
        cc(
            &folder,
            &compiler,
            &["-fPIE", flags, "main.c", "images.c", "-o", "k"],
        );
        let qemu = qemu.to_str().unwrap();
        let command = [qemu, "-L", "/usr/aarch64-linux-gnu", "./k"];
        check(&folder, "k", &command, "aarch64-linux-gnu-strip", flags);
    }
}

#[test]
fn prunes_compressed_bundles() {
    let folder = folder();
    let packed = compressed_bundle::compress(&unit(1), Default::default()).unwrap();
    folder.write("one", &packed);
    cc(&folder, Path::new("cc"), &["main.c", "images.c", "-o", "k"]);
    let text = pruned(&folder, &["--keep=gfx90a", "k", "-o", "small"]);
    assert!(
        text.contains("kept     gfx90a:xnack+  2 images  588.0 KiB\n"),
        "{text}"
    );
    let lines = printed(&folder, &["./small"]);
    assert!(lines.starts_with("0 packed 0\n"), "{lines}");
    assert_eq!(lines.lines().count(), 3, "{lines}");
    // The images in the compressed bundle are the old ones; they are random bytes, of no known form.
    run(Command::new(env!("CARGO_BIN_EXE_cargo-offload"))
        .args(["extract", "small", "-o", "out"])
        .current_dir(folder.root()));
    let image = std::fs::read(folder.path("out/0-gfx90a-xnack+.bin")).unwrap();
    assert_eq!(image.len(), 301_000);
    assert!(unit(1).windows(image.len()).any(|part| part == image));
}

#[test]
fn says_where_contents_go_that_cannot_be_unpacked() {
    let folder = folder();
    let packed = compressed_bundle::compress(&unit(1), Default::default()).unwrap();
    folder.write("packed", &packed);
    for arguments in [
        &["prune", "--keep=gfx90a"][..],
        &["compress", "--method=zlib"],
        &["decompress"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
        command.arg("offload").args(arguments);
        command.args(["packed", "-o", "new"]);
        command
            .current_dir(folder.root())
            .env("TMPDIR", "/nonexistent");
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let start = "error: packed: cannot write a temporary file in /nonexistent: No such file or directory (os error 2)";
        let hint = "\nhint: set TMPDIR to a folder with enough space\n";
        assert!(error.starts_with(start) && error.ends_with(hint), "{error}");
        assert!(!folder.path("new").exists());
        assert!(std::fs::read(folder.path("packed")).unwrap() == packed);
    }
}

/// Prints the magics of a registered wrapper and of the fat binary that it points to.
pub(crate) const CUDA_RUNTIME: &str = r#"
#include <stdio.h>
struct wrapper { int magic, version; const unsigned *data; void *more; };
void **__cudaRegisterFatBinary(void *at) {
  static void *handle;
  const struct wrapper *wrapper = at;
  printf("%x %x\n", wrapper->magic, wrapper->data[0]);
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **handle) {}
void __cudaUnregisterFatBinary(void **handle) {}
void __cudaRegisterFunction(void) {}
void __cudaRegisterVar(void) {}
char __cudaInitModule(void) { return 1; }
int cudaLaunchKernel(void) { return 0; }
int __cudaLaunchKernel(void) { return 0; }
int __cudaGetKernel(void) { return 0; }
int __cudaPopCallConfiguration(void) { return 0; }
int main(void) { return 0; }
"#;

/// Returns the cubins for the processor `wanted` that `cuobjdump` extracts from `file` to a new folder, sorted.
pub(crate) fn extracted(
    folder: &Folder,
    cuobjdump: &Path,
    file: &str,
    name: &str,
    wanted: &str,
) -> Vec<Vec<u8>> {
    let out = folder.path(name);
    std::fs::create_dir(&out).unwrap();
    run(Command::new(cuobjdump)
        .args(["-xelf", wanted, "-all"])
        .arg(folder.path(file))
        .current_dir(&out));
    let files = std::fs::read_dir(out).unwrap();
    let files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let mut files: Vec<Vec<u8>> = files.collect();
    files.sort();
    files
}

/// CUDA's programs by `nvcc`, with and without relocatable device code, beside `cuobjdump`.
#[test]
fn prunes_cuda_programs() {
    let (Some(nvcc), Some(cuobjdump)) = (program("nvcc"), tool("cuda", &["cuobjdump"])) else {
        return;
    };
    let folder = Folder::new();
    let write = |name: &str, text: &str| folder.write(name, text);
    write(
        "k.cu",
        "__device__ int v[70000] = {1};\n\
         __global__ void scale(float *x) { x[threadIdx.x] *= v[threadIdx.x]; }\n",
    );
    write("runtime.c", CUDA_RUNTIME);
    cc(&folder, Path::new("cc"), &["-c", "runtime.c"]);
    let targets = [
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=[sm_90,compute_90]",
    ];
    for rdc in ["-rdc=false", "-rdc=true"] {
        let compile = ["--no-compress", "-c", "k.cu", rdc];
        cc(&folder, &nvcc, &[&compile[..], &targets].concat());
        let mut link = vec!["runtime.o", "k.o", "-o", "k"];
        if rdc == "-rdc=true" {
            let device = [
                "--no-compress",
                "-dlink",
                "-cudadevrt=none",
                "k.o",
                "-o",
                "device.o",
            ];
            cc(&folder, &nvcc, &[&device[..], &targets].concat());
            link.push("device.o");
        }
        cc(&folder, Path::new("g++"), &link);
        let registered = printed(&folder, &["./k"]);
        assert_eq!(registered, "466243b1 ba55ed50\n");
        let old = size(&folder, "k");
        let extract = |name: &str, wanted: &str| extracted(&folder, &cuobjdump, "k", name, wanted);
        let before = extract(&format!("before{rdc}"), "sm_80");
        assert!(!before.is_empty());
        // sm_86 has no image of its own, and can use that of sm_80.
        pruned(&folder, &["--keep=sm_86", "--in-place", "k"]);
        assert_eq!(printed(&folder, &["./k"]), registered);
        let after = extract(&format!("after{rdc}"), "all");
        let own: Vec<Vec<u8>> = after
            .into_iter()
            .filter(|image| before.contains(image))
            .collect();
        assert!(own == before, "{rdc}");
        let list = |option: &str| {
            run(Command::new(&cuobjdump)
                .args([option, "-all", "k"])
                .current_dir(folder.root()))
        };
        assert!(!list("--list-elf").contains("sm_90"), "{rdc}");
        assert!(list("--list-ptx").contains("sm_90"), "{rdc}");
        assert!(size(&folder, "k") + 200_000 < old, "{rdc}");
        pruned(&folder, &["--keep=sm_86", "--ptx=drop", "--in-place", "k"]);
        assert_eq!(printed(&folder, &["./k"]), registered);
    }
}

#[test]
fn prunes_files_of_bundles() {
    let folder = folder();
    let both = [unit(1), unit(2)].concat();
    folder.write("k.hipfb", &both);
    let text = pruned(
        &folder,
        &["--drop=gfx12,gfx90a", "--json", "k.hipfb", "-o", "small"],
    );
    let json: Value = serde_json::from_str(&text).unwrap();
    let file = &json["files"][0];
    let counts = |key: &str| -> BTreeMap<String, u64> {
        let rows = file[key].as_array().unwrap().iter();
        rows.map(|row| {
            (
                row["target"].as_str().unwrap().to_owned(),
                row["images"].as_u64().unwrap(),
            )
        })
        .collect()
    };
    assert_eq!(counts("kept"), BTreeMap::from([("gfx1100".to_owned(), 2)]));
    assert_eq!(
        counts("removed"),
        BTreeMap::from([("gfx1201".to_owned(), 2), ("gfx90a:xnack+".to_owned(), 2)])
    );
    assert_eq!(file["new_size"], size(&folder, "small"));
    // The old file is as it was.
    assert!(std::fs::read(folder.path("k.hipfb")).unwrap() == both);
    // A target without images may be a mistake.
    let output = prune(&folder, &["--drop=gfx999", "k.hipfb", "-o", "same"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "cargo offload prune: warning: no image was removed: none is for gfx999\n"
    );
    // One bundle of two loses all images.
    let alone = bundle::to_bytes(
        &[BundleImage {
            id: IDS[1],
            image: b"image",
        }],
        NonZeroU64::MIN,
    );
    folder.write("uneven.hipfb", [unit(1), alone.unwrap()].concat());
    let output = prune(&folder, &["--drop=gfx90a", "uneven.hipfb", "-o", "even"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "cargo offload prune: warning: uneven.hipfb: 1 container without images: none was for a kept target, and their kernels cannot start\n"
    );
    // A file that has no images left is no error.
    let all = ["--drop=gfx*", "--allow-empty", "--in-place", "k.hipfb"];
    pruned(&folder, &all);
    pruned(&folder, &["--keep=gfx1100", "--in-place", "k.hipfb"]);
}

#[test]
fn checks_the_segments_of_a_program() {
    let folder = folder();
    cc(&folder, Path::new("cc"), &["main.c", "images.c", "-o", "k"]);
    let expected = without_others(&printed(&folder, &["./k"]), &["gfx1100"]);
    let program = std::fs::read(folder.path("k")).unwrap();
    let word = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().unwrap());
    let magic = b"__CLANG_OFFLOAD_BUNDLE__";
    let unit = program
        .windows(magic.len())
        .position(|part| part == magic)
        .unwrap() as u64;
    // Program headers of 56 bytes: type, offset at 8, physical address at 24, sizes in the file and in memory.
    let headers = (0..usize::from(program[56])).map(|index| word(32) as usize + 56 * index);
    let loads: Vec<usize> = headers.filter(|at| program[*at] == 1).collect();
    let has_unit = |at: &&usize| (word(**at + 8)..word(**at + 8) + word(**at + 32)).contains(&unit);
    let with_units = *loads.iter().find(has_unit).unwrap();
    let end = word(with_units + 8) + word(with_units + 32);
    // It is executable, as the program is.
    std::fs::copy(folder.path("k"), folder.path("changed")).unwrap();
    let changed = |changes: &[(usize, u64)]| {
        let mut bytes = program.clone();
        for (at, value) in changes {
            bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        std::fs::write(folder.path("changed"), bytes).unwrap();
        let output = prune(&folder, &["--keep=gfx1100", "changed", "-o", "small"]);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    // In memory smaller than in the file.
    let (code, said) = changed(&[(with_units + 40, 0x3000)]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.starts_with("error: changed: content of a segment at "),
        "{said}"
    );
    // Around another one.
    let (code, said) = changed(&[(loads[0] + 32, end), (loads[0] + 40, end)]);
    assert_eq!(code, Some(1), "{said}");
    let other = "error: changed: a loaded segment, in another one, extends over the removed pages";
    assert!(said.starts_with(other), "{said}");
    // A physical address that nothing reads.
    assert_eq!(
        changed(&[(with_units + 24, u64::MAX - 8)]),
        (Some(0), String::new())
    );
    assert_eq!(printed(&folder, &["./small"]), expected);
}

/// As in libraries of NVIDIA, whose registration records the linker has removed.
#[test]
fn prunes_beside_a_unit_that_nothing_uses() {
    let folder = folder();
    let alone = PROGRAM.replace("unit_two, 0}}", "unit_one, 0}}");
    folder.write("alone.c", alone);
    let compile = ["main.c", "alone.c", "-fPIC", "-pie", "-o", "alone"];
    cc(&folder, Path::new("cc"), &compile);
    let before = printed(&folder, &["./alone"]);
    pruned(&folder, &["--keep=gfx1100", "alone", "-o", "small"]);
    let expected = without_others(&before, &["gfx1100"]);
    assert_eq!(printed(&folder, &["./small"]), expected);
    assert!(size(&folder, "small") + 1_100_000 < size(&folder, "alone"));
}

#[test]
fn refuses_what_it_cannot_prune_and_writes_nothing() {
    let folder = folder();
    cc(&folder, Path::new("cc"), &["main.c", "images.c", "-o", "k"]);
    // A pointer into the second unit, which would move.
    let inside = format!("{PROGRAM}const char *inside = unit_two + 8;\n");
    folder.write("inside.c", inside);
    cc(
        &folder,
        Path::new("cc"),
        &["main.c", "inside.c", "-o", "inside"],
    );
    // Units that no pointer leads to, but code: without dynamic relocations it may have the address itself.
    let alone = PROGRAM.replace("unit_two, 0}}", "unit_one, 0}}");
    folder.write("alone.c", &alone);
    let hidden = alone.replace(
        "unit_two[];",
        "unit_two[] __attribute__((visibility(\"hidden\")));",
    );
    let used = format!("{hidden}const char *used(void) {{ return unit_two; }}\n");
    folder.write("used.c", used);
    for (source, flag, output) in [("used.c", "-pie", "alone"), ("alone.c", "-no-pie", "fixed")] {
        let compile = ["main.c", source, "-fPIC", flag, "-o", output];
        cc(&folder, Path::new("cc"), &compile);
    }
    // A registered unit that code uses by its address as well, or a word without a relocation.
    let both = PROGRAM.replace(
        "unit_two[];",
        "unit_two[] __attribute__((visibility(\"hidden\")));",
    );
    folder.write(
        "both.c",
        format!("{both}const char *used(void) {{ return unit_two; }}\n"),
    );
    folder.write(
        "word.c",
        format!("{both}const char *volatile used = unit_two;\n"),
    );
    folder.write(
        "store.c",
        format!("{both}const char *used;\nvoid use(void) {{ used = unit_two; }}\n"),
    );
    for (source, flags, output) in [
        ("both.c", &["-fPIE", "-pie"][..], "lea"),
        ("both.c", &["-fno-pie", "-no-pie", "-O1"], "mov"),
        ("word.c", &["-fno-pie", "-no-pie"], "word"),
        ("store.c", &["-fno-pie", "-no-pie", "-O2"], "store"),
    ] {
        let compile = [&["main.c", source, "-o", output], flags].concat();
        cc(&folder, Path::new("cc"), &compile);
    }
    // What stays where it is may be used, and relocations are pointers that can be changed.
    let first = format!("{both}const char *used(void) {{ return unit_one; }}\n");
    folder.write("first.c", first);
    for (source, output) in [("first.c", "first"), ("word.c", "relocated")] {
        cc(
            &folder,
            Path::new("cc"),
            &["main.c", source, "-fPIE", "-pie", "-o", output],
        );
        pruned(&folder, &["--keep=gfx1100", output, "-o", "new"]);
    }
    // Its size must not change if the program has it, in an instruction or behind a pointer.
    let size = unit(1).len();
    folder.write(
        "sized.c",
        format!(
            "{both}const char *used(unsigned long *size) {{ *size = {size}; return unit_one; }}\n"
        ),
    );
    folder.write(
        "slice.c",
        format!("{both}struct {{ const char *at; unsigned long size; }} used = {{ unit_one, {size} }};\n"),
    );
    let hidden = both.replace(
        "unit_one[], ",
        "unit_one[] __attribute__((visibility(\"hidden\"))), ",
    );
    assert_ne!(hidden, both);
    let sized = std::fs::read_to_string(folder.path("sized.c")).unwrap();
    folder.write("sized.c", sized.replace(&both, &hidden));
    folder.write("got.c", sized);
    folder.write(
        "rev.c",
        format!("{both}struct {{ unsigned long size; const char *at; }} used = {{ {size}, unit_one }};\n"),
    );
    let pie = ["-fPIC", "-pie", "-Wa,-mrelax-relocations=no"];
    for (source, flags, output) in [
        ("sized.c", &pie[..], "sized"),
        ("slice.c", &pie, "slice"),
        ("rev.c", &pie, "rev"),
        ("got.c", &pie, "got"),
        ("got.c", &["-fPIC", "-shared"], "shared"),
        ("slice.c", &["-fno-pie", "-no-pie"], "nopie"),
    ] {
        let compile = [&["main.c", source, "-s", "-o", output], flags].concat();
        cc(&folder, Path::new("cc"), &compile);
        let output = prune(&folder, &["--keep=gfx1100", output, "-o", "none"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains(": the program uses the device code at offset 0x"),
            "{source} {flags:?}: {said}"
        );
    }
    if let Some(compiler) = tool("qemu", &["aarch64-linux-gnu-gcc"]) {
        cc(
            &folder,
            &compiler,
            &["main.c", "both.c", "-fPIE", "-pie", "-o", "adrp"],
        );
        for (source, output) in [("sized.c", "sized64"), ("first.c", "first64")] {
            let compile = ["main.c", source, "-fPIE", "-pie", "-O1", "-o", output];
            cc(&folder, &compiler, &compile);
        }
        // The address alone may be used.
        pruned(&folder, &["--keep=gfx1100", "first64", "-o", "new"]);
        let output = prune(&folder, &["--keep=gfx1100", "sized64", "-o", "none"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let output = prune(&folder, &["--keep=gfx1100", "adrp", "-o", "none"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("error: adrp: the program uses the device code at offset 0x"),
            "{said}"
        );
    }
    folder.write("text", "text");
    for (file, arguments, expected) in [
        (
            "k",
            &["--keep=gfx906"][..],
            "k: no image would remain; the file has images for gfx1100, gfx1201, gfx90a:xnack+\nhint: --allow-empty",
        ),
        (
            "inside",
            &["--keep=gfx1100"],
            "inside: a relocation points to address 0x",
        ),
        (
            "alone",
            &["--keep=gfx1100"],
            "alone: nothing points to the device code at offset 0x",
        ),
        (
            "fixed",
            &["--keep=gfx1100"],
            "fixed: nothing points to the device code at offset 0x",
        ),
        (
            "sized",
            &["--keep=gfx1100"],
            "sized: the program uses the device code at offset 0x",
        ),
        (
            "lea",
            &["--keep=gfx1100"],
            "lea: the program uses the device code at offset 0x",
        ),
        (
            "mov",
            &["--keep=gfx1100"],
            "mov: the program uses the device code at offset 0x",
        ),
        (
            "store",
            &["--keep=gfx1100"],
            "store: the program uses the device code at offset 0x",
        ),
        (
            "word",
            &["--keep=gfx1100"],
            "word: the program uses the device code at offset 0x",
        ),
        (
            "text",
            &["--keep=gfx1100"],
            "text: expected an ELF file, an archive, ",
        ),
        (
            "main.c",
            &["--keep=gfx1100"],
            "main.c: expected an ELF file",
        ),
    ] {
        let before = std::fs::read(folder.path(file)).unwrap();
        let output = prune(&folder, &[arguments, &["--in-place", file]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{file}: {said}");
        assert!(
            said.starts_with(&format!("error: {expected}")),
            "{file}: {said}"
        );
        let hint = match file {
            "inside" => {
                "\nhint: programs that call `image()` or `images()` cannot be pruned: remove targets, or set `compress`, "
            }
            "sized" => "\nhint: build the program with fewer targets, or with `compress`\n",
            _ => "",
        };
        assert!(said.contains(hint), "{file}: {said}");
        assert!(
            before == std::fs::read(folder.path(file)).unwrap(),
            "{file}"
        );
    }
    let entries = std::fs::read_dir(folder.root()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
    for (arguments, expected) in [
        (
            &["k", "--in-place"][..],
            "--keep <TARGETS>|--drop <TARGETS>",
        ),
        (&["k", "--keep=gfx1100"], "--output <PATH>|--in-place"),
    ] {
        let output = prune(&folder, arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{said}");
    }
}
