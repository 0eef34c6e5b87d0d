//! `cargo offload compress` and `decompress`, beside LLVM's bundler and NVIDIA's `cuobjdump`, and programs that print what
//! they register.

use crate::commands::{cargo_offload, done};
use crate::prune::{CUDA_RUNTIME, cc, extracted, printed, size};
use crate::support::folder::Folder;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::Command;

use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle::CompressedBundle;
use offload_formats::format::fatbin::{FatbinCompression, FatbinUnpacker, walk};
use offload_formats::format::pieces;

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
        assert!(text.ends_with(", 2 containers\n"), "{text}");
        assert!(
            read(&folder, "program").len() + 1_000_000 < before,
            "{flags:?}"
        );
        assert_eq!(started(), "CCOB 2 after\nCCOB 2 after\n", "{flags:?}");
        // Nothing is left to do.
        let text = done(&folder, &["compress", "--in-place", "program"]);
        assert!(text.ends_with(", no container changes\n"), "{text}");
    }
}

const LZ4: Option<FatbinCompression> = Some(FatbinCompression::Lz4);
const ZSTD: Option<FatbinCompression> = Some(FatbinCompression::Zstd);

/// Returns the images of fat binaries without the zeros that pad them, and how they are stored.
fn images(bytes: &[u8]) -> (BTreeMap<String, Vec<u8>>, Vec<Option<FatbinCompression>>) {
    let mut unpacker = FatbinUnpacker::new(bytes, 1 << 30);
    let (mut images, mut methods) = (BTreeMap::new(), Vec::new());
    for found in walk(bytes, 0..bytes.len() as u64) {
        for entry in found.unwrap().entries {
            let mut image = unpacker.image(&entry).unwrap().to_vec();
            let end = image.iter().rposition(|byte| *byte != 0).unwrap();
            image.truncate(end + 1);
            images.insert(entry.to_string(), image);
            methods.push(entry.compression);
        }
    }
    (images, methods)
}

#[test]
fn compresses_images_of_cuda_and_back() {
    let folder = Folder::new();
    let golden = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/cuda-13.5");
        std::fs::read(root.join(name)).unwrap()
    };
    let plain = golden("two-images.fatbin");
    folder.write("plain", &plain);
    let (expected, _) = images(&plain);
    for (options, method) in [
        (&[][..], LZ4),
        (&["--level=9"], LZ4),
        (&["--method=lz4"], LZ4),
        (&["--method=zstd", "--level=19"], ZSTD),
        // Of HIP only.
        (&["--method=zlib"], None),
        (&["--runtime=rocm-6.4"], None),
    ] {
        let text = done(
            &folder,
            &[&["compress", "plain", "-o", "new"], options].concat(),
        );
        let new = read(&folder, "new");
        assert_eq!(
            images(&new),
            (expected.clone(), vec![method; 2]),
            "{options:?}"
        );
        let changes = match method {
            Some(_) => ", 1 container\n",
            None => ", no container changes\n",
        };
        assert!(text.ends_with(changes), "{options:?}: {text}");
        assert_eq!(new == plain, method.is_none());
        // What is compressed stays, unless a method is asked for.
        done(&folder, &["compress", "new", "-o", "again"]);
        let again = images(&read(&folder, "again"));
        let stays = method.or(LZ4);
        assert_eq!(again, (expected.clone(), vec![stays; 2]), "{options:?}");
        done(
            &folder,
            &["compress", "--method=zstd", "again", "-o", "other"],
        );
        let other = images(&read(&folder, "other"));
        assert_eq!(other, (expected.clone(), vec![ZSTD; 2]), "{options:?}");
        done(&folder, &["decompress", "other", "-o", "back"]);
        assert!(read(&folder, "back") == plain, "{options:?}");
    }
    // What NVIDIA's tool compressed, also together.
    for (name, old) in [
        ("lz4.fatbin", LZ4),
        ("zstd.fatbin", ZSTD),
        ("group.fatbin", ZSTD),
    ] {
        folder.write("theirs", golden(name));
        let (expected, methods) = images(&golden(name));
        assert_eq!(methods, [old; 4]);
        for (method, new) in [("lz4", LZ4), ("zstd", ZSTD)] {
            let method = format!("--method={method}");
            done(&folder, &["compress", &method, "theirs", "-o", "new"]);
            let new_images = images(&read(&folder, "new"));
            assert_eq!(
                new_images,
                (expected.clone(), vec![new; 4]),
                "{name} {method}"
            );
            if let Some(cuobjdump) = tool("cuda", &["cuobjdump"]) {
                let list = |file: &str| {
                    let mut command = Command::new(&cuobjdump);
                    command
                        .args(["-lelf", "-lptx", file])
                        .current_dir(folder.root());
                    run(&mut command).replace(file, "")
                };
                assert_eq!(list("new"), list("theirs"), "{name} {method}");
            }
        }
        done(&folder, &["decompress", "theirs", "-o", "new"]);
        let is_group = name == "group.fatbin";
        let methods = vec![if is_group { ZSTD } else { None }; 4];
        assert_eq!(images(&read(&folder, "new")), (expected, methods), "{name}");
    }
}

