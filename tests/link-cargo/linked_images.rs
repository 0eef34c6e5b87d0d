//! `cargo offload inspect` of programs and libraries that Intel's compiler links.

use std::process::Command;

use crate::support::folder::Folder;
use crate::support::{run, tool};

/// Section, format, kind, form and size of an image.
type Listed = (String, String, String, String, u64);

/// Images as Intel's compiler links them: those of each target one after the other, and a table of all.
const LINKED_IMAGES: &str = r#"
.globl _start
_start: ret
.section __CLANG_OFFLOAD_BUNDLE__sycl-spir64, "a"
.p2align 4
first: .long 0x07230203, 0x10000, 0, 1, 0
first_end:
.p2align 4
second: .long 0x07230203, 0x10000, 0, 2, 0, 0x20011, 6
second_end:
.section __CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen, "a"
.p2align 4
third: .ascii "compiled"
third_end:
.section .tgtimg, "aw"
.p2align 4
.quad first, first_end - first
.quad third, third_end - third
.quad second, second_end - second
.section .note.GNU-stack, "", @progbits
"#;

/// Links assembly to the file `linked`.
fn link(folder: &Folder, source: &str, flags: &[&str]) {
    folder.write("k.s", source);
    let mut command = folder.command("cc");
    command
        .args(["-nostdlib", "k.s", "-o", "linked"])
        .args(flags);
    run(&mut command);
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.command(env!("CARGO_BIN_EXE_cargo-offload"));
    command.arg("offload").args(arguments);
    command
}

/// Tells whether a command succeeds, and what it prints to standard error.
fn said(folder: &Folder, arguments: &[&str]) -> (bool, String) {
    let output = command(folder, arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), text)
}

/// Lists the images of the file `linked`, whose problems are errors.
fn listed(folder: &Folder) -> Vec<Listed> {
    listed_with(folder, &[])
}

fn listed_with(folder: &Folder, options: &[&str]) -> Vec<Listed> {
    let arguments = [&["inspect", "--json", "linked"], options].concat();
    images_in(&run(&mut command(folder, &arguments)))
}

fn images_in(json: &str) -> Vec<Listed> {
    let found: serde_json::Value = serde_json::from_str(json).unwrap();
    let containers = found["files"][0]["containers"].as_array().unwrap();
    let containers = containers.iter().flat_map(|container| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (section, format) = (text(&container["section"]), text(&container["format"]));
        let images = container["images"].as_array().unwrap().iter();
        images.map(move |image| {
            let size = image["size"].as_u64().unwrap();
            let (kind, form) = (text(&image["kind"]), text(&image["form"]));
            (section.clone(), format.clone(), kind, form, size)
        })
    });
    containers.collect()
}

fn other(section: &str, format: &str, kind: &str, form: &str, size: u64) -> Listed {
    let [section, format, kind, form] = [section, format, kind, form].map(str::to_owned);
    (section, format, kind, form, size)
}

fn image(target: &str, form: &str, size: u64) -> Listed {
    let section = format!("__CLANG_OFFLOAD_BUNDLE__sycl-{target}");
    other(&section, "linked images", "sycl", form, size)
}

fn all() -> [Listed; 3] {
    [
        image("spir64", "SPIR-V", 20),
        image("spir64", "SPIR-V", 28),
        image("spir64_gen", "unknown", 8),
    ]
}

/// Returns the images' file with other text in the place of a part.
fn changed(part: &str, text: &str) -> String {
    assert!(LINKED_IMAGES.contains(part), "{part}");
    LINKED_IMAGES.replace(part, text)
}

