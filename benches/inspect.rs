//! `cargo offload inspect`, `size` and `verify` of large libraries, beside LLVM's and NVIDIA's tools.
//!
//! The libraries are made here: code objects and cubins of one kernel, padded with zeros to the size of real ones. For a library
//! of your own set `OFFLOAD_BENCH_FILE`.

#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "measure.rs"]
mod measure;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use folder::{Folder, run};
use measure::{Row, measure, print, print_memory};

const OURS: &str = env!("CARGO_BIN_EXE_cargo-offload");
const LLVM: &str = "/usr/lib/llvm-22/bin";

/// Numbers of librocsparse of Debian 12: 1.3 GB in 111 bundles for 7 processors each.
const BUNDLES: usize = 111;
const PROCESSORS: [&str; 7] = [
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1030",
];
const IMAGE: usize = 1_740_800;

/// Fat binaries of one cubin each.
const FAT_BINARIES: usize = 1000;
const CUBIN: usize = 300 << 10;

const SOURCE: &str = "#include <offload/gpu.h>\n\
    extern \"C\" __global__ void scale(float *x, float a) { x[blockIdx.x * blockDim.x + threadIdx.x] *= a; }\n";

fn main() {
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if let Some(file) = std::env::var_os("OFFLOAD_BENCH_FILE") {
        rows(Path::new(&file), &[]);
        return;
    }
    let folder = Folder::new();
    let folder = folder.root();
    fs::write(folder.join("scale.hip"), SOURCE).expect("a source");
    let hip = library(folder, ".hip_fatbin", |out| bundles(folder, out));
    let objdump = format!("{LLVM}/llvm-objdump");
    rows(
        &hip,
        &[("llvm-objdump 22 --offloading", &[&objdump, "--offloading"])],
    );
    fs::remove_file(&hip).expect("the library is ours");
    let Some(fatbinary) = program("fatbinary") else {
        println!("\nno fatbinary: no library with code for NVIDIA");
        return;
    };
    let cuda = library(folder, ".nv_fatbin", |out| {
        fat_binaries(folder, &fatbinary, out);
    });
    match program("cuobjdump") {
        Some(cuobjdump) => rows(
            &cuda,
            &[("cuobjdump --list-elf", &[&cuobjdump, "--list-elf"])],
        ),
        None => rows(&cuda, &[]),
    }
}

