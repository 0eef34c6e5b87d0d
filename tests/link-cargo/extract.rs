//! `cargo offload extract` beside `cuobjdump`, and on bundles with known images.

use crate::commands::{cargo_offload, done};
use crate::support::folder::Folder;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Output};

use offload_formats::container::archive::{self, NewMember};
use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle;

use crate::support;

fn extract(folder: &Folder, arguments: &[&str]) -> Output {
    cargo_offload(folder, &[&["extract"], arguments].concat())
}

fn extracted(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let text = done(folder, &[&["extract"], arguments].concat());
    text.lines().map(str::to_owned).collect()
}

fn contents(folder: &Path) -> BTreeSet<Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.collect()
}

/// Of every compression that `nvcc` knows.
#[test]
fn extracts_what_cuobjdump_extracts() {
    let Some(nvcc) = support::program("nvcc") else {
        return;
    };
    let Some(cuobjdump) = support::tool("cuda", &["cuobjdump"]) else {
        return;
    };
    let folder = Folder::new();
    let source = "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }\n";
    folder.write("k.cu", source);
    let modes = [
        "--no-compress",
        "--compress-mode=speed",
        "--compress-mode=size",
        "--compress-mode=balance",
    ];
    for mode in modes {
        let theirs = folder.path(format!("theirs{mode}"));
        std::fs::create_dir(&theirs).unwrap();
        support::run(
            Command::new(&nvcc)
                .args(["-c", "k.cu", "-o", "k.o", "-Xfatbin=-compress-all", mode])
                .args(["-gencode=arch=compute_80,code=[sm_80,compute_80]"])
                .args(["-gencode=arch=compute_90,code=sm_90"])
                .current_dir(folder.root()),
        );
        support::run(
            Command::new(&cuobjdump)
                .args(["-xelf", "all", "-xptx", "all", "../k.o"])
                .current_dir(&theirs),
        );
        let ours = format!("ours{mode}");
        let paths = extracted(&folder, &["k.o", "--out", &ours]);
        let mut extensions: Vec<&str> = paths
            .iter()
            .filter_map(|path| path.split('.').nth(1))
            .collect();
        extensions.sort_unstable();
        assert_eq!(extensions, ["cubin", "cubin", "ptx"], "{mode}: {paths:?}");
        let (ours, theirs) = (contents(&folder.path(ours)), contents(&theirs));
        assert_eq!(ours.len(), 3, "{mode}");
        assert!(ours == theirs, "{mode}: images differ");
    }
}

const ENTRIES: [(&str, &[u8]); 3] = [
    ("host-x86_64-unknown-linux-gnu-", b""),
    ("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", b"first image"),
    ("hip-amdgcn-amd-amdhsa--gfx1100", b"second"),
];

fn bundled() -> Vec<u8> {
    let images = ENTRIES.map(|(id, image)| BundleImage { id, image });
    bundle::to_bytes(&images, NonZeroU64::MIN).unwrap()
}