#[test]
fn lists_each_image_of_linked_sycl_libraries() {
    let folder = Folder::new();
    let all = all();
    // The addresses are relative relocations, packed ones, or words of the file.
    let packed = ["-pie", "-Wl,-z,pack-relative-relocs"];
    for flags in [&["-shared"][..], &packed, &["-no-pie"]] {
        link(&folder, LINKED_IMAGES, flags);
        assert_eq!(listed(&folder), all, "{flags:?}");
    }
    if let Some(lld) = tool("llvm22", &["ld.lld-22"]) {
        // Its words are 0 before they are relocated.
        run(folder.command("cc").args(["-c", "k.s", "-o", "k.o"]));
        run(folder
            .command(&lld)
            .args(["-shared", "k.o", "-o", "linked"]));
        assert_eq!(listed(&folder), all);
    }
    run(folder
        .command(env!("CARGO_BIN_EXE_cargo-offload"))
        .args(["offload", "extract", "--out", "images", "linked"]));
    let second = [0x0723_0203_u32, 0x10000, 0, 2, 0, 0x20011, 6].map(u32::to_le_bytes);
    assert_eq!(folder.read("images/1-spir64--.spv"), second.concat());
    assert!(said(&folder, &["verify", "--deny=warnings", "linked"]).0);
    let (is_done, text) = said(
        &folder,
        &["prune", "--keep=gfx90a", "linked", "-o", "pruned"],
    );
    assert!(!is_done && text.contains("are not pruned"), "{text}");
}

#[test]
fn reports_images_that_the_table_does_not_list() {
    let folder = Folder::new();
    let fails = |source: &str, expected: &str| {
        link(&folder, source, &["-shared"]);
        let (is_done, text) = said(&folder, &["inspect", "linked"]);
        assert!(!is_done && text.contains(expected), "{text}");
    };
    fails(
        &changed(".quad third, third_end - third\n", ""),
        "section `.tgtimg` lists no image in section `__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen`, which may contain several: it is shown as one\n",
    );
    fails(
        &changed(".quad third,", ".quad 0x123456,"),
        "entry 1 of section `.tgtimg` is not in a section that the program loads\n",
    );
    // Two gaps: 0x40 bytes after the first image, and the second image.
    let gaps = changed("first_end:\n", "first_end:\n.skip 0x40\n");
    let gaps = gaps.replace("second_end:\n", ".p2align 4\nsecond_end: .long 1\nlast:\n");
    let gaps = gaps.replace(
        ".quad second, second_end - second",
        ".quad second, 4\n.quad second_end, last - second_end",
    );
    link(&folder, &gaps, &["-shared"]);
    let (is_done, text) = said(&folder, &["inspect", "linked"]);
    let expected = "section `.tgtimg` lists no image for 0x68 bytes of section `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`, the first at offset 0x";
    assert!(!is_done && text.contains(expected), "{text}");
    assert_eq!(text.matches("lists no image").count(), 1, "{text}");
}

/// Old GNU linkers drop the table with `--gc-sections`.
#[test]
fn accepts_linked_files_without_the_table() {
    let folder = Folder::new();
    link(&folder, &changed(".tgtimg", ".others"), &["-shared"]);
    let expected = [
        image("spir64", "SPIR-V", 60),
        image("spir64_gen", "unknown", 8),
    ];
    assert_eq!(listed(&folder), expected);
}

/// Newer compilers write the images of all targets into one section.
#[test]
fn lists_linked_images_in_other_sections() {
    let folder = Folder::new();
    let name = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64";
    let code = |form, size| other("OFFLOAD_DEVICE_CODE", "linked images", "", form, size);
    let new = LINKED_IMAGES
        .replace(
            "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen",
            "OFFLOAD_DEVICE_CODE",
        )
        .replace(name, "OFFLOAD_DEVICE_CODE");
    let expected = [code("SPIR-V", 20), code("unknown", 8), code("SPIR-V", 28)];
    for flags in [["-shared"], ["-no-pie"]] {
        link(&folder, &new, &flags);
        assert_eq!(listed(&folder), expected, "{flags:?}");
        // The search does not find them again.
        assert_eq!(listed_with(&folder, &["--search-data"]), expected);
    }
    run(&mut command(
        &folder,
        &["extract", "--out", "images", "linked"],
    ));
    assert!(said(&folder, &["verify", "linked"]).0);
    let prune = ["prune", "--keep=gfx90a", "linked", "-o", "pruned"];
    let (is_done, text) = said(&folder, &prune);
    assert!(!is_done && !folder.root().join("pruned").exists(), "{text}");

    // Objects of both compilers.
    link(
        &folder,
        &changed(
            "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen",
            "OFFLOAD_DEVICE_CODE",
        ),
        &["-shared"],
    );
    let expected = [
        image("spir64", "SPIR-V", 20),
        image("spir64", "SPIR-V", 28),
        code("unknown", 8),
    ];
    assert_eq!(listed(&folder), expected);

    // The list of offload binaries is in themselves.
    let two = include_bytes!("../golden/22.1.8/two-images.offload-binary");
    folder.write("two.bin", two);
    let section = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen";
    let start = changed(section, ".llvm.offloading");
    let start = start.replace(".ascii \"compiled\"", ".incbin \"two.bin\"");
    link(&folder, &start, &["-shared"]);
    let found = listed(&folder);
    let formats: Vec<&str> = found.iter().map(|image| &*image.1).collect();
    let expected = [
        "offload binary",
        "offload binary",
        "linked images",
        "linked images",
    ];
    assert_eq!(formats, expected);
}