/// Finds a program of CUDA's toolkit in the tree that `CUDA_PATH` names, or in `PATH`.
fn program(name: &str) -> Option<String> {
    let tree = std::env::var_os("CUDA_PATH").map(|root| PathBuf::from(root).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = tree.into_iter().chain(std::env::split_paths(&path));
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    found.map(|path| path.to_string_lossy().into_owned())
}

/// Measures our commands and other command lines, to which the file is added.
fn rows(file: &Path, others: &[(&str, &[&str])]) {
    let text = file.to_string_lossy().into_owned();
    let ours = [
        ("cargo offload inspect", &["inspect"][..]),
        ("cargo offload inspect --kernels", &["inspect", "--kernels"]),
        ("cargo offload size", &["size"]),
        ("cargo offload verify", &["verify"]),
    ];
    let mut rows = vec![Row::new(
        "readelf -S",
        &["readelf", "-SW", &text].map(str::to_owned),
    )];
    for (name, arguments) in ours {
        let line = [OURS, "offload"]
            .into_iter()
            .chain(arguments.iter().copied());
        let line: Vec<String> = line.chain([&*text]).map(str::to_owned).collect();
        rows.push(Row::new(name, &line));
    }
    for (name, arguments) in others {
        let line = arguments.iter().copied().chain([&*text]);
        rows.push(Row::new(name, &line.map(str::to_owned).collect::<Vec<_>>()));
    }
    let size = fs::metadata(file).expect("the file exists").len();
    let title = format!("a library of {} MB", size / 1_000_000);
    print(&title, measure(&rows, 5));
    print_memory(&rows);
}

/// Makes a shared library whose section has what `content` writes.
fn library(folder: &Path, section: &str, content: impl FnOnce(&mut BufWriter<File>)) -> PathBuf {
    let data = folder.join("content");
    let mut out = BufWriter::new(File::create(&data).expect("a file"));
    content(&mut out);
    out.flush().expect("room for the library");
    drop(out);
    let source = folder.join("library.s");
    let text = format!(
        ".section {section},\"a\"\n.p2align 12\n.incbin {data:?}\n.section .note.GNU-stack,\"\"\n"
    );
    fs::write(&source, text).expect("a source");
    let library = folder.join("library.so");
    run(Command::new("cc")
        .arg("-shared")
        .arg("-o")
        .arg(&library)
        .arg(&source));
    fs::remove_file(data).expect("the content is ours");
    library
}

/// Compiles the kernel for a processor, in which `pad` bytes are.
fn image(folder: &Path, arguments: &[&str], pad: usize) -> Vec<u8> {
    let output = folder.join("image");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../offload-build/include");
    let mut clang = Command::new(format!("{LLVM}/clang"));
    clang
        .args(arguments)
        .arg("-I")
        .arg(include)
        .args(["-O2", "-o"]);
    run(clang.arg(&output).arg(folder.join("scale.hip")));
    let mut bytes = fs::read(output).expect("clang wrote the image");
    assert!(bytes.len() < pad, "the image is small");
    bytes.resize(pad, 0);
    bytes
}

fn bundles(folder: &Path, out: &mut BufWriter<File>) {
    let image_of = |processor: &&str| {
        let target = format!("--offload-arch={processor}");
        let device = [
            "-x",
            "hip",
            "--offload-device-only",
            "-nogpuinc",
            "-nogpulib",
        ];
        let arguments: Vec<&str> = device
            .into_iter()
            .chain(["--no-gpu-bundle-output", &target])
            .collect();
        image(folder, &arguments, IMAGE)
    };
    let images: Vec<Vec<u8>> = PROCESSORS.iter().map(image_of).collect();
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let long = |header: &mut Vec<u8>, value: usize| header.extend((value as u64).to_le_bytes());
    long(&mut header, PROCESSORS.len() + 1);
    let host = "host-x86_64-unknown-linux-gnu-".to_owned();
    let ids = PROCESSORS.map(|processor| format!("hipv4-amdgcn-amd-amdhsa--{processor}"));
    for (index, id) in [host].iter().chain(&ids).enumerate() {
        let (offset, size) = match index {
            0 => (4096, 0),
            _ => (4096 + (index - 1) * IMAGE, IMAGE),
        };
        for value in [offset, size, id.len()] {
            long(&mut header, value);
        }
        header.extend(id.bytes());
    }
    header.resize(4096, 0);
    for _ in 0..BUNDLES {
        out.write_all(&header).expect("room for the library");
        for image in &images {
            out.write_all(image).expect("room for the library");
        }
    }
}

fn fat_binaries(folder: &Path, fatbinary: &str, out: &mut BufWriter<File>) {
    let ptxas = program("ptxas").expect("ptxas is installed beside fatbinary");
    let tools = Path::new(&ptxas)
        .parent()
        .expect("a program is in a folder");
    let path = format!("--ptxas-path={ptxas}");
    let cuda = [
        "-x",
        "cuda",
        "--offload-device-only",
        "--offload-arch=sm_80",
        "-nogpuinc",
    ];
    // Without a toolkit clang asks for a version of PTX that lacks the processor.
    let version = ["-Xclang", "-target-feature", "-Xclang", "+ptx75"];
    let arguments = cuda.into_iter().chain(version);
    let arguments: Vec<&str> = arguments.chain(["-nogpulib", "-c", &path]).collect();
    let cubin = folder.join("scale.cubin");
    fs::write(&cubin, image(folder, &arguments, CUBIN)).expect("a cubin");
    let packed = folder.join("scale.fatbin");
    let image = format!("--image3=kind=elf,sm=80,file={}", cubin.display());
    let mut command = Command::new(fatbinary);
    command
        .args(["-64", "--compress=false", &image])
        .arg(format!("--create={}", packed.display()));
    run(command.current_dir(tools));
    let bytes = fs::read(packed).expect("fatbinary wrote it");
    for _ in 0..FAT_BINARIES {
        out.write_all(&bytes).expect("room for the library");
    }
}