#[test]
fn keeps_images_that_another_level_does_not_make_smaller() {
    let folder = folder();
    // A cubin that levels compress differently: nobody reads what follows its sections.
    let text: String = (0..40_000_u32)
        .map(|number| number.pow(2).to_string())
        .collect();
    let cubin = include_bytes!("../golden/cuda-13.5/kernels.cubin");
    let image = [cubin, text.as_bytes()].concat();
    let images = [FatbinImage {
        processor: "sm_90",
        image: &image[..],
    }];
    let fatbin = cuda_fatbin(&images).unwrap();
    folder.write("cuda", pieces::to_bytes(&fatbin.pieces, &[&image]).unwrap());
    let images = [BundleImage {
        id: IDS[0],
        image: text.as_bytes(),
    }];
    folder.write("hip", bundle::to_bytes(&images, NonZeroU64::MIN).unwrap());
    for file in ["cuda", "hip"] {
        let compress = |level: &str, from: &str, to: &str| {
            let line = ["compress", "--method=zstd", level, from, "-o", to];
            done(&folder, &line)
        };
        compress("--level=19", file, "best");
        compress("--level=1", file, "fast");
        assert!(size(&folder, "fast") > size(&folder, "best"), "{file}");
        let said = compress("--level=1", "best", "same");
        assert!(said.ends_with(", no container changes\n"), "{said}");
        assert!(read(&folder, "same") == read(&folder, "best"), "{file}");
        let said = compress("--level=19", "fast", "again");
        assert!(said.ends_with(", 1 container\n"), "{said}");
        assert!(read(&folder, "again") == read(&folder, "best"), "{file}");
    }
}

/// A program of `nvcc` with relocatable device code, which has fat binaries of both kinds, beside `cuobjdump`.
#[test]
fn compresses_the_images_of_a_cuda_program() {
    let (Some(nvcc), Some(cuobjdump)) = (program("nvcc"), tool("cuda", &["cuobjdump"])) else {
        return;
    };
    let folder = Folder::new();
    folder.write(
        "k.cu",
        "__device__ int v[70000] = {1};\n\
         __global__ void scale(float *x) { x[threadIdx.x] *= v[threadIdx.x]; }\n",
    );
    folder.write("runtime.c", CUDA_RUNTIME);
    cc(&folder, Path::new("cc"), &["-c", "runtime.c"]);
    let targets = [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
    ];
    let compile = ["--no-compress", "-rdc=true", "-c", "k.cu"];
    cc(&folder, &nvcc, &[&compile[..], &targets].concat());
    let device = ["-dlink", "-cudadevrt=none", "k.o", "-o", "device.o"];
    cc(&folder, &nvcc, &[&device[..], &targets].concat());
    let link = ["runtime.o", "k.o", "device.o", "-o", "k"];
    cc(&folder, Path::new("g++"), &link);
    let registered = printed(&folder, &["./k"]);
    assert_eq!(registered, "466243b1 ba55ed50\n");
    let extract = |name: &str| extracted(&folder, &cuobjdump, "k", name, "all");
    let (before, old) = (extract("before"), size(&folder, "k"));
    assert_eq!(before.len(), 4);
    for (options, out) in [(&[][..], "lz4"), (&["--method=zstd"], "zstd")] {
        let text = done(
            &folder,
            &[&["compress", "--in-place", "k"], options].concat(),
        );
        assert!(text.ends_with(", 2 containers\n"), "{text}");
        assert_eq!(printed(&folder, &["./k"]), registered);
        assert!(extract(out) == before, "{out}");
    }
    // Four images with 280,000 bytes of a variable.
    assert!(size(&folder, "k") + 1_000_000 < old);
}

#[test]
fn passes_over_other_files_of_a_folder() {
    let folder = folder();
    std::fs::create_dir(folder.path("tree")).unwrap();
    let plain = read(&folder, "plain");
    folder.write("tree/k", &plain);
    folder.write("tree/text", "text");
    folder.write("tree/empty", "");
    std::fs::copy("/bin/true", folder.path("tree/true")).unwrap();
    let text = done(&folder, &["compress", "--in-place", "-r", "tree"]);
    assert!(
        text.starts_with("tree/k: ") && text.lines().count() == 1,
        "{text}"
    );
    let text = done(&folder, &["decompress", "--in-place", "-r", "tree"]);
    assert!(
        text.starts_with("tree/k: ") && text.lines().count() == 1,
        "{text}"
    );
    assert!(read(&folder, "tree/k") == plain);
    // Images in a file of a format that is not changed.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/22.1.8");
    std::fs::copy(format!("{golden}/elf32le.o"), folder.path("tree/images.o")).unwrap();
    for command in ["compress", "decompress"] {
        let output = cargo_offload(&folder, &[command, "--in-place", "-r", "tree"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            format!(
                "cargo offload {command}: warning: tree/images.o: its device images stay: expected a 64-bit little-endian ELF file for x86-64 or AArch64\n"
            )
        );
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
            &["compress", "-", "--in-place"],
            2,
            "standard input has no place",
        ),
        (&["decompress", "plain", "-o", "-"], 2, "standard output"),
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
            &[
                "compress",
                "plain",
                "-o",
                "x",
                "--runtime=rocm-7.2",
                "--method=lz4",
            ],
            1,
            "rocm-7.2 does not read this method",
        ),
        (
            &["compress", "plain", "-o=x", "--method=zlib", "--level=10"],
            1,
            "zlib has no level 10\nhint: its levels are 1 to 9",
        ),
        (
            &["compress", "plain", "-o=x", "--method=lz4", "--level=9"],
            1,
            "lz4 has no levels\nhint: leave out --level",
        ),
        (
            &["compress", "text", "-o", "x"],
            1,
            "text: expected an ELF file, an archive, a bundle,",
        ),
        (
            &["decompress", "elf", "-o", "x"],
            1,
            "decompressed images do not fit into a program",
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
