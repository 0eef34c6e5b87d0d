//! `cargo offload prune`: device code that programs of the medium and large code models use by its address.

use std::path::Path;

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle;
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::LlvmRelease;
use serde_json::Value;

use super::prune::{cc, check, folder, printed, prune, pruned, size, without_others};
use crate::support::run;
use std::num::NonZeroU64;
use std::process::Command;

/// Two units in `.lrodata`. The program prints a checksum of one of them.
const LARGE: &str = r#"
#include <stdio.h>
__asm__(".section .lrodata,\"al\",@progbits\n.p2align 12\n.globl large_one\n.hidden large_one\nlarge_one:\n.incbin \"one\"\n"
        ".p2align 12\n.globl large_two\n.hidden large_two\nlarge_two:\n.incbin \"two\"\n.previous\n");
extern const unsigned char large_one[] __attribute__((visibility("hidden")));
extern const unsigned char large_two[] __attribute__((visibility("hidden")));
#ifndef UNIT
#define UNIT large_two
#endif
#ifdef REGISTERED
struct wrapper { unsigned magic, version; const void *unit; void *unused; };
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper large_wrappers[2] = {
  {0x48495046, 1, large_one, 0}, {0x48495046, 1, large_two, 0}};
#endif
int large(void) {
  const unsigned char *at = UNIT + PLACE;
  __asm__ volatile("" : "+r"(at));
  unsigned hash = 5381;
  for (int i = 0; i < 100000; i++) hash = hash * 33 + at[i];
  printf("large %u\n", hash);
  return 0;
}
"#;
/// An OpenMP descriptor whose image is in an offload binary in `.lrodata`, and a symbol inside that image.
const TABLE: &str = r#"
__asm__(".section .lrodata,\"al\",@progbits\n.p2align 3\n.globl start\n.hidden start\nstart:\n.incbin \"binary\"\n"
        ".previous\n.globl inside\n.hidden inside\n.set inside, start + 200\n");
extern const char start[] __attribute__((visibility("hidden")));
int entries[1];
struct image { const char *start, *end; int *entries, *entries_end; };
struct image table[1] = {{start + START, start + START + 500, entries, entries + 1}};
struct { int count; struct image *images; int *entries, *entries_end; } descriptor = {1, table, entries, entries + 1};
"#;
const CALLS_BOTH: &str =
    "int images(void), large(void); int main(void) { return images() | large(); }\n";

/// Prunes what libtorch_cuda.so of PyTorch 2.15 has: code that uses fat binaries in large data by their addresses.
#[test]
fn leaves_large_data_that_code_uses_by_its_address() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    folder.write("large.c", LARGE);
    folder.write("both.c", CALLS_BOTH);
    let compiler = Path::new("cc");
    for (code, link) in [("-fPIC", "-pie"), ("-fno-pic", "-no-pie")] {
        for defined in [
            &["-DPLACE=0"][..],
            &["-DPLACE=24"],
            &["-DPLACE=0", "-DREGISTERED"],
            &["-DPLACE=24", "-DREGISTERED"],
            // The first one keeps its address, and gets other bytes at this place.
            &["-DPLACE=0x2000", "-DREGISTERED", "-DUNIT=large_one"],
        ] {
            let what = format!("{link} {defined:?}");
            let model = ["-mcmodel=large", "-O1", code, "-c", "large.c", "-o", "l.o"];
            cc(&folder, compiler, &[&model, defined].concat());
            let sources = ["both.c", "images.c", "l.o", code, link, "-o", "k"];
            cc(&folder, compiler, &sources);
            let before = printed(&folder, &["./k"]);
            let large = before.lines().last().unwrap();
            assert!(large.starts_with("large "), "{what}: {before}");
            let expected = format!("{}{large}\n", without_others(&before, &["gfx1100"]));
            let output = prune(&folder, &["--keep=gfx1100", "--json", "k", "-o", "small"]);
            assert!(output.status.success(), "{what}: {output:?}");
            assert_eq!(printed(&folder, &["./small"]), expected, "{what}");
            assert!(
                size(&folder, "small") + 1_000_000 < size(&folder, "k"),
                "{what}"
            );
            let said = String::from_utf8(output.stderr).unwrap();
            let warning = "warning: k: section `.lrodata`: 2 bundles or CUDA fat binaries stay as they are, because the program may \
                           use them by their addresses: the one at offset 0x";
            assert!(said.contains(warning), "{what}: {said}");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let file = &report["files"][0];
            assert_eq!(file["left"].as_array().unwrap().len(), 1, "{what}: {file}");
            // Those in `.lrodata` stay, and so do both of the wanted target.
            let images = |map: &str| {
                let rows = file[map].as_array().unwrap().iter();
                rows.map(|row| row["images"].as_u64().unwrap()).sum::<u64>()
            };
            assert_eq!((images("kept"), images("removed")), (8, 4), "{file}");
        }
    }
}

