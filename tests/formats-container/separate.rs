//! Weak functions that objects have beside each other under new names, as linkers, readelf and the crate `object` see them.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object as _, ObjectComdat as _, ObjectSymbol as _};
use offload_formats::container::elf::{Elf, ElfWriteError, SymbolTable, separate_symbols};
use offload_formats::format::pieces;
use support::folder::Folder;
use support::{program, tool};

/// A template, a constructor that shares code with another one, a virtual table, and a function that all objects share.
const SOURCE: &str = r#"
template <class T> T value(T x) { return x * 10 + VALUE; }
struct Base { virtual int of() { return VALUE; } };
struct Made { int x; Made(); };
inline Made::Made() : x(VALUE) {}
inline int shared() { static int calls; return ++calls; }
template int value<int>(int);
int NAME() {
  Base base, *volatile pointer = &base;
  return value(1) * 10000 + pointer->of() * 1000 + Made().x * 100 + shared();
}
"#;
const MAIN: &str = "#include <stdio.h>\n\
    template <class T> T value(T);\nextern template int value<int>(int);\nint first(); int second();\n\
    int main() { int one = first(), two = second(); printf(\"%d %d %d\\n\", one, two, value(1)); }\n";
/// Symbols that differ, as both compilers call them.
const SEPARATE: [&str; 6] = [
    "_Z5valueIiET_S0_",
    "_ZN4Base2ofEv",
    "_ZTV4Base",
    "_ZN4BaseC2Ev",
    "_ZN4MadeC2Ev",
    "_ZN4MadeC1Ev",
];

fn edited(object: &[u8], names: &BTreeMap<u32, String>) -> Result<Vec<u8>, ElfWriteError> {
    let pieces = separate_symbols(object, 0..object.len() as u64, names)?;
    Ok(pieces::to_bytes(&pieces, &[object]).unwrap())
}

/// The object with other names for its symbols of `SEPARATE`.
fn separated(object: &[u8], end: &str) -> Vec<u8> {
    let elf = Elf::parse(object, 0..object.len() as u64).unwrap();
    let symbols = elf.symbols(SymbolTable::All).unwrap();
    let mut names = BTreeMap::new();
    for (index, symbol) in (0..).zip(&symbols) {
        let name = std::str::from_utf8(symbol.name).unwrap();
        if SEPARATE.contains(&name) {
            names.insert(index, format!("{name}.{end}"));
        }
    }
    assert!(names.len() >= SEPARATE.len() - 1, "{names:?}");
    edited(object, &names).unwrap()
}

/// Each symbol of an object, without its name, and the signatures of its groups.
fn read(object: &[u8]) -> (Vec<(String, String)>, Vec<String>) {
    let file = object::File::parse(object).unwrap();
    let symbols = file.symbols().map(|symbol| {
        let place = (symbol.section(), symbol.address(), symbol.size());
        let seen = (symbol.kind(), symbol.is_weak(), symbol.scope());
        let name = symbol.name().unwrap().to_owned();
        (name, format!("{place:?} {seen:?}"))
    });
    let groups = file.comdats().map(|group| group.name().unwrap().to_owned());
    (symbols.collect(), groups.collect())
}

#[track_caller]
fn checks_symbols(before: &[u8], after: &[u8], end: &str) {
    let (old, new) = (read(before), read(after));
    let mut added = new.0[old.0.len()..].iter();
    for (old, new) in old.0.iter().zip(&new.0) {
        assert_eq!(old.1, new.1);
        if SEPARATE.contains(&&*old.0) {
            assert_eq!(new.0, format!("{}.{end}", old.0));
            assert_eq!(added.next(), Some(old));
        } else {
            assert_eq!(new.0, old.0);
        }
    }
    assert_eq!(added.next(), None);
    assert_eq!(old.1.len(), new.1.len());
    for (old, new) in old.1.iter().zip(&new.1) {
        // The signature of constructors that share code is no symbol of theirs.
        let is_separate = SEPARATE.contains(&&**old) || old.contains("C5E");
        match is_separate {
            true => assert!(new.ends_with(&format!(".{end}")), "{old} {new}"),
            false => assert_eq!(new, old),
        }
    }
}

