//! ELF files and archives, ours and those of LLVM and GNU binutils: each reads the other's.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;

use offload_formats::container::archive::{Archive, NewMember, write};
use offload_formats::container::bundled::Unpacking;
use offload_formats::container::elf::{
    Binding, Elf, ElfSection, Machine, SHT_LLVM_OFFLOADING, SymbolPlace, SymbolTable,
    rename_section,
};
use offload_formats::container::embed::elf_object;
use offload_formats::container::{INFLATE_LIMIT, Standing, images, link_inputs};
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::format::pieces;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use support::folder::Folder;
use support::{Random, program, run, tool};

fn binary(arch: &str, image: &[u8]) -> Vec<u8> {
    let strings: &[_] = &[("triple", "amdgcn-amd-amdhsa"), ("arch", arch)];
    let (image_kind, offload_kind) = (ImageKind::OBJECT, OffloadKind::OPENMP);
    let written = BinaryImage {
        image_kind,
        offload_kind,
        flags: 0,
        strings,
        image,
    };
    written.to_bytes(LlvmRelease::V22).unwrap()
}

fn arches(file: &[u8]) -> Vec<String> {
    images(file)
        .unwrap()
        .iter()
        .map(|image| image.entry.arch().to_owned())
        .collect()
}

/// The words of the line about a section, from its name on.
fn section_line(sections: &str, name: &str) -> Vec<String> {
    let lines = sections.lines().filter_map(|line| line.split_once("] "));
    let words = lines.map(|(_, rest)| rest.split_whitespace().map(str::to_owned).collect());
    words
        .into_iter()
        .find(|words: &Vec<String>| words.first().is_some_and(|word| word == name))
        .unwrap()
}

#[test]
fn embeds_objects_that_readelf_and_objdump_read() {
    let (Some(readelf), Some(objdump)) = (program("readelf"), tool("llvm22", &["llvm-objdump"]))
    else {
        return;
    };
    let folder = Folder::new();
    let binaries = [binary("gfx90a", b"one"), binary("gfx942", b"two")].concat();
    for machine in [
        Machine::X86_64,
        Machine::AARCH64,
        Machine::RISCV64,
        Machine::POWERPC64LE,
    ] {
        let bytes = elf_object(machine, &binaries).unwrap();
        folder.write("a.o", &bytes);
        let sections = folder.run(&readelf, ["-SW", "a.o"]);
        let line = section_line(&sections, ".llvm.offloading");
        // Name, type, address, offset, size, entry size, flags, link, info, alignment.
        assert_eq!(line[1], "LOOS+0xfff4c0b");
        assert_eq!(line[4], format!("{:06x}", binaries.len()));
        assert_eq!(line[5..], ["00", "E", "0", "0", "8"]);
        let line = section_line(&sections, ".note.GNU-stack");
        assert_eq!((&line[1][..], &line[4][..]), ("PROGBITS", "000000"));
        let listing = folder.run(&objdump, ["--offloading", "a.o"]);
        let found: Vec<&str> = listing
            .lines()
            .filter_map(|line| line.strip_prefix("arch            "))
            .collect();
        assert_eq!(found, ["gfx90a", "gfx942"], "{listing}");
    }
}

#[test]
fn embeds_what_the_packager_extracts() {
    for (word, name) in [
        ("llvm19", "clang-offload-packager"),
        ("llvm22", "llvm-offload-binary"),
    ] {
        let Some(packager) = tool(word, &[name]) else {
            continue;
        };
        let folder = Folder::new();
        folder.write(
            "a.o",
            elf_object(Machine::X86_64, &binary("gfx90a", b"the image")).unwrap(),
        );
        folder.run(
            &packager,
            ["a.o", "--image=file=out,arch=gfx90a,kind=openmp"],
        );
        assert_eq!(folder.read("out"), b"the image");
    }
}