#[test]
fn refuses_a_file_with_nothing_but_large_data_in_use() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    folder.write("large.c", LARGE);
    for (defined, expected) in [
        (
            "-DUNREGISTERED",
            "error: k.so: nothing points to the device code at offset 0x",
        ),
        (
            "-DREGISTERED",
            "error: k.so: the program uses the device code at offset 0x",
        ),
    ] {
        let compile = ["-mcmodel=large", "-fPIC", "-shared", "-DPLACE=0", defined];
        let sources = ["large.c", "-o", "k.so"];
        cc(&folder, Path::new("cc"), &[&compile[..], &sources].concat());
        let output = prune(&folder, &["--keep=gfx1100", "k.so", "-o", "none"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{defined}: {said}");
        assert!(!folder.path("none").exists(), "{defined}");
    }
}

/// Only bundles and fat binaries stay as they are, so the problem of offload binaries is the error.
#[test]
fn reports_the_problem_of_offload_binaries_in_large_data() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    let content = [7; 500];
    let image = BinaryImage {
        image: &content,
        ..Default::default()
    };
    let binary = image.to_bytes(LlvmRelease::V22).unwrap();
    let mut places = binary.windows(content.len());
    let start = places.position(|part| part == content).unwrap();
    folder.write("binary", &binary);
    folder.write("table.c", TABLE);
    let start = format!("-DSTART={start}");
    let sources = ["main.c", "images.c", "table.c", "-fPIE", "-pie", "-o", "k"];
    cc(
        &folder,
        Path::new("cc"),
        &[&sources[..], &[&start]].concat(),
    );
    let output = prune(&folder, &["--keep=gfx1100", "k", "-o", "none"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "error: k: a symbol points to address 0x";
    assert!(said.contains(expected), "{said}");
    assert!(!folder.path("none").exists());
}

/// `.lrodata` may stay as it is, so its use is not the error.
#[test]
fn reports_the_problem_that_remains_without_large_data() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    folder.write("large.c", LARGE);
    folder.write("both.c", CALLS_BOTH);
    // `.hip_fatbin` has a unit that would move, and that code uses by its address.
    let used = "extern const char unit_two[] __attribute__((visibility(\"hidden\")));\n\
                const char *used(void) { return unit_two; }\n";
    folder.write("used.c", used);
    let model = ["-mcmodel=large", "-fPIC", "-DPLACE=0", "-c", "large.c"];
    cc(
        &folder,
        Path::new("cc"),
        &[&model[..], &["-o", "l.o"]].concat(),
    );
    let sources = ["both.c", "images.c", "used.c", "l.o", "-fPIE", "-pie"];
    cc(
        &folder,
        Path::new("cc"),
        &[&sources[..], &["-o", "k"]].concat(),
    );
    let output = prune(&folder, &["--keep=gfx1100", "k", "-o", "none"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "error: k: the program uses the device code at offset 0x";
    assert!(said.contains(expected), "{said}");
    assert!(!folder.path("none").exists());
}

/// Returns offset, address and alignment of each loaded segment.
fn loads(folder: &crate::support::folder::Folder, file: &str) -> Vec<[u64; 3]> {
    let mut command = Command::new("readelf");
    let text = run(command.args(["-lW", file]).current_dir(folder.root()));
    let lines = text.lines().map(|line| line.split_whitespace());
    let lines = lines.map(Iterator::collect::<Vec<_>>);
    let loads = lines.filter(|words| words.first() == Some(&"LOAD"));
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    loads
        .map(|words| {
            [
                number(words[1]),
                number(words[2]),
                number(words[words.len() - 1]),
            ]
        })
        .collect()
}

const LOAD: &str = "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n\
                    void *library = dlopen(\"./k.so\", RTLD_NOW);\n\
                    if (!library) { puts(dlerror()); return 1; }\n\
                    return ((int (*)(void))dlsym(library, \"images\"))(); }\n";

/// GNU ld before 2.31 aligns segments to 2 MiB.
#[test]
fn cuts_pages_of_segments_with_a_larger_alignment() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    folder.write("load.c", LOAD);
    let compiler = Path::new("cc");
    cc(&folder, compiler, &["load.c", "-o", "load", "-ldl"]);
    let aligned = "__attribute__((aligned(0x4000))) char aligned[0x4000] = {1};\n";
    folder.write("aligned.c", aligned);
    let kinds: [(&str, &str, &[&str]); 5] = [
        ("k.so", "./load", &["-shared", "-fPIC"]),
        ("k.so", "./load", &["-shared", "-fPIC", "aligned.c"]),
        ("k", "./k", &["main.c", "-fPIE", "-pie"]),
        ("k", "./k", &["main.c", "-fno-pie", "-no-pie"]),
        ("k", "./k", &["main.c", "-fPIE", "-static-pie"]),
    ];
    for (file, command, flags) in kinds {
        let what = format!("{flags:?}");
        let link = ["images.c", "-Wl,-z,max-page-size=0x200000", "-o", file];
        cc(&folder, compiler, &[flags, &link].concat());
        let old = loads(&folder, file);
        assert!(old.iter().all(|load| load[2] == 0x20_0000), "{what}");
        pruned(&folder, &["--keep=gfx1100", file, "-o", "new"]);
        let new = loads(&folder, "new");
        let least = if flags.contains(&"aligned.c") {
            0x4000
        } else {
            0x1000
        };
        for [offset, address, alignment] in &new {
            assert!(*alignment >= least, "{what}: {new:x?}");
            assert_eq!(offset % alignment, address % alignment, "{what}: {new:x?}");
        }
        // What precedes the cut keeps its alignment, and so does the load address.
        assert_eq!(new[0][2], 0x20_0000, "{what}: {new:x?}");
        check(&folder, file, &[command], "strip", &what);
    }
}

/// A cut of pages of 4 KiB may need a program header for which there is no room, as in libraries of GNU ld before 2.31.
#[test]
fn cuts_larger_pages_if_there_is_no_room_for_a_program_header() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = folder();
    folder.write("load.c", LOAD);
    let compiler = Path::new("cc");
    cc(&folder, compiler, &["load.c", "-o", "load", "-ldl"]);
    for (name, first) in [("one", 1_u8), ("two", 11)] {
        let images = [first, first + 1, first + 2].map(|byte| vec![byte; 9000]);
        let ids = ["gfx906", "gfx1100", "gfx1201"];
        let ids = ids.map(|name| format!("hipv4-amdgcn-amd-amdhsa--{name}"));
        let entries: Vec<BundleImage<'_>> = std::iter::zip(&ids, &images)
            .map(|(id, image)| BundleImage { id, image })
            .collect();
        let bundle = bundle::to_bytes(&entries, NonZeroU64::new(4096).unwrap());
        folder.write(name, bundle.unwrap());
    }
    // Their table follows the program headers, and is larger than what is removed.
    let symbols = (0..30_000).map(|index| format!("char s{index};\n"));
    folder.write("symbols.c", symbols.collect::<String>());
    let sources = ["images.c", "symbols.c", "-shared", "-fPIC", "-o", "k.so"];
    let flags = ["-Wl,-z,max-page-size=0x200000,--hash-style=gnu"];
    cc(&folder, compiler, &[&sources[..], &flags].concat());
    let before = printed(&folder, &["./load"]);
    pruned(&folder, &["--keep=gfx1100", "--in-place", "k.so"]);
    let after = printed(&folder, &["./load"]);
    assert_eq!(after.lines().count(), 2, "{before}");
    assert_eq!(after, without_others(&before, &["gfx1100"]));
}

#[test]
fn counts_the_bytes_of_compressed_images() {
    let folder = folder();
    let images = [vec![1; 300_000], vec![2; 100_000], vec![3; 200_000]];
    let names = ["gfx906", "gfx1100", "gfx1201"];
    let ids = names.map(|name| format!("hipv4-amdgcn-amd-amdhsa--{name}"));
    let entries: Vec<BundleImage<'_>> = std::iter::zip(&ids, &images)
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    let bundle = bundle::to_bytes(&entries, NonZeroU64::new(4096).unwrap()).unwrap();
    let packed = compressed_bundle::compress(&bundle, Default::default()).unwrap();
    folder.write("k.hipfb", &packed);
    let text = pruned(
        &folder,
        &["--keep=gfx1100", "--json", "k.hipfb", "-o", "small"],
    );
    let report: Value = serde_json::from_str(&text).unwrap();
    let file = &report["files"][0];
    let rows = ["kept", "removed"].map(|map| file[map].as_array().unwrap());
    let sum = |key: &str| -> u64 {
        let rows = rows.iter().flat_map(|rows| rows.iter());
        rows.map(|row| row[key].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("unpacked"), 600_000, "{file}");
    let stored = sum("size");
    let all = packed.len() as u64;
    assert!((all - 3..=all).contains(&stored), "{all} {file}");
    assert_eq!(rows[0][0]["unpacked"], 100_000);
    assert_eq!(rows[0][0]["size"], all / 6, "{file}");
}
