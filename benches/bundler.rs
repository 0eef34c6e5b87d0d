//! The bundler beside LLVM's, and beside what the machine does anyway: `cp`, `cat`, `zstd`.
//!
//! `make bench` runs it. The images are cut out of shared libraries of LLVM, overlapping, as code
//! for several processors is alike.

#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "measure.rs"]
mod measure;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use folder::Folder;
use measure::{Row, measure, print, print_memory};

const OURS: &str = env!("CARGO_BIN_EXE_offload-bundler");
const LLVM: &str = "/usr/lib/llvm-22/bin/clang-offload-bundler";
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1",
    "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.22.1",
];
const MIB: u64 = 1 << 20;
const PROCESSORS: [&str; 8] = [
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1201",
];

fn main() {
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = Folder::new();
    let folder = folder.root();
    start_up(folder);
    let images = images(folder);
    plain(folder, &images);
    compressed(folder, &images);
    large(folder);
}

/// Eight images of 64 MiB.
fn images(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for library in LIBRARIES {
        File::open(library)
            .and_then(|mut file| file.read_to_end(&mut all))
            .expect("a library of LLVM");
    }
    let cut = |index: usize| {
        let path = folder.join(format!("image{index}"));
        let size = 64 * MIB as usize;
        let start = index * 8 * MIB as usize % (all.len() - size);
        fs::write(&path, &all[start..start + size]).expect("an image");
        path
    };
    (0..PROCESSORS.len()).map(cut).collect()
}

fn targets() -> String {
    let devices = PROCESSORS.map(|name| format!("hipv4-amdgcn-amd-amdhsa--{name}"));
    format!(
        "-targets=host-x86_64-unknown-linux-gnu-,{}",
        devices.join(",")
    )
}

fn bundling(tool: &str, images: &[PathBuf], output: &Path, more: &[&str]) -> Vec<String> {
    let mut line = vec![
        tool.to_owned(),
        "-type=o".into(),
        "-bundle-align=4096".into(),
        targets(),
    ];
    line.push("-input=/dev/null".into());
    line.extend(
        images
            .iter()
            .map(|image| format!("-input={}", image.display())),
    );
    line.push(format!("-output={}", output.display()));
    line.extend(more.iter().map(|option| (*option).to_owned()));
    line
}

fn unbundling(tool: &str, folder: &Path, input: &Path) -> Vec<String> {
    let mut line = vec![
        tool.to_owned(),
        "-unbundle".into(),
        "-type=o".into(),
        targets(),
    ];
    line.push(format!("-input={}", input.display()));
    line.extend(
        (0..=PROCESSORS.len()).map(|index| format!("-output={}/out{index}", folder.display())),
    );
    line
}

