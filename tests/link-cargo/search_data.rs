//! `cargo offload inspect` and `extract` with `--search-data`: images that compilers made, between other data of programs.

use serde_json::Value;

use crate::commands::{cargo_offload, done};
use crate::support::folder::Folder;
use crate::support::{run, tool};

const KERNEL: &str = "
#include <offload/gpu.h>
extern \"C\" __global__ void scale(float *x) { x[threadIdx.x] *= 2; }
";

const OPENCL: &str = "
__kernel void scale(__global float *x) { x[get_global_id(0)] *= 2; }
__kernel void clear(__global float *x) { x[get_global_id(0)] = 0; }
";

/// Compiles an image of each form, and returns their file names with the forms.
fn compile(folder: &Folder) -> Option<Vec<(&'static str, &'static str)>> {
    let [clang, newer] =
        [("llvm19", "clang-19"), ("llvm22", "clang-22")].map(|(word, name)| tool(word, &[name]));
    let (clang, newer) = (clang?, newer?);
    folder.write("k.cpp", KERNEL);
    folder.write("k.cl", OPENCL);
    let header = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../offload-build/include"
    );
    let hip = [
        "-x",
        "hip",
        "--offload-arch=gfx90a",
        "-nogpuinc",
        "-nogpulib",
    ];
    let cuda = [
        "-x",
        "cuda",
        "--offload-arch=sm_80",
        "-nocudainc",
        "-nocudalib",
    ];
    let unbundled = [
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        header,
        "k.cpp",
    ];
    let device = |language: &[&str], flags: &[&str]| {
        let mut command = folder.command(&clang);
        run(command.args(language).args(unbundled).args(flags));
    };
    device(&hip, &["-c", "-o", "image.co"]);
    device(&hip, &["-c", "-emit-llvm", "-o", "image.bc"]);
    device(&cuda, &["-S", "-o", "image.ptx"]);
    device(&cuda, &["-S", "-O3", "-g", "-o", "debug.ptx"]);
    let opencl = [
        "-target",
        "spirv64",
        "-x",
        "cl",
        "-cl-std=CL2.0",
        "k.cl",
        "-c",
        "-o",
        "image.spv",
    ];
    run(folder.command(newer).args(opencl));
    let bundle = [
        "--cuda-device-only",
        "-c",
        header,
        "k.cpp",
        "-o",
        "image.hipfb",
    ];
    run(folder.command(&clang).args(hip).args(bundle));
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/cuda-13.5/two-images.fatbin"
    );
    folder.write("image.fatbin", std::fs::read(golden).unwrap());
    Some(vec![
        ("image.co", "code object"),
        ("image.ptx", "PTX"),
        ("debug.ptx", "PTX"),
        ("image.bc", "bitcode"),
        ("image.spv", "SPIR-V"),
        ("image.hipfb", "code object"),
        ("image.fatbin", "cubin"),
    ])
}

/// Returns assembly of a section of data with the files and other strings between them, without NULs or alignment.
fn assembly(section: &str, files: &[(&str, &str)]) -> String {
    let mut text = format!(".section {section}\n.ascii \"src/lib.rs\"\n");
    for (file, _) in files {
        text += &format!(".incbin \"{file}\"\n.ascii \"src/main.rs: __CLANG_OFFLOAD_BUNDLE__\"\n");
    }
    text
}

/// Returns the containers of a file, as `inspect` lists them: format of the container, form of its first image.
fn containers(folder: &Folder, args: &[&str]) -> Vec<(String, String)> {
    let text = done(folder, &[&["inspect", "--json"], args].concat());
    let inspected: Value = serde_json::from_str(&text).unwrap();
    let file = &inspected["files"][0];
    assert_eq!(file["problems"], Value::Array(Vec::new()));
    let containers = file["containers"].as_array().unwrap().iter();
    let texts = containers.map(|container| {
        let images = container["images"].as_array().unwrap();
        let form = images.last().unwrap()["form"].as_str().unwrap();
        (
            container["format"].as_str().unwrap().to_owned(),
            form.to_owned(),
        )
    });
    texts.collect()
}