#[test]
fn reads_what_relocatable_links_make() {
    let linkers = [
        program("ld"),
        tool("llvm19", &["ld.lld"]),
        tool("llvm22", &["ld.lld"]),
    ];
    for linker in linkers.into_iter().flatten() {
        let folder = Folder::new();
        for (name, arch, image) in [("a.o", "gfx90a", &b"a"[..]), ("b.o", "gfx942", b"bb")] {
            folder.write(
                name,
                elf_object(Machine::X86_64, &binary(arch, image)).unwrap(),
            );
        }
        folder.run(&linker, ["-r", "-o", "ab.o", "a.o", "b.o"]);
        let linked = folder.read("ab.o");
        let elf = Elf::parse(&linked[..], 0..linked.len() as u64).unwrap();
        let mut sections = elf.sections();
        let is_offloading = |section: &ElfSection| section.section_type == SHT_LLVM_OFFLOADING;
        let section = sections.find(is_offloading).unwrap();
        assert_eq!(sections.find(is_offloading), None);
        assert!(section.excluded() && !section.allocated());
        assert_eq!(
            arches(&linked),
            ["gfx90a", "gfx942"],
            "{}",
            linker.display()
        );

        // More alignment puts zeros between them, over which LLVM stumbles.
        let Some(objcopy) = program("objcopy") else {
            continue;
        };
        for name in ["a.o", "b.o"] {
            folder.run(
                &objcopy,
                ["--set-section-alignment", ".llvm.offloading=64", name],
            );
        }
        folder.run(&linker, ["-r", "-o", "ab.o", "a.o", "b.o"]);
        assert_eq!(
            arches(&folder.read("ab.o")),
            ["gfx90a", "gfx942"],
            "{}",
            linker.display()
        );
    }
}

#[test]
fn reads_the_symbols_that_nm_prints() {
    let (Some(clang), Some(nm), Some(ld)) =
        (tool("llvm22", &["clang"]), program("nm"), program("ld"))
    else {
        return;
    };
    let folder = Folder::new();
    folder.write(
        "a.c",
        "int used(void); static int local; int common_; __attribute__((weak)) int weak;\n\
         __attribute__((visibility(\"hidden\"))) int hidden = 1;\n\
         __attribute__((weak)) int maybe(void);\n\
         int f(void) { return used() + local++ + (maybe ? maybe() : 0); }\n",
    );
    folder.run(&clang, ["-c", "-fPIC", "-fcommon", "a.c"]);
    folder.run(&ld, ["-shared", "-o", "a.so", "a.o"]);
    for (file, option, table) in [
        ("a.o", "--format=posix", SymbolTable::All),
        ("a.so", "--format=posix", SymbolTable::All),
        ("a.so", "-DP", SymbolTable::Dynamic),
    ] {
        let bytes = folder.read(file);
        let elf = Elf::parse(&bytes[..], 0..bytes.len() as u64).unwrap();
        let symbols = elf.symbols(table).unwrap();
        let of_name = |name: &str| {
            let name = name.split('@').next().unwrap();
            symbols
                .iter()
                .find(|symbol| symbol.name == name.as_bytes())
                .unwrap()
        };
        let listing = folder.run(&nm, [option, file]);
        assert!(listing.lines().count() >= 5, "{listing}");
        for line in listing.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (symbol, letter) = (of_name(words[0]), words[1]);
            let undefined = matches!(letter, "U" | "w" | "v");
            assert_eq!(symbol.place == SymbolPlace::Undefined, undefined, "{line}");
            let weak = letter.eq_ignore_ascii_case("w") || letter.eq_ignore_ascii_case("v");
            assert_eq!(symbol.binding == Binding::Weak, weak, "{line}");
            let global = letter.chars().all(char::is_uppercase) || weak;
            assert_eq!(symbol.binding != Binding::Local, global, "{line}");
            if let Some(value) = words.get(2) {
                assert_eq!(
                    symbol.value,
                    u64::from_str_radix(value, 16).unwrap(),
                    "{line}"
                );
            }
        }
    }
    let bytes = folder.read("a.o");
    let elf = Elf::parse(&bytes[..], 0..bytes.len() as u64).unwrap();
    let symbols = elf.symbols(SymbolTable::All).unwrap();
    let hidden: Vec<_> = symbols
        .iter()
        .filter(|it| it.hidden)
        .map(|it| it.name)
        .collect();
    assert_eq!(hidden, [b"hidden"]);
    let common = symbols
        .iter()
        .find(|symbol| symbol.name == b"common_")
        .unwrap();
    assert_eq!((common.place, common.size), (SymbolPlace::Other(0xfff2), 4));
}

