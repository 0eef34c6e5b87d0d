//! Bundles in objects and programs that compilers and linkers make.

use crate::support;

use offload_formats::container::bundles::{FoundBundles, find};
use offload_formats::format::bundle::Bundle;
use offload_formats::format::bundles::AnyBundle;
use offload_formats::format::bytes::ReadCache;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{program, run, tool};

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";

/// Makes a bundle of two images of `letter` with the bundler of LLVM 22, and gives its file.
fn bundle(bundler: &Path, folder: &Path, letter: char, compressed: bool) -> PathBuf {
    let (image, file) = (folder.join("image"), folder.join(letter.to_string()));
    fs::write(&image, letter.to_string().repeat(5000)).unwrap();
    let mut command = Command::new(bundler);
    let targets = [HOST, GFX906].map(|id| id.trim_end_matches('-')).join(",");
    command.args([
        "-type=bc",
        "-bundle-align=4096",
        &format!("-targets={targets}"),
    ]);
    command.args(compressed.then_some("-compress"));
    for _ in 0..2 {
        command.arg("-input").arg(&image);
    }
    run(command.arg("-output").arg(&file));
    file
}

/// An object with a bundle in a section, as clang has it for HIP: at a page.
fn object(folder: &Path, triple: &str, section: &str, bundle: &Path) -> Option<PathBuf> {
    let clang = tool("llvm22", &["clang-22", "clang"])?;
    let name = bundle.file_name().unwrap().to_str().unwrap();
    let (source, object) = (folder.join("a.s"), folder.join(format!("{name}.o")));
    let bundle = bundle.display();
    let text = format!(
        ".section {section}\n.p2align 12\n.globl f{name}\nf{name}:\n.incbin \"{bundle}\"\n"
    );
    fs::write(&source, text).unwrap();
    let mut command = Command::new(clang);
    command.arg(format!("--target={triple}")).arg("-c");
    run(command.arg(source).arg("-o").arg(&object));
    Some(object)
}

/// The file's bundles, read as tools read it; each must hold the two images of its letter.
fn expect(file: &Path, section: &str, letters: &str) -> FoundBundles {
    let data = ReadCache::new(File::open(file).unwrap());
    let found = find(&data, 0..fs::metadata(file).unwrap().len()).unwrap();
    assert_eq!(found.bundles.len(), letters.len(), "{file:?}");
    for (found, letter) in found.bundles.iter().zip(letters.chars()) {
        let name = found.section.clone().unwrap();
        assert_eq!(String::from_utf8(name).unwrap(), section);
        let (all, inner) = match &found.bundle {
            AnyBundle::Plain(bundle) => (fs::read(file).unwrap(), bundle.clone()),
            AnyBundle::Compressed(bundle) => {
                let inner = bundle.contents(&data).unwrap().unwrap();
                let mut all = Vec::new();
                bundle.decompress_to(&data, &mut all).unwrap();
                (all, inner)
            }
        };
        let ids: Vec<&str> = inner
            .entries
            .iter()
            .map(|entry| entry.id.as_str())
            .collect();
        assert_eq!(ids, [HOST, GFX906]);
        let expected = letter.to_string().repeat(5000);
        for image in images(&all, &inner) {
            assert!(image == expected.as_bytes(), "{file:?}: {letter}");
        }
    }
    assert_eq!(found.trailing, []);
    found
}

fn images<'a>(bytes: &'a [u8], bundle: &Bundle) -> Vec<&'a [u8]> {
    let images = bundle.entries.iter().map(|entry| entry.image.clone());
    images
        .map(|image| &bytes[image.start as usize..image.end as usize])
        .collect()
}

/// Bundles in a folder: of a and b plain, of c and d compressed.
fn with_bundles(test: impl Fn(&Path, &dyn Fn(char) -> PathBuf)) {
    let Some(bundler) = tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bundle = |letter| bundle(&bundler, folder.path(), letter, letter > 'b');
    test(folder.path(), &bundle);
}

