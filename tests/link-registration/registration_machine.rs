//! The machine code in registration objects: what clang makes of its sources in assembler.

use crate::linker_support as support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::coff::CoffFile;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags};
use offload_formats::container::elf::Machine;
use offload_formats::format::offload_entry;
use offload_formats::format::pieces::Embedded;
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use offload_formats::registration::openmp::{BlobSection, OpenMp};
use offload_formats::registration::sycl::Sycl;
use support::tool;

/// What a linker sees of an object, without the order in which it is stored.
fn summary(bytes: &[u8]) -> BTreeMap<String, String> {
    let file = ElfFile64::<object::Endianness>::parse(bytes).unwrap();
    let mut seen = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().unwrap();
        let own = [".strtab", ".shstrtab", ".symtab"].contains(&name);
        if own || name.starts_with(".rela.") || (name == ".text" && section.size() == 0) {
            continue;
        }
        let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else {
            unreachable!()
        };
        let mut text = format!("{sh_type:?} {sh_flags:?} {}\n", section.align());
        for row in section.data().unwrap().chunks(16) {
            writeln!(text, "{row:02x?}").unwrap();
        }
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                panic!("{relocation:?}")
            };
            let symbol = file.symbol_by_index(index).unwrap();
            let (mut name, mut addend) = (symbol.name().unwrap(), relocation.addend());
            if let (true, Some(index)) = (symbol.is_local(), symbol.section_index()) {
                name = file.section_by_index(index).unwrap().name().unwrap();
                addend += symbol.address() as i64;
            }
            let flags = relocation.flags();
            writeln!(text, "{offset:#x} {flags:?} {name} {addend}").unwrap();
        }
        seen.insert(format!("section {name}"), text);
    }
    for symbol in file.symbols() {
        if [object::SymbolKind::Section, object::SymbolKind::File].contains(&symbol.kind()) {
            continue;
        }
        let section = symbol.section_index();
        let section = section.map(|index| file.section_by_index(index).unwrap());
        let section = section.map(|section| section.name().unwrap().to_owned());
        let (at, size, flags) = (symbol.address(), symbol.size(), symbol.flags());
        let name = format!("symbol {}", symbol.name().unwrap());
        seen.insert(name, format!("{section:?} {at:#x} {size:#x} {flags:?}"));
    }
    seen
}

/// Assembles one of the sources, and `more` behind it.
fn assemble(source: &str, target: &str, define: &str, more: &str) -> Option<Vec<u8>> {
    let clang = tool("llvm22", "clang")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source: PathBuf = folder
        .join("../offload-formats/src/registration/machine")
        .join(source);
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{source:?}: {error}"));
    fs::write(dir.path().join("a.s"), text + more).unwrap();
    let output = Command::new(clang)
        .current_dir(dir.path())
        .arg(format!("--target={target}"))
        .args(["-x", "assembler-with-cpp", define, "-c", "a.s"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(fs::read(dir.path().join("a.o")).unwrap())
}

/// The part of an object of fat binaries that depends on what is registered.
fn data(name: &str, section: &str, (alignment, padding): (u32, u32), kinds: &str) -> String {
    format!(
        "
        .section {section},\"a\",@progbits
        .balign {alignment}
        .type .fatbin_image,@object
.fatbin_image:
        .ascii \"image\"
        .size .fatbin_image, 5
        .balign {padding}

        .section omp_range,\"aw\",@progbits
        .balign 8
entries:
        .section .data.rel.ro,\"aw\",@progbits
        .balign 8
        .type .{name}.entry_tables,@object
.{name}.entry_tables:
        .dc.a entries, entries + 112
        .dc.l 56
        .dc.w {kinds}
        .dc.a 0, 0, 0
        .size .{name}.entry_tables, 48
"
    )
}

#[test]
fn is_what_clang_makes_of_the_assembler_sources() {
    for (machine, architecture) in [(Machine::X86_64, "x86_64"), (Machine::AARCH64, "aarch64")] {
        for (runtime, name, kinds) in [
            (Runtime::Hip, "hip", "3, 4"),
            (Runtime::Cuda, "cuda", "2, 2"),
        ] {
            let alignment = match runtime {
                Runtime::Hip => (4096, 4096),
                Runtime::Cuda => (16, 1),
            };
            let Some(expected) = assemble(
                &format!("fat_binary_{architecture}.s"),
                &format!("{architecture}-linux-gnu"),
                &format!("-D{}", name.to_uppercase()),
                &data(name, runtime.section(), alignment, kinds),
            ) else {
                return;
            };
            let ours = FatBinary {
                runtime,
                bytes: Embedded::Bytes(b"image"),
                tables: &[HostTable {
                    layout: offload_entry::EntryLayout::V20,
                    table: EntryTable::SectionRange {
                        section: "omp_range",
                        size: 112,
                        flags: 3,
                        alignment: 8,
                    },
                }],
                symbols: HipSymbols::default(),
                globals: &[],
            };
            let ours = summary(&ours.to_object(machine).unwrap());
            let mut expected = summary(&expected);
            // A name of this test alone; and aarch64's marks of code and data.
            expected.remove("symbol entries");
            expected.retain(|name, _| !name.starts_with("symbol $"));
            for (name, expected) in &expected {
                let ours = ours.get(name).map_or("nothing", String::as_str);
                assert_eq!(ours, expected, "{architecture} {runtime:?} {name}");
            }
            assert_eq!(ours.len(), expected.len(), "{architecture} {runtime:?}");
        }
    }
}

#[test]
fn is_what_clang_makes_of_the_assembler_sources_for_sycl() {
    let descriptor = "
        .section .data.rel.ro,\"aw\",@progbits
        .balign 16
        .type .sycl_offloading.descriptor,@object
.sycl_offloading.descriptor:
        .dc.w 1, 0
        .dc.l 0
        .dc.a .sycl_offloading.descriptor, 0, 0
        .size .sycl_offloading.descriptor, 32
";
    for (machine, architecture) in [(Machine::X86_64, "x86_64"), (Machine::AARCH64, "aarch64")] {
        let source = format!("sycl_{architecture}.s");
        let target = format!("{architecture}-linux-gnu");
        let Some(expected) = assemble(&source, &target, "-DSYCL", descriptor) else {
            return;
        };
        let ours = Sycl {
            images: &[],
            section: BlobSection::Finished,
            globals: &[],
        };
        let mut ours = summary(&ours.to_object(machine).unwrap());
        // Of images there are none.
        for name in ["section .rodata", "section .offloading.images"] {
            ours.remove(name);
        }
        ours.remove("symbol .sycl_offloading.device_images");
        let mut expected = summary(&expected);
        expected.retain(|name, _| !name.starts_with("symbol $"));
        assert_eq!(ours, expected, "{architecture}");
    }
}

/// Sections of a COFF object with their relocations; a symbol of a section is its section's.
fn coff_summary(bytes: &[u8]) -> BTreeMap<String, String> {
    let file = CoffFile::<&[u8]>::parse(bytes).unwrap();
    let mut seen = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().unwrap();
        let mut data = section.data().unwrap().to_vec();
        let mut relocations: Vec<(u64, String)> = Vec::new();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                panic!("{relocation:?}")
            };
            let symbol = file.symbol_by_index(index).unwrap();
            let (mut name, mut value) = (symbol.name().unwrap(), 0);
            if let Some(index) = symbol.section_index() {
                name = file.section_by_index(index).unwrap().name().unwrap();
                value = symbol.address();
            }
            // What is added is in the place itself.
            let place = &mut data[offset as usize..][..4];
            let field = u32::from_le_bytes((&*place).try_into().unwrap());
            place.fill(0);
            let target = u64::from(field) + value;
            let flags = relocation.flags();
            relocations.push((offset, format!("{flags:?} {name} {target:#x}")));
        }
        relocations.sort();
        let SectionFlags::Coff { characteristics } = section.flags() else {
            unreachable!()
        };
        let text = format!("{characteristics:?}\n{data:02x?}\n{relocations:#?}");
        seen.insert(name.to_owned(), text);
    }
    seen
}