#[test]
fn keeps_weak_functions_of_two_objects_beside_each_other() {
    let (Some(gcc), Some(clang), Some(readelf)) = (
        program("g++"),
        tool("llvm19", &["clang++"]),
        program("readelf"),
    ) else {
        return;
    };
    for compiler in [&gcc, &clang] {
        let folder = Folder::new();
        folder.write("a.cpp", SOURCE);
        folder.write("main.cpp", MAIN);
        folder.run(compiler, ["-c", "-fPIC", "main.cpp"]);
        for (name, value) in [("first", 1), ("second", 2)] {
            let defines = [format!("-DVALUE={value}"), format!("-DNAME={name}")];
            let arguments = ["-c", "-O0", "-g", "-fPIC", "a.cpp", "-o", "raw.o"];
            let arguments = arguments.map(str::to_owned).into_iter().chain(defines);
            folder.run(compiler, arguments);
            // As modules are: C1 and C2 of a constructor may be in one group with a signature of its own.
            folder.run(&gcc, ["-r", "-nostdlib", "-o", "joined.o", "raw.o"]);
            for object in ["raw.o", "joined.o"] {
                let (object, path) = (folder.read(object), format!("{name}-{object}"));
                let after = separated(&object, name);
                checks_symbols(&object, &after, name);
                folder.write(&path, after);
                let mut readelf = folder.command(&readelf);
                let warnings = readelf.args(["-aWg", &path]).output().unwrap();
                assert!(warnings.stderr.is_empty(), "{warnings:?}");
            }
        }
        for kind in ["raw", "joined"] {
            links(&folder, &gcc, kind);
        }
    }
}

/// Links both objects in all ways.
fn links(folder: &Folder, gcc: &Path, kind: &str) {
    let objects = [format!("first-{kind}.o"), format!("second-{kind}.o")];
    let objects = [objects[0].as_str(), objects[1].as_str()];
    let lld = tool("llvm19", &["ld.lld"]).unwrap();
    let folder_of_lld = format!("-B{}", lld.parent().unwrap().display());
    let gold = program("ld.gold").map(|_| vec!["-fuse-ld=gold"]);
    let linkers = [
        vec!["-fuse-ld=bfd"],
        vec![folder_of_lld.as_str(), "-fuse-ld=lld"],
    ];
    for linker in linkers.into_iter().chain(gold) {
        let link = |more: &[&str]| {
            folder.run(gcc, [&linker, more].concat());
        };
        let runs = |expected: &str| {
            let mut program = folder.command(folder.path("main"));
            program.env("LD_LIBRARY_PATH", folder.root());
            assert_eq!(support::run(&mut program), expected, "{kind} {linker:?}");
        };
        let expected = "111101 122202 11\n";
        link(&["main.o", objects[0], objects[1], "-o", "main"]);
        runs(expected);
        link(&[
            "main.o",
            objects[0],
            objects[1],
            "-Wl,--gc-sections",
            "-o",
            "main",
        ]);
        runs(expected);
        link(&["-shared", objects[0], objects[1], "-o", "libboth.so"]);
        link(&["main.o", "-L.", "-lboth", "-o", "main"]);
        runs(expected);
        // lld 19 does not read `.eh_frame` of a relocatable link of GCC's objects by GNU ld and then by lld.
        if kind == "raw" || linker.len() == 1 {
            link(&["-r", "-nostdlib", objects[0], objects[1], "-o", "both.o"]);
            link(&["main.o", "both.o", "-o", "main"]);
            runs(expected);
        }
        // The call from outside gets the function that is first.
        link(&["main.o", objects[1], objects[0], "-o", "main"]);
        runs("111101 122202 12\n");
    }
}

#[test]
fn separates_symbols_of_sections_that_need_wide_indices() {
    let (Some(clang), Some(ld)) = (tool("llvm22", &["clang"]), program("ld")) else {
        return;
    };
    let folder = Folder::new();
    let mut source = String::new();
    for number in 0..66_000 {
        source += &format!(".section s{number},\"a\"\n");
    }
    source += ".section .text.weak,\"axG\",@progbits,weak,comdat\n.weak weak\n.type weak,@function\n\
        weak:\n.quad 7\n.size weak, 8\n.text\n.quad weak\n";
    folder.write("a.s", source);
    folder.run(&clang, ["--target=x86_64-linux-gnu", "-c", "a.s"]);
    let object = folder.read("a.o");
    let elf = Elf::parse(&object[..], 0..object.len() as u64).unwrap();
    let symbols = elf.symbols(SymbolTable::All).unwrap();
    let index = symbols.iter().position(|symbol| symbol.name == b"weak");
    let index = index.unwrap();
    let names = BTreeMap::from([(index as u32, "own".to_owned())]);
    let after = edited(&object, &names).unwrap();
    let elf = Elf::parse(&after[..], 0..after.len() as u64).unwrap();
    let read = elf.symbols(SymbolTable::All).unwrap();
    let (own, alias) = (&read[index], read.last().unwrap());
    assert_eq!((own.name, alias.name), (&b"own"[..], &b"weak"[..]));
    for symbol in [own, alias] {
        assert_eq!(symbol.place, symbols[index].place);
        assert_eq!((symbol.value, symbol.size), (0, 8));
    }
    let [group] = &elf.comdat_groups().unwrap()[..] else {
        panic!("expected one group")
    };
    assert_eq!(group.signature as usize, index);
    folder.write("b.o", after);
    folder.run(&ld, ["-r", "-o", "c.o", "b.o"]);
}
