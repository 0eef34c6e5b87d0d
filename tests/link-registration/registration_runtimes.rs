//! The registration objects of CUDA and HIP in programs: what their runtimes are told.
//!
//! The runtimes are stand-ins that print each call. The calls are compared with those of programs
//! that have LLVM's object in the place of ours.

use crate::registration_support as programs;

use std::fs;
use std::process::Command;

use crate::linker_support::{linkers, text, tool};
use object::{Object, ObjectSection, ObjectSymbol};
use offload_formats::container::elf::Machine;
use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::Embedded;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::{HipFatBinary, HipSymbols};
use programs::{Case, bfd, prefix, start_stop, succeed, table};

#[test]
fn makes_the_calls_that_llvm_makes() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        for (release, layout) in [("19", EntryLayout::V19), ("22", EntryLayout::V21)] {
            let Some(bytes) = case.llvm(release) else {
                continue;
            };
            case.compile(release, "x_", &["-c", "-o", "x.o"]).unwrap();
            let expected = case.run(&bfd(), &["llvm.o", "x.o"]);
            println!("{expected}");
            let ours = case.registration(&bytes, &[start_stop(layout, runtime)]);
            case.write("ours.o", &ours);
            for (name, linker) in linkers() {
                let linker = linker.display().to_string();
                let seen = case.run(&linker, &["ours.o", "x.o"]);
                assert_eq!(seen, expected, "{runtime:?} {release} {name}");
            }
        }
    }
}

#[test]
fn registers_one_fat_binary_with_the_entries_of_every_release() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        if case.compile("19", "nn_", &["-c", "-o", "19.o"]).is_none() {
            return;
        }
        case.compile20("tt_", "20.o").unwrap();
        case.compile("22", "vv_", &["-c", "-o", "22.o"]).unwrap();
        let calls = |layout: EntryLayout, object| {
            case.write(
                "one.o",
                case.registration(b"image", &[start_stop(layout, runtime)]),
            );
            let printed = case.run(&bfd(), &["one.o", object]);
            let calls = printed
                .lines()
                .filter(|line| ["nn_", "tt_", "vv_"].iter().any(|name| line.contains(name)));
            calls.map(|line| format!("{line}\n")).collect::<String>()
        };
        let (new, middle) = (
            calls(EntryLayout::V21, "22.o"),
            calls(EntryLayout::V20, "20.o"),
        );
        // The same source, in other words; what LLVM 22 does with it, another test knows.
        assert_eq!(middle.replace("tt_", "vv_"), new, "{runtime:?}");
        assert_eq!(
            new.lines().count(),
            if runtime == Runtime::Hip { 6 } else { 3 }
        );
        // An old section has entries of one size, so 19 and 20 do not meet in a program.
        for (old, layout) in [("19.o", EntryLayout::V19), ("20.o", EntryLayout::V20)] {
            let both = [layout, EntryLayout::V21].map(|layout| start_stop(layout, runtime));
            case.write("both.o", case.registration(b"image", &both));
            let magic = match runtime {
                Runtime::Cuda => "466243b1",
                Runtime::Hip => "48495046",
            };
            let first = format!("FatBinary {magic} 1 image 0 image (nil) -> 0\n");
            let end = match runtime {
                Runtime::Cuda => "End 0\n",
                Runtime::Hip => "",
            };
            let entries = calls(layout, old) + &new;
            let last = "main\nUnregister 0\nruntime down\n";
            for (name, linker) in linkers() {
                let seen = case.run(&linker.display().to_string(), &["22.o", old, "both.o"]);
                let expected = format!("{first}{entries}{end}{last}");
                assert_eq!(seen, expected, "{runtime:?} {old} {name}");
            }
        }
    }
}

#[test]
fn registers_without_entries() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    for tables in [
        &[][..],
        &[EntryLayout::V21, EntryLayout::V19].map(|layout| start_stop(layout, Runtime::Hip)),
    ] {
        case.write("r.o", case.registration(b"image", tables));
        for (name, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &["r.o"]);
            let expected = "FatBinary 48495046 1 image 0 image (nil) -> 0\n\
                            main\nUnregister 0\nruntime down\n";
            assert_eq!(seen, expected, "{name}");
        }
    }
}