#[test]
fn reads_objects_of_more_sections_than_a_header_can_count() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let folder = Folder::new();
    folder.write("blob", binary("gfx90a", b"image"));
    let mut source: String = (0..66_000)
        .map(|index| format!(".section s{index},\"a\"\n"))
        .collect();
    source += ".globl last\nlast:\n.section .llvm.offloading,\"e\",@llvm_offloading\n";
    folder.write("a.s", source + ".p2align 3\n.incbin \"blob\"\n");
    folder.run(&clang, ["-c", "a.s"]);
    let object = folder.read("a.o");
    assert_eq!(arches(&object), ["gfx90a"]);
    let elf = Elf::parse(&object[..], 0..object.len() as u64).unwrap();
    let last = elf.find("s65999").unwrap().unwrap();
    assert!(last.index > 0xffff);
    let symbols = elf.symbols(SymbolTable::All).unwrap();
    let symbol = symbols
        .iter()
        .find(|symbol| symbol.name == b"last")
        .unwrap();
    assert_eq!(symbol.place, SymbolPlace::Section(last.index));
    let renamed = renamed(&object, "s65999", "other");
    let elf = Elf::parse(&renamed[..], 0..renamed.len() as u64).unwrap();
    assert_eq!(elf.find("other").unwrap().unwrap().index, last.index);
}

fn renamed(object: &[u8], old: &str, new: &str) -> Vec<u8> {
    let pieces = rename_section(object, 0..object.len() as u64, old, new).unwrap();
    pieces::to_bytes(&pieces, &[object]).unwrap()
}

#[test]
fn renames_sections_as_linkers_and_readelf_see_them() {
    let (Some(clang), Some(readelf), Some(ld)) = (
        tool("llvm22", &["clang"]),
        program("readelf"),
        program("ld"),
    ) else {
        return;
    };
    let folder = Folder::new();
    folder.write(
        "a.c",
        "__attribute__((section(\"old_name\"))) int x = 7; int f(void) { return x; }\n",
    );
    folder.run(&clang, ["-c", "-g", "a.c"]);
    folder.write(
        "b.o",
        renamed(&folder.read("a.o"), "old_name", "a_new_name"),
    );
    let warnings = run(Command::new(&readelf)
        .args(["-aW", "b.o"])
        .current_dir(folder.root()));
    assert!(!warnings.contains("Warning"), "{warnings}");
    let (before, after) = (
        folder.run(&readelf, ["-SW", "a.o"]),
        folder.run(&readelf, ["-SW", "b.o"]),
    );
    assert!(!after.contains("old_name"), "{after}");
    assert_eq!(
        section_line(&before, "old_name")[1..],
        section_line(&after, "a_new_name")[1..]
    );
    assert_eq!(
        folder
            .run(&readelf, ["-sW", "a.o"])
            .replace("old_name", "a_new_name"),
        folder.run(&readelf, ["-sW", "b.o"])
    );
    folder.run(&ld, ["-r", "-o", "c.o", "b.o"]);
    assert!(folder.run(&readelf, ["-SW", "c.o"]).contains("a_new_name"));
}

/// Objects that define `symbols`, made by clang, under these names.
fn objects(folder: &Folder, clang: &Path, names: &[(&str, &[&str])]) {
    for (name, symbols) in names {
        let body: String = symbols
            .iter()
            .map(|symbol| format!("int {symbol}(void) {{ return 1; }}\n"))
            .collect();
        folder.write("x.c", body);
        folder.run(clang, ["-c", "-o", name, "x.c"]);
    }
}