/// Bundles of objects whose sections are not excluded from the link, and names that are no target's.
#[test]
fn lists_linked_images_next_to_bundles_of_objects() {
    let folder = Folder::new();
    let bundle = ".section __CLANG_OFFLOAD_BUNDLE__sycl-spir64_fpga, \"\"\n.ascii \"object\"\n";
    link(&folder, &[LINKED_IMAGES, bundle].concat(), &["-shared"]);
    let name = "bundle in sections";
    let mut expected = vec![other("", name, "sycl", "unknown", 6)];
    expected.extend(all());
    assert_eq!(listed(&folder), expected);

    let long = format!("__CLANG_OFFLOAD_BUNDLE__{}", "x".repeat(256));
    for section in [&long, "__CLANG_OFFLOAD_BUNDLE__\\377"] {
        let odd = format!(".section \"{section}\", \"a\"\n.ascii \"odd\"\n");
        link(&folder, &[LINKED_IMAGES, &odd].concat(), &["-shared"]);
        let inspect = ["inspect", "--json", "linked"];
        let output = command(&folder, &inspect).output().unwrap();
        let found = images_in(std::str::from_utf8(&output.stdout).unwrap());
        assert!(found.ends_with(&all()), "{found:?}");
    }
}

#[test]
fn reports_linked_images_outside_the_file() {
    let folder = Folder::new();
    let empty = ".section __CLANG_OFFLOAD_BUNDLE__sycl-spir64_fpga, \"aw\", @nobits\n.skip 64\n";
    link(&folder, &[LINKED_IMAGES, empty].concat(), &["-shared"]);
    assert_eq!(listed(&folder), all());

    // The size of the section with the images for `spir64` is too large.
    let mut bytes = folder.read("linked");
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let headers = word(&bytes, 0x28) as usize;
    let mut sizes = (headers + 0x20..bytes.len()).step_by(0x40);
    let size = sizes.find(|at| word(&bytes, *at) == 60).unwrap();
    bytes[size + 4] = 1;
    folder.write("linked", bytes);
    let (is_done, text) = said(&folder, &["inspect", "linked"]);
    assert!(
        !is_done && text.contains("with size 0x10000003c runs past the end"),
        "{text}"
    );
    assert!(!text.contains("which may contain several"), "{text}");
}

#[test]
fn reports_problems_of_linked_images_that_overlap() {
    let folder = Folder::new();
    let many = changed(
        ".quad third,",
        ".rept 200\n.quad first, 0x4000\n.endr\n.quad 0x123456,",
    );
    let many = many.replace("second_end:\n", "second_end:\n.skip 0x8000\n");
    link(&folder, &many, &["-shared"]);
    let (is_done, text) = said(&folder, &["inspect", "linked"]);
    assert!(
        !is_done && text.contains("images overlap too often"),
        "{text}"
    );
    assert!(text.contains("entry 201 of section `.tgtimg`"), "{text}");
}

#[test]
fn lists_empty_images_at_the_end_of_their_section() {
    let folder = Folder::new();
    let empty = changed(
        ".quad third, third_end - third\n",
        ".quad third, third_end - third\n.quad third_end, 0\n",
    );
    link(&folder, &empty, &["-shared"]);
    let mut expected = all().to_vec();
    expected.push(image("spir64_gen", "empty", 0));
    assert_eq!(listed(&folder), expected);
}