fn listing(tool: &str, input: &Path) -> Vec<String> {
    let input = format!("-input={}", input.display());
    [tool, "-list", "-type=o", &input]
        .map(str::to_owned)
        .to_vec()
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

fn show(title: &str, rows: &[Row], rounds: usize) {
    print(title, measure(rows, rounds));
    print_memory(rows);
}

fn plain(folder: &Path, images: &[PathBuf]) {
    let bundle = folder.join("bundle");
    let names: Vec<String> = images
        .iter()
        .map(|image| image.display().to_string())
        .collect();
    let names = names.join(" ");
    let (copy, shown) = (folder.join("copy"), folder.display());
    show(
        "bundling 8 images of 64 MiB, -bundle-align=4096",
        &[
            Row::new("cat", &shell(&format!("cat {names} > {}", copy.display()))),
            Row::new(
                "clang-offload-bundler 22",
                &bundling(LLVM, images, &bundle, &[]),
            ),
            Row::new("offload-bundler", &bundling(OURS, images, &bundle, &[])),
        ],
        5,
    );
    fs::remove_file(&copy).expect("the copy");
    fs::create_dir_all(folder.join("copies")).expect("a folder");
    show(
        "unbundling them",
        &[
            Row::new(
                "cp",
                &shell(&format!("cp --reflink=never {names} {shown}/copies")),
            ),
            Row::new(
                "clang-offload-bundler 22",
                &unbundling(LLVM, folder, &bundle),
            ),
            Row::new("offload-bundler", &unbundling(OURS, folder, &bundle)),
        ],
        5,
    );
    show(
        "listing them",
        &[
            Row::new("clang-offload-bundler 22", &listing(LLVM, &bundle)),
            Row::new("offload-bundler", &listing(OURS, &bundle)),
        ],
        15,
    );
    fs::remove_dir_all(folder.join("copies")).expect("the copies");
}

fn compressed(folder: &Path, images: &[PathBuf]) {
    let (bundle, packed) = (folder.join("bundle"), folder.join("packed"));
    let theirs = folder.join("packed-llvm");
    let zstd = |options: &str, from: &Path, to: &Path| {
        let (from, to) = (from.display(), to.display());
        shell(&format!("zstd -q -f {options} {from} -o {to}"))
    };
    let frame = folder.join("frame");
    show(
        "bundling and compressing them",
        &[
            Row::new(
                "zstd -T2 -3 --long=27",
                &zstd("-T2 -3 --long=27", &bundle, &frame),
            ),
            Row::new(
                "clang-offload-bundler 22",
                &bundling(LLVM, images, &theirs, &["-compress"]),
            ),
            Row::new(
                "offload-bundler",
                &bundling(OURS, images, &packed, &["-compress"]),
            ),
        ],
        3,
    );
    for (name, path) in [
        ("zstd", &frame),
        ("clang-offload-bundler 22", &theirs),
        ("offload-bundler", &packed),
    ] {
        let size = fs::metadata(path).map_or(0, |file| file.len());
        println!("  {name:<26} size   {:8.1} MiB", size as f64 / MIB as f64);
    }
    show(
        "unbundling the compressed ones",
        &[
            Row::new(
                "zstd -d",
                &zstd("-d --long=27", &frame, &folder.join("copy")),
            ),
            Row::new(
                "clang-offload-bundler 22",
                &unbundling(LLVM, folder, &packed),
            ),
            Row::new("offload-bundler", &unbundling(OURS, folder, &packed)),
        ],
        3,
    );
    show(
        "listing the compressed ones",
        &[
            Row::new("clang-offload-bundler 22", &listing(LLVM, &packed)),
            Row::new("offload-bundler", &listing(OURS, &packed)),
        ],
        9,
    );
    for name in ["bundle", "packed", "packed-llvm", "frame", "copy"] {
        fs::remove_file(folder.join(name)).expect("an output");
    }
}

/// One image of 5 GiB, which LLVM's tool must have in memory.
fn large(folder: &Path) {
    let image = folder.join("large");
    let mut file = File::create(&image).expect("a large image");
    let mut part = vec![0; 64 * MIB as usize];
    let mut library = File::open(LIBRARIES[0]).expect("a library of LLVM");
    library.seek(SeekFrom::Start(0)).expect("its start");
    library.read_exact(&mut part).expect("its first part");
    for _ in 0..80 {
        std::io::Write::write_all(&mut file, &part).expect("room for 5 GiB");
    }
    drop(file);
    let line = |tool: &str| {
        let input = format!("-input={}", image.display());
        let output = format!("-output={}/bundle", folder.display());
        let targets = "-targets=hipv4-amdgcn-amd-amdhsa--gfx942";
        [
            tool,
            "-type=bc",
            "-bundle-align=4096",
            targets,
            &input,
            &output,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let (from, to) = (image.display(), folder.join("copy"));
    let rows = [
        Row::new(
            "cp",
            &shell(&format!("cp --reflink=never {from} {}", to.display())),
        ),
        Row::new("clang-offload-bundler 22", &line(LLVM)),
        Row::new("offload-bundler", &line(OURS)),
    ];
    show("bundling one image of 5 GiB", &rows, 1);
}

/// What a build pays that calls the tool once for each object.
fn start_up(folder: &Path) {
    let version = |tool: &str| vec![tool.to_owned(), "--version".to_owned()];
    print(
        "--version",
        measure(
            &[
                Row::new("clang-offload-bundler 22", &version(LLVM)),
                Row::new("offload-bundler", &version(OURS)),
            ],
            50,
        ),
    );
    let image = folder.join("tiny");
    fs::write(&image, "code").expect("an image");
    let many = |tool: &str, count: usize| {
        shell(&format!(
            "for n in $(seq {count}); do {tool} -type=bc -targets=hip-amdgcn-amd-amdhsa--gfx906 \
             -input={} -output={}/out; done",
            image.display(),
            folder.display()
        ))
    };
    print(
        "5,000 bundles of 4 bytes, one after the other",
        measure(
            &[
                Row::new("clang-offload-bundler 22", &many(LLVM, 5000)),
                Row::new("offload-bundler", &many(OURS, 5000)),
            ],
            1,
        ),
    );
}
