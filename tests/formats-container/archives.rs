//! Archives and their indices of symbols, ours and those of LLVM's tools: the same bytes.

use crate::support;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use offload_formats::container::archive::{Archive, Index, MemberPlan, NewMember, layout, write};
use offload_formats::container::definitions;
use offload_formats::container::device_archive::member_name;
use offload_formats::format::bundle::Bundle;
use offload_formats::format::pieces;
use offload_formats::names::{EntryId, KindRule};
use support::folder::Folder;
use support::{Random, run, tool};

/// Everything that a compiler can say about a symbol. No target has all of it.
const C: &str = "
    int defined = 1, common;
    extern int undefined_variable;
    extern int undefined_function(void);
    static int internal = 2;
    const char *text = \"text\";
    __attribute__((weak)) int weak_variable = 3;
    __attribute__((weak)) extern int weak_undefined;
    __attribute__((visibility(\"hidden\"))) int hidden_variable = 4;
    __attribute__((section(\"llvm.metadata\"))) int metadata = 5;
    __attribute__((used)) static int used = 6;
    int a_long_name_that_is_longer_than_what_fits_into_eight_bytes;
    int function(int x) { return x + undefined_variable + internal + undefined_function(); }
    __attribute__((weak)) int weak_function(void) { return (long)&weak_undefined; }
    __attribute__((visibility(\"hidden\"))) int hidden_function(void) { return common; }
    static int internal_function(void) { return used; }
    inline int inline_only(void) { return 7; }
    int main_function(void) { return internal_function() + inline_only() + __builtin_popcount(internal); }
    #ifdef ALIAS
    int alias_function(int) __attribute__((alias(\"function\")));
    extern int alias_variable __attribute__((weak, alias(\"defined\")));
    #endif
    #ifdef IFUNC
    static int (*resolve(void))(void) { return hidden_function; }
    int indirect(void) __attribute__((ifunc(\"resolve\")));
    #endif
    #ifdef ASM
    __asm__(\".globl asm_global\\n.weak asm_weak\\nasm_weak:\\nasm_global:\\nasm_local:\\n.long asm_undefined\\n\");
    __asm__(\".data\\n.globl asm_data\\nasm_data: .long 5\\n.text\\n\");
    #endif
";

const CPP: &str = "
    struct Base { virtual ~Base(); virtual int get() { return 1; } };
    template <class T> T twice(T t) { static T last; last = t; return t + t; }
    inline int shared = 8;
    namespace { int hidden() { return shared; } }
    int use(Base *base) { return base->get() + twice(2) + hidden() + (int)twice(2.5); }
    struct Derived : Base { int get() override { return 2; } } derived;
    thread_local int per_thread;
";

/// Name of the compiler's release, triple with options, macros.
const TARGETS: [(&str, &[&str], &[&str]); 10] = [
    (
        "llvm22",
        &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"],
        &["ALIAS", "ASM"],
    ),
    (
        "llvm22",
        &["--target=nvptx64-nvidia-cuda", "-nogpulib", "-nocudalib"],
        &[],
    ),
    (
        "llvm22",
        &["--target=x86_64-linux-gnu"],
        &["ALIAS", "IFUNC", "ASM"],
    ),
    ("llvm22", &["--target=spirv64-unknown-unknown"], &["ALIAS"]),
    (
        "llvm22",
        &["--target=x86_64-pc-windows-msvc"],
        &["ALIAS", "ASM"],
    ),
    (
        "llvm19",
        &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"],
        &["ASM"],
    ),
    // LLVM 19 leaves the table of symbols out where an alias is of this kind.
    (
        "llvm19",
        &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"],
        &["ALIAS"],
    ),
    (
        "llvm19",
        &["--target=nvptx64-nvidia-cuda", "-nogpulib", "-nocudalib"],
        &[],
    ),
    (
        "llvm19",
        &["--target=x86_64-linux-gnu"],
        &["ALIAS", "IFUNC", "ASM"],
    ),
    (
        "llvm19",
        &["--target=x86_64-pc-windows-msvc"],
        &["ALIAS", "ASM"],
    ),
];

/// The names that the index of `llvm-ar` 22 gives a file.
fn theirs(folder: &Folder, ar: &Path, file: &str) -> Vec<String> {
    let _ = fs::remove_file(folder.root().join("a.a"));
    folder.run(ar, ["rcs", "--format=gnu", "a.a", file]);
    let bytes = folder.read("a.a");
    let archive = Archive::parse(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
    let symbols = archive.symbols().unwrap();
    let names = symbols
        .iter()
        .map(|symbol| String::from_utf8(symbol.name.to_vec()).unwrap());
    names.collect()
}

fn ours(folder: &Folder, file: &str) -> Vec<String> {
    let bytes = folder.read(file);
    let names = definitions(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
    names
        .iter()
        .map(|name| String::from_utf8(name.to_vec()).unwrap())
        .collect()
}

/// Bitcode without its blocks 25.
fn without_table(bitcode: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(bitcode[at..at + 4].try_into().unwrap());
    let (mut at, mut kept) = (4, bitcode[..4].to_vec());
    while at < bitcode.len() {
        let size = 8 + 4 * word(at + 4) as usize;
        if (word(at) >> 2) & 0xff != 25 {
            kept.extend_from_slice(&bitcode[at..at + size]);
        }
        at += size;
    }
    kept
}

fn wrapped(bitcode: &[u8]) -> Vec<u8> {
    let header = [0x0b17_c0de, 0, 20, bitcode.len() as u32, 7];
    let mut bytes: Vec<u8> = header
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    bytes.extend_from_slice(bitcode);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

#[test]
fn finds_the_symbols_that_llvm_ar_finds() {
    let Some(ar) = tool("llvm22", &["llvm-ar"]) else {
        return;
    };
    let folder = Folder::new();
    folder.write("c.c", C);
    folder.write("c.cpp", CPP);
    for (index, (word, target, macros)) in TARGETS.into_iter().enumerate() {
        let Some(clang) = tool(word, &["clang"]) else {
            continue;
        };
        // Each target with both sources, or one with the first compiler and another with the second.
        for source in support::share(["c.c", "c.cpp"], (index + index / 5) % 2, 2) {
            for output in [
                &["-emit-llvm"][..],
                &["-emit-llvm", "-flto=thin", "-O2"],
                &[],
            ] {
                // Neither has an object format that archives index.
                let device = target[0].contains("nvptx") || target[0].contains("spirv");
                if device && output.is_empty() {
                    continue;
                }
                // Clang 19 crashes.
                if (word, macros) == ("llvm19", &["ALIAS"]) && output.contains(&"-flto=thin") {
                    continue;
                }
                let mut command = Command::new(&clang);
                command
                    .current_dir(folder.root())
                    .args(target)
                    .args(output)
                    .args(["-c", "-w", "-o", "out.o", source])
                    .args(macros.iter().map(|name| format!("-D{name}")));
                if source == "c.c" {
                    command.arg("-fcommon");
                } else {
                    command.args(["-fno-exceptions", "-fno-rtti", "-std=c++17"]);
                }
                if device || target[0].contains("amdgcn") {
                    command.arg("-Dthread_local=");
                }
                run(&mut command);
                let theirs = theirs(&folder, &ar, "out.o");
                assert!(theirs.len() >= 4, "{command:?}: {theirs:?}");
                assert_eq!(ours(&folder, "out.o"), theirs, "{command:?}");
                let bytes = folder.read("out.o");
                if !bytes.starts_with(b"BC") {
                    continue;
                }
                // The same without the table of symbols, in the wrapper.
                folder.write("out.o", wrapped(&without_table(&bytes)));
                let rebuilt = self::theirs(&folder, &ar, "out.o");
                assert_eq!(rebuilt, theirs);
                let (here, missing) = theirs.split_at(ours(&folder, "out.o").len());
                assert_eq!(ours(&folder, "out.o"), here, "{command:?}");
                // What inline assembly defines is in the table only.
                assert!(
                    missing.iter().all(|name| name.starts_with("asm_")),
                    "{missing:?}"
                );
            }
        }
    }
}

/// Objects and bitcode of the host and of devices, made by clang 22; and bytes that are neither.
fn images(folder: &Folder, clang: &Path) -> Vec<(&'static str, Vec<u8>)> {
    folder.write(
        "f.c",
        "int f(int x) { return x; } int odd_one(int x) { return f(x) + 1; }",
    );
    let targets: [(&str, &[&str]); 4] = [
        ("host", &["--target=x86_64-linux-gnu"]),
        (
            "amd",
            &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"],
        ),
        (
            "amd",
            &[
                "--target=amdgcn-amd-amdhsa",
                "-mcpu=gfx906",
                "-nogpulib",
                "-emit-llvm",
            ],
        ),
        (
            "nvidia",
            &[
                "--target=nvptx64-nvidia-cuda",
                "-nogpulib",
                "-nocudalib",
                "-emit-llvm",
            ],
        ),
    ];
    let mut images: Vec<_> = targets
        .iter()
        .map(|(device, target)| {
            let arguments = [*target, &["-c", "-w", "-O1", "f.c", "-o", "f.o"]].concat();
            folder.run(clang, &arguments);
            (*device, folder.read("f.o"))
        })
        .collect();
    for device in ["amd", "amd", "nvidia", "host"] {
        images.push((device, b"neither object nor bitcode".to_vec()));
    }
    images.push(("nvidia", b"odd".to_vec()));
    images
}

#[test]
fn writes_the_device_archives_that_the_bundler_writes() {
    let programs = ["clang-offload-bundler", "clang"].map(|name| tool("llvm22", &[name]));
    let [Some(bundler), Some(clang)] = programs else {
        return;
    };
    const TARGETS: [(&str, &str); 6] = [
        ("host", "host-x86_64-unknown-linux-gnu-"),
        ("amd", "openmp-amdgcn-amd-amdhsa--gfx906"),
        ("amd", "openmp-amdgcn-amd-amdhsa--gfx906:xnack+"),
        ("amd", "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"),
        ("nvidia", "openmp-nvptx64-nvidia-cuda-unknown-sm_70"),
        ("host", "openmp-x86_64-pc-linux-gnu-"),
    ];
    const NAMES: [&str; 4] = ["a.o", "some.other.bc", "a_name_without_extension", "b.obj"];
    let folder = Folder::new();
    let images = images(&folder, &clang);
    let mut random = Random::new();
    let (mut compared, mut indexed) = (0, 0);
    for _ in 0..support::cases(20, 60) {
        // An archive of bundles.
        let mut members = Vec::new();
        for _ in 0..1 + random.below(3) {
            let mut targets: Vec<_> = TARGETS.iter().filter(|_| random.below(2) == 0).collect();
            targets.retain(|(_, id)| !id.starts_with("host"));
            // These two cannot be in one bundle.
            let both = |id: &str| id.ends_with("gfx906") || id.ends_with("gfx906:xnack+");
            if targets.iter().filter(|(_, id)| both(id)).count() == 2 {
                targets.retain(|(_, id)| !id.ends_with("gfx906"));
            }
            targets.push(&TARGETS[0]);
            let mut command = Command::new(&bundler);
            command
                .current_dir(folder.root())
                .args(["-type=bc", "-output=bundle"]);
            let ids: Vec<&str> = targets.iter().map(|(_, id)| *id).collect();
            command.arg(format!("-targets={}", ids.join(",")));
            for (index, (device, _)) in targets.iter().enumerate() {
                let fit: Vec<_> = images.iter().filter(|(it, _)| it == device).collect();
                let name = format!("image{index}");
                folder.write(&name, &random.pick(&fit).1);
                command.arg(format!("-input={name}"));
            }
            run(&mut command);
            members.push((*random.pick(&NAMES), folder.read("bundle")));
        }
        let plans = members.iter().map(|(name, bytes)| NewMember {
            name,
            bytes,
            symbols: &[],
        });
        folder.write("in.a", write(&plans.collect::<Vec<_>>()));

        let (_, target) = *random.pick(&TARGETS);
        folder.run(
            &bundler,
            [
                "-type=a",
                "-unbundle",
                "-allow-missing-bundles",
                "-input=in.a",
                "-output=out.a",
                &format!("-targets={target}"),
            ],
        );
        let theirs = folder.read("out.a");

        let input = folder.read("in.a");
        let archive = Archive::parse(input.as_slice(), 0..input.len() as u64).unwrap();
        let wanted = EntryId::parse_target(target).unwrap();
        let mut found = Vec::new();
        for member in &archive.members {
            let content = member.content.clone().unwrap();
            let bundle = Bundle::parse(input.as_slice(), content.start, content.end).unwrap();
            for entry in bundle.entries {
                if EntryId::parse(&entry.id)
                    .unwrap()
                    .serves(&wanted, KindRule::SameRuntime)
                {
                    let name = member_name(std::str::from_utf8(member.name).unwrap(), &entry.id);
                    let symbols = definitions(input.as_slice(), entry.image.clone()).unwrap();
                    let content = [pieces::Piece::Copy {
                        input: 0,
                        range: entry.image,
                    }];
                    found.push((name, content, symbols));
                }
            }
        }
        let plans: Vec<_> = found
            .iter()
            .map(|(name, content, symbols)| MemberPlan {
                name,
                content,
                symbols,
            })
            .collect();
        let pieces = layout(&plans, Index::OfSymbols).unwrap();
        let ours = pieces::to_bytes(&pieces, &[&input]).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&theirs),
            "{target} of {:?}",
            members.iter().map(|(name, _)| name).collect::<Vec<_>>()
        );
        assert_eq!(ours, theirs);
        compared += 1;
        indexed += usize::from(ours[8..].starts_with(b"/ "));
    }
    println!("llvm22: {compared} archives, {indexed} with an index");
    assert!(indexed > 3 && indexed < compared);
}

#[test]
fn reads_the_archives_that_llvm_ar_writes() {
    let Some(ar) = tool("llvm22", &["llvm-ar"]) else {
        return;
    };
    let folder = Folder::new();
    let mut random = Random::new();
    for format in ["gnu", "bsd", "darwin", "coff", "bigarchive", "thin"] {
        for _ in 0..10 {
            let _ = fs::remove_file(folder.root().join("x.a"));
            let count = random.below(6);
            let files = (0..count).map(|index| {
                let length = random.pick(&[1, 5, 14, 15, 16, 17, 40]);
                let name = format!("{index}{}", "n".repeat(*length));
                // Letters: llvm-ar reads whatever begins like an object.
                let mut content = random.bytes(9);
                content
                    .iter_mut()
                    .for_each(|byte| *byte = b'a' + *byte % 26);
                folder.write(&name, content);
                name
            });
            let files: Vec<String> = files.collect();
            let option = match format {
                "thin" => "--thin".to_owned(),
                _ => format!("--format={format}"),
            };
            let mut arguments = vec!["rcsD", &option, "x.a"];
            arguments.extend(files.iter().map(String::as_str));
            folder.run(&ar, &arguments);
            let bytes = folder.read("x.a");
            let archive = Archive::parse(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
            assert_eq!(archive.thin, format == "thin");
            assert_eq!(archive.members.len(), files.len(), "{format}");
            for (member, file) in archive.members.iter().zip(&files) {
                assert_eq!(String::from_utf8_lossy(member.name), *file, "{format}");
                let expected = folder.read(file);
                let Some(range) = &member.content else {
                    assert_eq!(member.size, expected.len() as u64);
                    continue;
                };
                let content = &bytes[range.start as usize..range.end as usize];
                // The Darwin form fills contents up to a multiple of 8.
                let (content, rest) = content.split_at(expected.len());
                assert_eq!(content, expected, "{format}");
                assert!(rest.is_empty() || format == "darwin", "{rest:?}");
            }
        }
    }
}

/// Members whose names and contents take each form: short and long names, with spaces and dots, and odd and empty contents.
fn any_members(random: &mut Random) -> Vec<(String, Vec<u8>)> {
    let count = random.below(5);
    let member = |_| {
        let name = random.pick(&[
            "a.o",
            "exactly15chars_",
            "sixteen_chars_ab",
            "a name with spaces.bc",
            "x.y.z",
        ]);
        let name = format!("{}{name}", random.below(3));
        let len = random.below(300) as usize;
        (name, vec![random.below(256) as u8; len])
    };
    (0..count).map(member).collect()
}

#[test]
fn writes_archives_that_the_crate_ar_reads() {
    let mut random = Random::new();
    for _ in 0..200 {
        let mut members = any_members(&mut random);
        // With an object there is an index, which is no member.
        members.push(("k.bc".to_owned(), b"BC\xc0\xdecode".to_vec()));
        let plans = members.iter().map(|(name, bytes)| NewMember {
            name,
            bytes,
            symbols: &["kernel", "other"],
        });
        let written = write(&plans.collect::<Vec<_>>());
        let mut archive = ar::Archive::new(written.as_slice());
        let mut found = Vec::new();
        while let Some(entry) = archive.next_entry() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let header = entry.header();
            assert_eq!((header.mtime(), header.uid(), header.gid()), (0, 0, 0));
            found.push((
                std::str::from_utf8(header.identifier()).unwrap().to_owned(),
                bytes,
            ));
        }
        assert_eq!(found, members);
    }
}