#[test]
fn writes_archives_that_ar_and_llvm_ar_write() {
    let (Some(clang), Some(llvm_ar), Some(ar)) = (
        tool("llvm22", &["clang"]),
        tool("llvm22", &["llvm-ar"]),
        program("ar"),
    ) else {
        return;
    };
    let mut random = Random::dealt();
    let folder = Folder::new();
    let pool: [(&str, &[&str]); 6] = [
        ("a.o", &["a1", "a2"]),
        ("fifteen_chars.o", &["b1"]),
        ("sixteen__chars.o", &["c1", "c2", "c3"]),
        ("a_name_much_longer_than_a_header_holds.o", &["d1"]),
        ("another_name_longer_than_a_header_holds.o", &[]),
        ("e.o", &["a_symbol_with_a_rather_long_name_in_it"]),
    ];
    objects(&folder, &clang, &pool);
    folder.write("odd.txt", "odd");
    folder.write("empty", "");
    let mut files: Vec<(&str, &[&str])> = pool.to_vec();
    files.extend([("odd.txt", &[][..]), ("empty", &[])]);
    for _ in 0..support::cases(30, 100) {
        let mut chosen = files.clone();
        while random.below(4) > 0 && chosen.len() > 1 {
            chosen.remove(random.below(chosen.len() as u64) as usize);
        }
        let at = random.below(chosen.len() as u64) as usize;
        chosen.rotate_left(at);
        let contents: Vec<Vec<u8>> = chosen.iter().map(|(name, _)| folder.read(name)).collect();
        let members: Vec<NewMember<'_>> = chosen
            .iter()
            .zip(&contents)
            .map(|(&(name, symbols), bytes)| NewMember {
                name,
                bytes,
                symbols,
            })
            .collect();
        let ours = write(&members);
        // An index without symbols is of 4 bytes by GNU and of 8 by LLVM, and here.
        let symbols = chosen.iter().any(|(_, symbols)| !symbols.is_empty());
        for program in [Some(&ar).filter(|_| symbols), Some(&llvm_ar)]
            .into_iter()
            .flatten()
        {
            let _ = fs::remove_file(folder.path("x.a"));
            let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
            folder.run(program, [&["rcsD", "x.a"], &names[..]].concat());
            assert!(
                folder.read("x.a") == ours,
                "{} of {names:?}",
                program.display()
            );
        }
        let archive = Archive::parse(&ours[..], 0..ours.len() as u64).unwrap();
        for (member, (name, _)) in archive.members.iter().zip(&chosen) {
            assert_eq!(member.name, name.as_bytes());
        }
        assert_eq!(archive.members.len(), chosen.len());
    }
}

#[test]
fn writes_archives_that_linkers_and_nm_read() {
    let (Some(clang), Some(nm), Some(ar)) =
        (tool("llvm22", &["clang"]), program("nm"), program("ar"))
    else {
        return;
    };
    let folder = Folder::new();
    let names: [(&str, &[&str]); 2] = [("wanted.o", &["wanted"]), ("other.o", &["other"])];
    objects(&folder, &clang, &names);
    let contents = names.map(|(name, _)| folder.read(name));
    let members = [0, 1].map(|at| NewMember {
        name: names[at].0,
        bytes: &contents[at],
        symbols: names[at].1,
    });
    folder.write("x.a", write(&members));
    assert_eq!(folder.run(&ar, ["t", "x.a"]), "wanted.o\nother.o\n");
    let index = folder.run(&nm, ["-s", "x.a"]);
    assert!(
        index.contains("wanted in wanted.o\nother in other.o"),
        "{index}"
    );
    folder.write(
        "main.c",
        "int wanted(void); int _start(void) { return wanted(); }\n",
    );
    folder.run(&clang, ["-c", "main.c"]);
    let linkers = [
        program("ld"),
        tool("llvm19", &["ld.lld"]),
        tool("llvm22", &["ld.lld"]),
    ];
    for linker in linkers.into_iter().flatten() {
        folder.run(&linker, ["-o", "main", "main.o", "x.a"]);
        let symbols = folder.run(&nm, ["main"]);
        assert!(
            symbols.contains("T wanted") && !symbols.contains("other"),
            "{symbols}"
        );
    }
}