/// Specification: `docs/spec/linker-wrapper.md` §5.4; `OffloadWrapper.cpp` of LLVM 19 and 22.
#[test]
fn tells_the_runtime_what_an_entry_says() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        for layout in EntryLayout::ALL {
            case.write("table.s", table(layout, runtime).as_bytes());
            case.clang(&["-c", "table.s"]);
            let object = case.registration(b"image", &[start_stop(layout, runtime)]);
            case.write("r.o", &object);
            let mut expected = String::new();
            let mut call = |function: &str, name: &str, rest: &str| {
                let device = format!("on device: {name}");
                expected += &format!("{function} 0 {name} {device} {device} {rest}\n");
            };
            call("Function", "function", "-1 (nil) (nil) (nil) (nil) (nil)");
            for (name, external, size, constant) in [
                ("variable", 0, "4294967297", 0),
                ("external", 1, "4", 0),
                ("constant", 0, "8", 1),
                ("both", 1, "9", 1),
            ] {
                let rest = format!("extern {external} size {size} constant {constant} global 0");
                call("Var", name, &rest);
            }
            if layout != EntryLayout::V19 {
                expected += "ManagedVar 0 aux managed on device: managed size 4 align 8\n";
            }
            if runtime == Runtime::Hip {
                expected += "Surface 0 surface on device: surface on device: surface type 3 extern 1\n\
                    Texture 0 texture on device: texture on device: texture type 2 normalized 1 extern 0\n\
                    Texture 0 other on device: other on device: other type 1 normalized 0 extern 1\n";
            }
            for (name, linker) in linkers() {
                let seen = case.run(&linker.display().to_string(), &["r.o", "table.o"]);
                let calls = seen.lines().filter(|line| line.contains("on device"));
                let calls: String = calls.map(|line| format!("{line}\n")).collect();
                assert_eq!(calls, expected, "{runtime:?} {layout:?} {name}");
            }
        }
    }
}

#[test]
fn keeps_its_own_tables_through_a_relocatable_link() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    let sizes = |object: &str| {
        let bytes = fs::read(case.path(object)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file
            .sections()
            .find(|section| section.name().unwrap().ends_with("offload_entries"))
            .unwrap();
        (section.size(), section.align())
    };
    for (name, linker) in linkers() {
        for (names, whole) in [("aa_", "a.o"), ("bb_", "b.o")] {
            case.compile("22", names, &["-c", "-o", "x.o"]).unwrap();
            let (size, alignment) = sizes("x.o");
            let table = HostTable {
                layout: EntryLayout::V21,
                table: EntryTable::SectionRange {
                    section: "llvm_offload_entries",
                    size,
                    flags: 3,
                    alignment,
                },
            };
            case.write("r.o", case.registration(names.as_bytes(), &[table]));
            succeed(
                case.command(&linker)
                    .args(["-r", "r.o", "x.o", "-o", whole]),
            );
        }
        for (last, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &["a.o", "b.o"]);
            let calls = |names: &str, handle: &str| {
                let rows = seen.lines().filter(|line| !line.starts_with("FatBinary"));
                let rows = rows.filter(|line| line.contains(names));
                rows.filter(|line| line.split(' ').nth(1) == Some(handle))
                    .count()
            };
            assert_eq!(
                (calls("aa_", "0"), calls("bb_", "1")),
                (6, 6),
                "{name} {last}: {seen}"
            );
            assert_eq!(
                (calls("aa_", "1"), calls("bb_", "0")),
                (0, 0),
                "{name} {last}: {seen}"
            );
        }
    }
}