/// Written by `fatbinary` of CUDA 13.5: two cubins.
const FATBIN: &[u8] = include_bytes!("../golden/cuda-13.5/two-images.fatbin");

/// Returns a zstd frame (RFC 8878) of `content` in a raw block and a number of zeros in a block of one repeated byte.
fn frame(content: &[u8], zeros: u32) -> Vec<u8> {
    let size = content.len() as u32;
    // A single segment without a checksum, whose size has 4 bytes.
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    // Bit 0: the last block; bits 1 and 2: 0 for raw bytes, 1 for one byte that is repeated.
    let [raw, repeated] = [size << 3, (zeros << 3) | 0b11].map(u32::to_le_bytes);
    let size = (size + zeros).to_le_bytes();
    [&header[..], &size, &raw[..3], content, &repeated[..3], &[0]].concat()
}

/// The second image of the assembly.
fn second() -> Vec<u8> {
    let words = [0x0723_0203_u32, 0x10000, 0, 2, 0, 0x20011, 6];
    words.map(u32::to_le_bytes).concat()
}

/// Images as Intel's compiler links them with `--offload-compress`: the table has the uncompressed size of a frame. The
/// second image is a frame of 1000 bytes. Another one follows after padding, for which `last` is the size in the table.
fn compressed(folder: &Folder, last: usize) -> String {
    folder.write("second.zst", frame(&second(), 972));
    folder.write("last.zst", frame(FATBIN, 0));
    let words = ".long 0x07230203, 0x10000, 0, 2, 0, 0x20011, 6";
    let source = changed(
        words,
        ".incbin \"second.zst\"\n.p2align 4\nlast: .incbin \"last.zst\"",
    );
    let entries = format!(".quad second, 1000\n.quad last, {last}");
    source.replace(".quad second, second_end - second", &entries)
}

fn compressed_files(folder: &Folder, json: &str) -> Vec<(String, String, u64, u64)> {
    let found: serde_json::Value = serde_json::from_str(json).unwrap();
    let images = found["files"][0]["containers"][0]["images"].as_array();
    let of = |image: &serde_json::Value| {
        let text = |key: &str| image[key].as_str().unwrap_or_default().to_owned();
        let [offset, size] = ["offset", "stored_size"].map(|key| image[key].as_u64().unwrap());
        let stored = &folder.read("linked")[offset as usize..][..size as usize];
        let is_frame = stored.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        assert_eq!(is_frame, !text("compression").is_empty());
        (
            text("form"),
            text("compression"),
            image["size"].as_u64().unwrap(),
            size,
        )
    };
    images.unwrap().iter().map(of).collect()
}

#[test]
fn unpacks_compressed_images_of_linked_sycl_libraries() {
    let folder = Folder::new();
    let source = compressed(&folder, FATBIN.len());
    let size = FATBIN.len() as u64;
    let expected = [
        ("SPIR-V", "", 20, 20),
        ("SPIR-V", "zstd", 1000, 44),
        ("container", "zstd", size, size + 16),
    ];
    let expected = expected
        .map(|(form, packed, size, stored)| (form.to_owned(), packed.to_owned(), size, stored));
    let other = source
        .replace("__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen", ".others")
        .replace("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", "OFFLOAD_DEVICE_CODE");
    for source in [&source, &other] {
        link(&folder, source, &["-shared"]);
        let json = run(&mut command(&folder, &["inspect", "--json", "linked"]));
        assert_eq!(compressed_files(&folder, &json), expected);
        assert!(said(&folder, &["verify", "--deny=warnings", "linked"]).0);
        let out = run(&mut command(
            &folder,
            &["extract", "--out", "images", "linked"],
        ));
        let files: Vec<&str> = out.lines().collect();
        let [first, unpacked, sm_80, sm_100a, ..] = files[..] else {
            panic!("{out}");
        };
        assert_eq!(folder.read(first).len(), 20);
        assert_eq!(folder.read(unpacked), [second(), vec![0; 972]].concat());
        // Offsets and sizes of the images: the golden test of `format/fatbin.rs`.
        for (file, start) in [(sm_80, 0x50), (sm_100a, 0xc70)] {
            let image = folder.read(file);
            assert_eq!(image, FATBIN[start..][..image.len()]);
            assert!(image.starts_with(b"\x7fELF"), "{file}");
        }
    }
    link(&folder, &source, &["-shared"]);
    let text = run(&mut command(&folder, &["inspect", "linked"]));
    assert!(text.contains(", zstd, 44 B stored\n"), "{text}");
    let text = run(&mut command(&folder, &["size", "--json", "linked"]));
    let sizes: serde_json::Value = serde_json::from_str(&text).unwrap();
    let container = &sizes["containers"][0];
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert_eq!(number(&container["unpacked"]), 20 + 1000 + 2984 + 4848);
    // No more than the section, which the compressed fat binary's images share.
    let images = container["images"].as_array().unwrap();
    let stored: u64 = images.iter().map(|image| number(&image["stored"])).sum();
    let whole = number(&container["stored"]);
    assert!((whole - 4..=whole).contains(&stored), "{text}");
}