#[test]
fn finds_images_between_the_strings_of_programs() {
    let folder = Folder::new();
    let Some(files) = compile(&folder) else {
        return;
    };
    let clang = tool("llvm19", &["clang-19"]).unwrap();
    let hosts = [
        ("elf.o", "x86_64-linux-gnu", ".rodata,\"a\",@progbits"),
        ("coff.o", "x86_64-w64-windows-gnu", ".rdata,\"dr\""),
        ("macho.o", "arm64-apple-macosx", "__DATA,__const"),
    ];
    for (object, triple, section) in hosts {
        folder.write("data.s", assembly(section, &files));
        let args = ["-target", triple, "-c", "data.s", "-o", object];
        run(folder.command(&clang).args(args));
    }
    folder.write("main.c", "int main(void) { return 0; }");
    run(folder
        .command("cc")
        .args(["main.c", "elf.o", "-o", "program"]));
    run(folder
        .command("cc")
        .args(["-shared", "elf.o", "-o", "library.so"]));
    folder.write(
        "unknown.bin",
        [b"\x80data", &folder.read("elf.o")[..]].concat(),
    );
    let expected: Vec<_> = files.iter().map(|(_, form)| (*form).to_owned()).collect();
    for file in [
        "elf.o",
        "coff.o",
        "macho.o",
        "program",
        "library.so",
        "unknown.bin",
    ] {
        assert_eq!(containers(&folder, &[file]), [], "{file}");
        let found = containers(&folder, &["--search-data", file]);
        let forms: Vec<_> = found.into_iter().map(|(_, form)| form).collect();
        assert_eq!(forms, expected, "{file}");
    }
    let text = done(&folder, &["inspect", "program"]);
    let hint = "program: no device images\n  hint: pass --search-data to search inside of data, such as `include_bytes!`; images that a program does not use are not \
                linked\n";
    assert_eq!(text, hint);
    // Each image has the bytes that the compiler wrote.
    let extract = ["extract", "--search-data", "program", "--out", "images"];
    let extracted = done(&folder, &extract);
    let alone = [
        "image.co",
        "image.ptx",
        "debug.ptx",
        "image.bc",
        "image.spv",
    ];
    for (path, name) in extracted.lines().zip(alone) {
        assert_eq!(folder.read(path), folder.read(name), "{path}, {name}");
    }
    assert_eq!(extracted.lines().count(), 8);
}

#[test]
fn reads_the_kernels_and_sizes_of_images_between_strings() {
    let folder = Folder::new();
    let Some(files) = compile(&folder) else {
        return;
    };
    let clang = tool("llvm19", &["clang-19"]).unwrap();
    folder.write("data.s", assembly(".rodata,\"a\",@progbits", &files[..2]));
    run(folder
        .command(&clang)
        .args(["-c", "data.s", "-o", "data.o"]));
    let inspect = ["inspect", "--kernels", "--search-data", "data.o"];
    let kernels = done(&folder, &inspect);
    assert_eq!(
        kernels.matches("\n            scale\n").count(),
        2,
        "{kernels}"
    );
    let sizes = done(&folder, &["size", "--json", "--search-data", "data.o"]);
    let sizes: Value = serde_json::from_str(&sizes).unwrap();
    let total = files[..2]
        .iter()
        .map(|(name, _)| folder.read(name).len())
        .sum::<usize>();
    assert_eq!(sizes["device"], total, "{sizes}");
    let findings = done(&folder, &["verify", "--search-data", "data.o"]);
    assert!(
        findings.contains("2 device images, no findings"),
        "{findings}"
    );
    assert!(!findings.contains("hint"), "{findings}");
    let findings = done(&folder, &["verify", "data.o"]);
    assert!(
        findings.contains("0 device images, no findings\n  hint: pass --search-data "),
        "{findings}"
    );
    let missing = cargo_offload(&folder, &["extract", "data.o"]);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(text.contains("pass --search-data"), "{text}");
}