/// Undefined symbols of an object that start so.
fn wanted(object: &[u8], start: &str) -> Vec<String> {
    let file = object::File::parse(object).unwrap();
    let names = file.symbols().filter(|symbol| symbol.is_undefined());
    let names = names.map(|symbol| symbol.name().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
    names.sort();
    names
}

/// Objects of clang's old driver register themselves, and share one handle.
#[test]
fn gives_the_fat_binary_to_objects_that_register_themselves() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    let old = ["-c", "--no-offload-new-driver"];
    for (release, names, object) in [("19", "ii_", "i.o"), ("22", "jj_", "j.o")] {
        let cuid = format!("-cuid={release}");
        let args = [&old[..], &[&cuid, "-o", object]].concat();
        if case.compile(release, names, &args).is_none() {
            return;
        }
    }
    case.compile("22", "kk_", &["-c", "-o", "k.o"]).unwrap();
    let all = |start: &str| {
        let objects = ["i.o", "j.o"].map(|name| fs::read(case.path(name)).unwrap());
        let names = objects.iter().flat_map(|object| wanted(object, start));
        names.collect::<Vec<String>>()
    };
    let (fat, handles) = (all("__hip_fatbin_"), all("__hip_gpubin_handle_"));
    assert_eq!((fat.len(), handles.len()), (2, 2), "{fat:?} {handles:?}");
    let fat: Vec<&str> = fat.iter().map(String::as_str).collect();
    let handles: Vec<&str> = handles.iter().map(String::as_str).collect();
    let symbols = HipSymbols {
        fat_binary: &fat,
        handle: &handles,
    };
    let bytes = b"image";
    let bytes = Embedded::Bytes(bytes);
    let alone = HipFatBinary { bytes, symbols };
    case.write("alone.o", alone.to_object(Machine::X86_64).unwrap());
    let both = FatBinary {
        runtime: Runtime::Hip,
        bytes,
        tables: &[start_stop(EntryLayout::V21, Runtime::Hip)],
        symbols,
        globals: &[],
    };
    case.write("both.o", both.to_object(Machine::X86_64).unwrap());
    for (name, linker) in linkers() {
        let linker = linker.display().to_string();
        let seen = case.run(&linker, &["i.o", "j.o", "alone.o"]);
        let count =
            |seen: &str, word: &str| seen.lines().filter(|line| line.contains(word)).count();
        // The handle is one: the first object registers, the second only its entries.
        assert_eq!(count(&seen, "FatBinary"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "image 0 image"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "ii_kernel"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "jj_kernel"), 1, "{name}: {seen}");

        let seen = case.run(&linker, &["i.o", "j.o", "k.o", "both.o"]);
        assert_eq!(count(&seen, "FatBinary"), 2, "{name}: {seen}");
        assert_eq!(count(&seen, "image 0 image"), 2, "one copy: {name}: {seen}");
        for kernel in ["ii_kernel", "jj_kernel", "kk_kernel"] {
            assert_eq!(count(&seen, kernel), 1, "{name}: {seen}");
        }
    }
}

#[test]
fn aligns_the_fat_binary_as_its_runtime_wants() {
    let object = |runtime, bytes| {
        let object = FatBinary {
            runtime,
            bytes: Embedded::Bytes(bytes),
            tables: &[],
            symbols: HipSymbols::default(),
            globals: &[],
        };
        object.to_object(Machine::AARCH64).unwrap()
    };
    // A page can be read, and a whole bundle follows at a multiple of it: hip_fatbin.cpp of ROCm.
    let small = object(Runtime::Hip, b"CCOB");
    let large = object(Runtime::Hip, &[1; 5000]);
    let cuda = object(Runtime::Cuda, b"fatbin");
    for (bytes, section, alignment, size, image) in [
        (&small, ".hip_fatbin", 4096, 4096, 4),
        (&large, ".hip_fatbin", 4096, 5000, 5000),
        (&cuda, ".nv_fatbin", 16, 6, 6),
    ] {
        let file = object::File::parse(&**bytes).unwrap();
        let section = file.section_by_name(section).unwrap();
        assert_eq!((section.align(), section.size()), (alignment, size));
        let symbol = file.symbol_by_name(".fatbin_image").unwrap();
        assert_eq!(symbol.size(), image);
    }
}

#[test]
fn links_for_aarch64() {
    let (Some(lld), Some(objdump)) = (tool("llvm22", "ld.lld"), tool("llvm22", "llvm-objdump"))
    else {
        return;
    };
    for (runtime, functions) in [
        (
            Runtime::Hip,
            &["Function", "Var", "ManagedVar", "Surface", "Texture"][..],
        ),
        (
            Runtime::Cuda,
            &["FatBinaryEnd", "Function", "Var", "ManagedVar"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let tables = [EntryLayout::V19, EntryLayout::V21].map(|layout| start_stop(layout, runtime));
        let object = FatBinary {
            runtime,
            bytes: Embedded::Bytes(b"image"),
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        let object = object.to_object(Machine::AARCH64).unwrap();
        fs::write(dir.path().join("r.o"), object).unwrap();
        let mut link = Command::new(&lld);
        link.args(["-shared", "r.o", "-o", "r.so", "--eh-frame-hdr"]);
        succeed(link.current_dir(dir.path()));
        let mut dump = Command::new(&objdump);
        dump.args(["-d", "--no-show-raw-insn", "--no-leading-addr", "r.so"]);
        let dump = text(&succeed(dump.current_dir(dir.path())).stdout);
        let name = prefix(runtime);
        for function in functions {
            let call = format!("<__{name}Register{function}@plt>");
            assert!(dump.contains(&call), "{call} not in {dump}");
        }
        for function in ["atexit@plt", &format!(".{name}.globals_reg")] {
            let call = format!("<{function}>");
            assert!(dump.contains(&call), "{call} not in {dump}");
        }
        assert!(!dump.contains("unknown"), "{dump}");
    }
}