#[test]
fn extracts_from_plain_and_compressed_bundles_and_archives() {
    let plain = bundled();
    let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
    let member = |name, bytes| NewMember {
        name,
        bytes,
        symbols: &[],
    };
    let archive = archive::write(&[member("a.o", &plain), member("b.o", &packed)]);
    let folder = Folder::new();
    folder.write("libk.a", archive);
    let paths = extracted(&folder, &["libk.a", "-o", "images"]);
    let expected = [
        "0-gfx90a-xnack+",
        "1-gfx1100",
        "2-gfx90a-xnack+",
        "3-gfx1100",
    ];
    let expected = expected.map(|name| format!("images/{name}.bin"));
    assert_eq!(paths, expected);
    for (path, image) in std::iter::zip(paths, [1, 2, 1, 2]) {
        let content = std::fs::read(folder.path(&path)).unwrap();
        assert_eq!(content, ENTRIES[image].1, "{path}");
    }
    // Of a thin archive with a missing member, the images of the others are written; it is an error.
    folder.write("k.o", &plain);
    let header = |name: &str| {
        let size = plain.len();
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
    };
    let thin = format!("!<thin>\n{}{}", header("gone/"), header("k.o/"));
    folder.write("thin.a", thin);
    let output = extract(&folder, &["thin.a", "-o", "thin"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("thin.a: member `gone`: "), "{said}");
    assert_eq!(contents(&folder.path("thin")).len(), 2);
}

#[test]
fn selects_images_by_number_target_and_kind() {
    let folder = Folder::new();
    folder.write("k", [bundled(), bundled()].concat());
    for (arguments, expected) in [
        (&["--index", "3"][..], &[3][..]),
        (&["--index=0,2-3"], &[0, 2, 3]),
        (&["--target=gfx90a"], &[0, 2]),
        (&["--target", "gfx90a:xnack+", "--index=1-9"], &[2]),
        (&["--target=amdgcn-amd-amdhsa", "--kind=hip"], &[0, 1, 2, 3]),
    ] {
        let paths = extracted(&folder, &[&["k", "-o", "out"], arguments].concat());
        let numbers = paths
            .iter()
            .map(|path| path["out/".len()..][..1].parse().unwrap());
        assert_eq!(numbers.collect::<Vec<usize>>(), expected, "{arguments:?}");
    }
    // Each argument must select something; what the others select is written.
    let some = ["k", "-o", "some", "--target=gfx90a,gfx942", "--index=0,99"];
    let output = extract(&folder, &some);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: k: no image matches --index 99, --target gfx942\n"
    );
    assert!(folder.path("some/0-gfx90a-xnack+.bin").is_file());
    let kinds = extract(&folder, &["k", "-o", "hip", "--kind=hip,cuda"]);
    assert_eq!(kinds.status.code(), Some(1));
    let error = "error: k: no image matches --kind cuda\n";
    assert_eq!(String::from_utf8(kinds.stderr).unwrap(), error);
    assert_eq!(contents(&folder.path("hip")).len(), 2);
    for unknown in ["--kind=HIP", "--target="] {
        let output = extract(&folder, &["k", "-o", "none", unknown]);
        assert_eq!(output.status.code(), Some(2), "{unknown}");
    }
    let output = extract(&folder, &["k", "-o", "none", "--target=gfx906"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: k: no image matches; the file has images for gfx1100, gfx90a:xnack+\n"
    );
    assert!(!folder.path("none").exists());
}

#[test]
fn selects_images_by_kernel() {
    let folder = Folder::new();
    let head = ".version 7.0\n.target sm_80\n.address_size 64\n";
    let entry = ".visible .entry _ZN2ns5scaleIfEEvPT_(.param .u64 x) { ret; }\n";
    std::fs::write(folder.path("k.ptx"), format!("{head}{entry}")).unwrap();
    let called = [
        "_ZN2ns5scaleIfEEvPT_",
        "ns::scale<float>",
        "void ns::scale<float>(float*)",
    ];
    for name in called {
        let paths = extracted(&folder, &["k.ptx", "-o", "out", "--kernel", name]);
        assert_eq!(paths, ["out/0-compute_80.ptx"], "{name}");
        let output = extract(
            &folder,
            &["k.ptx", "-o", "out", "--kernel=other", "--kernel", name],
        );
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8(output.stderr).unwrap()
            ),
            (
                Some(1),
                "error: k.ptx: no image matches --kernel other\n".to_owned()
            )
        );
    }
    for name in ["scale", "ns::scale<int>"] {
        let output = extract(&folder, &["k.ptx", "-o", "none", "--kernel", name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            error.contains("no image matches") && error.contains("hint: "),
            "{error}"
        );
    }
    assert!(!folder.path("none").exists());
}

#[test]
fn extracts_other_images_if_one_cannot_be_unpacked() {
    let folder = Folder::new();
    let mut fatbin = include_bytes!("../golden/cuda-13.5/lz4.fatbin").to_vec();
    folder.write("k", &fatbin);
    let all = extracted(&folder, &["k", "-o", "images"]);
    // The flags of the image at 0x450 are at 0x438. With 0x10000, nobody but NVIDIA knows the method.
    assert_eq!(fatbin[0x438..0x43c], [0x11, 0x20, 0, 0]);
    fatbin[0x43a] = 1;
    folder.write("k", &fatbin);
    std::fs::rename(folder.path("images"), folder.path("all")).unwrap();
    let error = "error: k: image at offset 0x450: the compression method is unknown \
        (flags 0x12011; lz4 and zstd are supported)\n";
    let output = extract(&folder, &["k", "-o", "images"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), error);
    assert_eq!(output.status.code(), Some(1));
    let paths = String::from_utf8(output.stdout).unwrap();
    let paths: Vec<&str> = paths.lines().collect();
    assert_eq!(paths, [&all[0], &all[2], &all[3]]);
    for path in &paths {
        let expected = folder.read(path.replace("images", "all"));
        assert!(folder.read(path) == expected, "{path}");
    }
    let files = std::fs::read_dir(folder.path("images")).unwrap();
    assert_eq!(files.count(), 3);
    let output = extract(&folder, &["k", "-o", "none", "--index=1"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), error);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(1), &b""[..])
    );
    assert!(!folder.exists("none"));
}

#[test]
fn extracts_other_images_if_a_bundle_is_damaged() {
    let packed = compressed_bundle::compress(&bundled(), Default::default()).unwrap();
    let mut damaged = packed.clone();
    // The hash of version 3 is at 0x18.
    assert_eq!(damaged[4], 3);
    damaged[0x18] ^= 1;
    let member = |name, bytes| NewMember {
        name,
        bytes,
        symbols: &[],
    };
    let members = [
        member("a.o", &packed),
        member("b.o", &damaged),
        member("c.o", &packed),
    ];
    let folder = Folder::new();
    folder.write("libk.a", archive::write(&members));
    let output = extract(&folder, &["libk.a", "-o", "images"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: libk.a: member `b.o`: bundle at offset "),
        "{said}"
    );
    let paths = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "0-gfx90a-xnack+",
        "1-gfx1100",
        "4-gfx90a-xnack+",
        "5-gfx1100",
    ];
    let expected = expected.map(|name| format!("images/{name}.bin"));
    assert_eq!(paths.lines().collect::<Vec<_>>(), expected);
    for (path, image) in std::iter::zip(&expected, [1, 2, 1, 2]) {
        assert_eq!(folder.read(path), ENTRIES[image].1, "{path}");
    }
    let files = std::fs::read_dir(folder.path("images")).unwrap();
    assert_eq!(files.count(), expected.len());
}