#[test]
fn finds_bundles_in_objects_of_every_kind() {
    with_bundles(|folder, bundle| {
        let elf = ".hip_fatbin,\"a\",@progbits";
        for triple in [
            "x86_64-linux-gnu",
            "i386-linux-gnu",
            "powerpc-linux-gnu",
            "s390x-linux-gnu",
        ] {
            for letter in ['a', 'c'] {
                let Some(object) = object(folder, triple, elf, &bundle(letter)) else {
                    return;
                };
                expect(&object, ".hip_fatbin", &letter.to_string());
            }
        }
        for triple in [
            "x86_64-pc-windows-msvc",
            "i686-pc-windows-gnu",
            "aarch64-pc-windows-msvc",
        ] {
            let name = ".hip_fatbin,\"dr\"";
            let Some(object) = object(folder, triple, name, &bundle('c')) else {
                return;
            };
            expect(&object, ".hip_fatbin", "c");
        }
    });
}

#[test]
fn finds_what_linkers_concatenate() {
    with_bundles(|folder, bundle| {
        let elf = ".hip_fatbin,\"a\",@progbits";
        let objects = ['a', 'c', 'd', 'b'];
        let objects =
            objects.map(|letter| object(folder, "x86_64-linux-gnu", elf, &bundle(letter)));
        let linkers = [program("ld"), tool("llvm22", &["ld.lld-22", "ld.lld"])];
        for linker in linkers.into_iter().flatten() {
            for mode in ["-shared", "-r", "-no-pie"] {
                let output = folder.join("linked");
                let mut command = Command::new(&linker);
                command.args([mode, "-e", "fa", "-o"]).arg(&output);
                run(command.args(objects.iter().flatten()));
                let found = expect(&output, ".hip_fatbin", "acdb");
                let pages = found
                    .bundles
                    .iter()
                    .map(|found| found.bundle.range().start % 4096);
                // An object need not have its sections at pages, whatever their alignment.
                assert!(mode == "-r" || pages.max() == Some(0));
            }
        }
    });
}

/// Images have room for eight bytes of a section's name.
#[test]
fn finds_what_linkers_concatenate_for_windows() {
    with_bundles(|folder, bundle| {
        let Some(linker) = tool("llvm22", &["lld-link-22", "lld-link"]) else {
            return;
        };
        let triple = "x86_64-pc-windows-msvc";
        for (section, linked) in [(".hip_fatbin", ".hip_fat"), (".hip_fat", ".hip_fat")] {
            let section = format!("{section},\"dr\"");
            let objects = ['c', 'a', 'd'];
            let objects = objects.map(|letter| object(folder, triple, &section, &bundle(letter)));
            let output = folder.join("linked.dll");
            let mut command = Command::new(&linker);
            command.args(["/noentry", "/dll", "/opt:noref"]);
            command.arg(format!("/out:{}", output.display()));
            run(command.args(objects.iter().flatten()));
            expect(&output, linked, "cad");
        }
    });
}

/// `llvm-objdump --offloading` of LLVM 22.1 finds the same in a sequence of one kind.
#[test]
fn finds_what_objdump_extracts() {
    with_bundles(|folder, bundle| {
        let Some(objdump) = tool("llvm22", &["llvm-objdump-22", "llvm-objdump"]) else {
            return;
        };
        let elf = ".hip_fatbin,\"a\",@progbits";
        for letters in ["ab", "cd"] {
            let objects = letters.chars();
            let objects =
                objects.map(|letter| object(folder, "x86_64-linux-gnu", elf, &bundle(letter)));
            let (linker, output) = (program("ld"), folder.join(format!("linked-{letters}")));
            let Some(linker) = linker else { return };
            let mut command = Command::new(linker);
            command.args(["-shared", "-o"]).arg(&output);
            run(command.args(objects.flatten()));
            let listed = run(Command::new(&objdump).arg("--offloading").arg(&output));
            expect(&output, ".hip_fatbin", letters);
            for (index, letter) in letters.chars().enumerate() {
                for id in [HOST, GFX906] {
                    let extracted = format!("{}.{index}.{id}", output.display());
                    assert!(
                        listed.contains(&extracted),
                        "{extracted} is not in:\n{listed}"
                    );
                    // Of a compressed one it writes other bytes: those of the file, compressed.
                    if letter <= 'b' {
                        let image = fs::read(extracted).unwrap();
                        assert!(image == letter.to_string().repeat(5000).as_bytes());
                    }
                }
            }
        }
    });
}