#[test]
fn reports_damaged_compressed_images_and_lists_the_others() {
    let folder = Folder::new();
    let size = FATBIN.len();
    let fails = |options: &[&str], expected: &str, count: usize| {
        let inspect = [&["inspect", "--json", "linked"], options].concat();
        let output = command(&folder, &inspect).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains(expected),
            "{text}"
        );
        assert_eq!(text.matches("error:").count(), 1, "{text}");
        let json = String::from_utf8(output.stdout).unwrap();
        assert_eq!(images_in(&json).len(), count, "{json}");
        let (is_done, text) = said(&folder, &["verify", "linked"]);
        assert_eq!(is_done, !options.is_empty(), "{text}");
    };
    let place = "section `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`: image 2 at offset 0x";
    for (wrong, found) in [
        (size - 1, "more".to_owned()),
        (size + 1, format!("{size:#x}")),
    ] {
        link(&folder, &compressed(&folder, wrong), &["-shared"]);
        fails(
            &[],
            &format!(": expected {wrong:#x} bytes in the zstd frame, found {found}\n"),
            3,
        );
        fails_at(&folder, place);
    }
    link(&folder, &compressed(&folder, size), &["-shared"]);
    fails(
        &["--max-decompressed-size=1100"],
        "is more than the allowed 0x64\nhint: ",
        3,
    );
    // The type of the first image's first block, and the size of the last one's.
    let good = folder.read("linked");
    let find = |bytes: &[u8]| {
        good.windows(bytes.len())
            .position(|part| part == bytes)
            .unwrap()
    };
    let [second, last] = [frame(&second(), 972), frame(FATBIN, 0)].map(|frame| find(&frame) + 9);
    for (place, byte) in [(second, good[second] | 0b110), (last + 2, 0xff)] {
        let mut bad = good.clone();
        bad[place] = byte;
        folder.write("linked", bad);
        fails(&[], ": the zstd frame is damaged: ", 3);
    }
    let out = command(&folder, &["extract", "--out", "images", "linked"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap().lines().count(), 3);
}

/// Assembly of compressed images in one section, each with its size in the table.
fn only_compressed(folder: &Folder, images: &[(Vec<u8>, u64)]) -> String {
    let mut code = ".section OFFLOAD_DEVICE_CODE, \"a\"\n".to_owned();
    let mut table = ".section .tgtimg, \"aw\"\n.p2align 4\n".to_owned();
    for (index, (bytes, size)) in images.iter().enumerate() {
        folder.write(format!("{index}.zst"), bytes);
        code += &format!("image{index}: .incbin \"{index}.zst\"\n");
        table += &format!(".quad image{index}, {size}\n");
    }
    let end = ".section .note.GNU-stack, \"\", @progbits\n";
    [".globl _start\n_start: ret\n", &code, &table, end].concat()
}