#[test]
fn is_what_clang_makes_of_the_assembler_source_for_windows() {
    let table = EntryTable::StartStop {
        section: "s",
        entries: &[],
    };
    let fat_binary = |runtime| {
        let tables = [HostTable {
            layout: offload_entry::EntryLayout::V21,
            table,
        }];
        let fat_binary = FatBinary {
            runtime,
            bytes: Embedded::Bytes(b"image"),
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        fat_binary.to_coff(WindowsAbi::Msvc).unwrap()
    };
    let openmp = OpenMp {
        images: &[],
        table,
        section: BlobSection::Finished,
        globals: &[],
    };
    // Where each has what the functions refer to.
    let own = "
        .section .rdata,\"dr\"
        .p2align 4
NAME:   .zero 32
";
    let fat = "
        .section .bss,\"bw\"
        .p2align 3
HANDLE: .zero 8
        .section SEGMENT,\"dr\"
        .p2align 3
.fatbin_wrapper: .zero 24
";
    let descriptor = own.replace("NAME", ".omp_offloading.descriptor");
    let data = |name: &str, segment: &str| {
        let handle = fat.replace("HANDLE", &format!(".{name}.binary_handle"));
        own.replace("NAME", &format!(".{name}.entry_tables")) + &handle.replace("SEGMENT", segment)
    };
    for (define, ours, data) in [
        (
            "-DOPENMP",
            openmp.to_coff(WindowsAbi::Msvc).unwrap(),
            descriptor,
        ),
        (
            "-DHIP",
            fat_binary(Runtime::Hip),
            data("hip", ".hipFatBinSegment"),
        ),
        (
            "-DCUDA",
            fat_binary(Runtime::Cuda),
            data("cuda", ".nvFatBinSegment"),
        ),
    ] {
        let source = "windows_x86_64.s";
        let Some(expected) = assemble(source, "x86_64-pc-windows-msvc", define, &data) else {
            return;
        };
        let (ours, expected) = (coff_summary(&ours), coff_summary(&expected));
        for section in [".text.startup", ".xdata", ".pdata"] {
            assert_eq!(ours[section], expected[section], "{define} {section}");
        }
        assert!(ours.contains_key(".CRT$XCA00101"), "{:?}", ours.keys());
    }
    let gnu = coff_summary(&openmp.to_coff(WindowsAbi::Gnu).unwrap());
    assert!(gnu.contains_key(".ctors.65434"), "{:?}", gnu.keys());
}