#[test]
fn reads_archives_of_every_form() {
    let (Some(clang), Some(llvm_ar), Some(ar)) = (
        tool("llvm22", &["clang"]),
        tool("llvm22", &["llvm-ar"]),
        program("ar"),
    ) else {
        return;
    };
    let folder = Folder::new();
    let names = [
        "a.o",
        "a_name_much_longer_than_a_header_holds.o",
        "name with spaces.o",
    ];
    objects(
        &folder,
        &clang,
        &[(names[0], &["a"]), (names[1], &["b"]), (names[2], &["c"])],
    );
    for (program, options) in [
        (&ar, &["rcsD"][..]),
        (&ar, &["rcsDT"]),
        (&llvm_ar, &["--format=gnu", "rcsD"]),
        (&llvm_ar, &["--format=bsd", "rcsD"]),
        (&llvm_ar, &["--format=darwin", "rcsD"]),
        (&llvm_ar, &["--format=coff", "rcsD"]),
        (&llvm_ar, &["--thin", "rcsD"]),
        (&llvm_ar, &["rcSD"]),
    ] {
        let _ = fs::remove_file(folder.path("x.a"));
        folder.run(program, [options, &["x.a"], &names[..]].concat());
        let bytes = folder.read("x.a");
        let archive = Archive::parse(&bytes[..], 0..bytes.len() as u64).unwrap();
        let listed: Vec<_> = archive
            .members
            .iter()
            .map(|it| String::from_utf8_lossy(it.name))
            .collect();
        assert_eq!(listed, names, "{options:?}");
        for (member, name) in archive.members.iter().zip(names) {
            let whole = folder.read(name);
            if let Some(range) = member.content.clone() {
                // Darwin fills the content up to 8.
                let content = &bytes[range.start as usize..range.end as usize];
                assert!(content.starts_with(&whole), "{options:?} {name}");
            } else {
                assert_eq!(member.size, whole.len() as u64, "{options:?} {name}");
            }
        }
        let symbols: Vec<_> = archive.symbols().unwrap();
        let expected: &[&[u8]] = if options.contains(&"rcSD") {
            &[]
        } else {
            &[b"a", b"b", b"c"]
        };
        assert_eq!(
            symbols.iter().map(|it| it.name).collect::<Vec<_>>(),
            expected,
            "{options:?}"
        );
        for (symbol, member) in symbols.iter().zip(&archive.members) {
            assert_eq!(symbol.header_offset, member.header_offset, "{options:?}");
        }
    }
}

#[test]
fn tells_what_clang_embeds_from_what_programs_have() {
    let (Some(clang), Some(ld)) = (tool("llvm22", &["clang"]), program("ld")) else {
        return;
    };
    let folder = Folder::new();
    folder.write("blob", binary("gfx90a", b"image"));
    folder.write("a.c", "int _start(void) { return 0; }\n");
    folder.run(
        &clang,
        ["-c", "-Xclang", "-fembed-offload-object=blob", "a.c"],
    );
    let object = folder.read("a.o");
    let found = images(&object[..]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].entry.arch(), found[0].standing),
        ("gfx90a", Standing::Excluded)
    );
    folder.run(&ld, ["-o", "a", "a.o"]);
    assert_eq!(images(&folder.read("a")[..]), Ok(Vec::new()));
    // What a final link of OpenMP has: the same type, in memory.
    folder.write(
        "b.s",
        ".section .llvm.offloading,\"a\",@llvm_offloading\n.p2align 3\n.incbin \"blob\"\n",
    );
    folder.run(&clang, ["-c", "b.s"]);
    folder.run(&ld, ["-o", "ab", "a.o", "b.o"]);
    let found = images(&folder.read("ab")[..]).unwrap();
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|image| image.standing == Standing::Allocated)
    );
    // Our own section, in an object and in a program: seen, and no input.
    folder.write(
        "c.s",
        ".section .offloading.images,\"a\",@progbits\n.p2align 3\n.incbin \"blob\"\n",
    );
    folder.run(&clang, ["-c", "c.s"]);
    folder.run(&ld, ["-o", "ac", "a.o", "c.o"]);
    for name in ["c.o", "ac"] {
        let bytes = folder.read(name);
        let found = images(&bytes[..]).unwrap();
        assert_eq!((found.len(), found[0].standing), (1, Standing::Finished));
        assert_eq!(
            link_inputs(&bytes[..], &mut Unpacking::in_memory(INFLATE_LIMIT)),
            Ok(Vec::new())
        );
    }
}