#[test]
fn lists_the_images_after_one_with_a_damaged_size() {
    let folder = Folder::new();
    let good = (frame(&second(), 972), 1000);
    // Entries may share a frame.
    let damaged = (frame(&second(), 1), 1 << 40);
    let mut source = only_compressed(&folder, &[damaged, good.clone(), good]);
    source = source.replace(".section .note", ".quad image1, 1000\n.section .note");
    link(&folder, &source, &["-shared"]);
    // Enough for two frames, which are three images.
    let options = [
        "inspect",
        "--json",
        "linked",
        "--max-decompressed-size=2000",
    ];
    let output = command(&folder, &options).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    assert!(text.contains("0x10000000000 is more than"), "{text}");
    let found = images_in(std::str::from_utf8(&output.stdout).unwrap());
    let sizes: Vec<u64> = found.iter().map(|image| image.4).collect();
    assert_eq!(sizes, [1000; 3]);
}

/// Sections with the same frame are not all read.
#[test]
fn reports_compressed_images_in_sections_that_overlap() {
    let folder = Folder::new();
    folder.write("frame", frame(&[7; 0x8000], 0));
    let (mut code, mut table) = (String::new(), String::new());
    for index in 0..40 {
        code += &format!(".section other{index}, \"a\"\nmany{index}: .quad 0x1234567\n");
        table += &format!(".quad many{index}, 0x8000\n");
    }
    let source = changed(".ascii \"compiled\"", ".incbin \"frame\"");
    let source = source.replace(".section .note", &format!("{table}{code}.section .note"));
    link(&folder, &source, &["-shared"]);
    // The other sections get the place of the frame in the file, and its size.
    let mut bytes = folder.read("linked");
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let places = (word(&bytes, 0x28) as usize..bytes.len()).step_by(0x40);
    let size = 0x8000 + 16;
    let is_frame = |at: &usize| word(&bytes, at + 0x20) == size;
    let frame = places.clone().find(is_frame).unwrap();
    let place = bytes[frame + 0x18..frame + 0x28].to_vec();
    let is_small = |bytes: &[u8], at: usize| {
        let offset = word(bytes, at + 0x18) as usize;
        word(bytes, at + 0x20) == 8 && bytes[offset..].starts_with(&[0x67, 0x45, 0x23, 1])
    };
    let small: Vec<usize> = places.filter(|at| is_small(&bytes, *at)).collect();
    assert_eq!(small.len(), 40);
    for at in small {
        bytes[at + 0x18..at + 0x28].copy_from_slice(&place);
    }
    folder.write("linked", bytes);
    let (is_done, text) = said(&folder, &["inspect", "linked"]);
    let expected = "sections with compressed images overlap too often\n";
    assert!(!is_done && text.contains(expected), "{text}");
}

/// A compressed bundle in a frame: its images are in its own bytes.
#[test]
fn extracts_images_of_compressed_bundles_in_compressed_images() {
    let bundle = include_bytes!("../golden/22.1.8/compressed.bundle");
    let folder = Folder::new();
    folder.write("bundle", bundle);
    let extract = |file, out| {
        let text = run(&mut command(&folder, &["extract", "--out", out, file]));
        let contents = text.lines().map(|file| folder.read(file));
        contents.collect::<Vec<_>>()
    };
    let expected = extract("bundle", "expected");
    assert!(!expected.is_empty());
    let image = (frame(bundle, 0), bundle.len() as u64);
    // Other bytes are at the bundle's place in the file.
    let source = only_compressed(&folder, &[(frame(&second(), 0), 28), image]);
    link(&folder, &source, &["-shared"]);
    let found = extract("linked", "found");
    assert_eq!(found[0], second());
    assert_eq!(found[1..], expected);
    assert!(said(&folder, &["verify", "linked"]).0);
}

/// Pruning does not unpack the images, but knows them.
#[test]
fn warns_of_compressed_images_that_stay() {
    let folder = Folder::new();
    let source = only_compressed(&folder, &[(frame(&second(), 972), 1000)]);
    link(&folder, &source, &["-shared"]);
    folder.write("tree/linked", folder.read("linked"));
    for arguments in [
        &["prune", "--keep=gfx90a", "--in-place", "-r", "tree"][..],
        &["compress", "-r", "--in-place", "tree"],
    ] {
        let (_, text) = said(&folder, arguments);
        assert!(text.contains("its device images stay: "), "{text}");
    }
}

fn fails_at(folder: &Folder, place: &str) {
    let (_, text) = said(folder, &["inspect", "linked"]);
    assert!(text.contains(place), "{text}");
}
