use super::sample::{SampleSection, elf_file, symbol_table};
use super::*;
use crate::container::embed::elf_object;
use crate::format::pieces;

const ELF32_LITTLE: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf32le.o");
const ELF32_BIG: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf32be.o");
const ELF64_LITTLE: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf64le.o");
const ELF64_BIG: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf64be.o");
const TWO_IMAGES: &[u8] =
    include_bytes!("../../../../tests/golden/22.1.8/two-images.offload-binary");

const ALL: [&[u8]; 4] = [ELF32_LITTLE, ELF32_BIG, ELF64_LITTLE, ELF64_BIG];

fn parse(bytes: &[u8]) -> Result<Elf<'_, &[u8]>, ElfError> {
    Elf::parse(bytes, 0..bytes.len() as u64)
}

fn offload_sections(elf: &Elf<'_, &[u8]>) -> Vec<ElfSection> {
    let sections = elf.sections();
    let sections = sections.filter(|section| section.section_type == SHT_LLVM_OFFLOADING);
    sections.collect()
}

/// Everything that can be asked.
fn read_all(bytes: &[u8]) -> Result<(), ElfError> {
    let elf = parse(bytes)?;
    let names = elf.names()?;
    for section in elf.sections().skip(1) {
        names.of(&section)?;
        elf.content(&section)?;
    }
    elf.symbols(SymbolTable::All)?;
    elf.symbols(SymbolTable::Dynamic)?;
    Ok(())
}

#[test]
fn finds_the_section_in_every_class_and_byte_order() {
    // Index and offset as `readelf -SW` prints them.
    for (bytes, index, offset) in [
        (ELF32_LITTLE, 4, 0x38),
        (ELF32_BIG, 5, 0x38),
        (ELF64_LITTLE, 4, 0x40),
        (ELF64_BIG, 4, 0x40),
    ] {
        let sections = offload_sections(&parse(bytes).unwrap());
        let [section] = sections[..] else {
            panic!("{sections:?}")
        };
        assert_eq!(
            (section.index, section.offset, section.size),
            (index, offset, 0x160)
        );
        assert_eq!(
            (section.alignment, section.excluded(), section.allocated()),
            (8, true, false)
        );
        let elf = parse(bytes).unwrap();
        assert_eq!(elf.content(&section), Ok(TWO_IMAGES));
        assert_eq!(elf.find(OFFLOADING_SECTION), Ok(Some(section)));
        assert_eq!(
            elf.names().unwrap().of(&section),
            Ok(OFFLOADING_SECTION.as_bytes())
        );
        assert_eq!(elf.find(".llvm"), Ok(None));
    }
}

#[test]
fn reads_the_fields_of_the_file_header() {
    let fields = |bytes| {
        let elf = parse(bytes).unwrap();
        (elf.file_type, elf.machine, elf.flags)
    };
    let machines = ALL.map(fields);
    assert_eq!(machines, [(1, 3, 0), (1, 20, 0), (1, 62, 0), (1, 21, 0)]);
}

#[test]
fn reads_symbols_in_every_class_and_byte_order() {
    for (bytes, section) in [
        (ELF32_LITTLE, 3),
        (ELF32_BIG, 4),
        (ELF64_LITTLE, 3),
        (ELF64_BIG, 3),
    ] {
        let symbols = parse(bytes).unwrap().symbols(SymbolTable::All).unwrap();
        let summary: Vec<_> = symbols
            .iter()
            .map(|it| (it.name, it.binding, it.place, it.size))
            .collect();
        assert_eq!(
            summary,
            [
                (&b""[..], Binding::Local, SymbolPlace::Undefined, 0),
                (b"x.c", Binding::Local, SymbolPlace::Other(0xfff1), 0),
                (b"x", Binding::Global, SymbolPlace::Section(section), 4),
            ]
        );
        assert_eq!(
            parse(bytes).unwrap().symbols(SymbolTable::Dynamic),
            Ok(Vec::new())
        );
    }
}

#[test]
fn reads_an_object_inside_a_file_at_any_offset() {
    for start in [1, 2, 68] {
        let file = [&vec![0xaa; start][..], ELF64_LITTLE, b"more"].concat();
        let end = start + ELF64_LITTLE.len();
        let elf = Elf::parse(&file[..], start as u64..end as u64).unwrap();
        let sections = offload_sections(&elf);
        assert_eq!(sections[0].offset, start as u64 + 0x40);
        assert_eq!(elf.content(&sections[0]), Ok(TWO_IMAGES));
        assert_eq!(elf.symbols(SymbolTable::All).unwrap().len(), 3);
    }
}

#[test]
fn names_the_problem_and_its_place() {
    let change = |offset: usize, value: &[u8]| {
        let mut bytes = ELF64_LITTLE.to_vec();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        read_all(&bytes).unwrap_err().to_string()
    };
    // The section headers of 0x40 bytes start at 0x230; the fourth is of the offload binaries,
    // the first of the names, the sixth of the symbols.
    let cases: [(usize, &[u8], &str); 14] = [
        (0x00, b"MZ", "expected an ELF file at offset 0x0"),
        (
            0x04,
            b"\x03",
            "ELF class 3 with byte order 1 is not supported (1 and 2 are)",
        ),
        (
            0x05,
            b"\x00",
            "ELF class 2 with byte order 0 is not supported (1 and 2 are)",
        ),
        (0x06, b"\x02", "ELF version is not supported (1 is)"),
        (
            0x28,
            b"\x00\x00\x01",
            "section header table at offset 0x10000 with size 0x1c0 runs past the end at 0x3f0",
        ),
        (
            0x3c,
            b"\xff\xff",
            "section header table at offset 0x230 with size 0x3fffc0 runs past the end at 0x3f0",
        ),
        (
            0x3a,
            b"\x30",
            "expected section headers of size 0x40, found 0x30",
        ),
        (
            0x3e,
            b"\x07",
            "invalid section index 7: the file has 7 sections",
        ),
        (
            0x230 + 0x40 * 4 + 0x18,
            b"\xf0\xff",
            "section 4: content at offset 0xfff0 with size 0x160 runs past the end at 0x3f0",
        ),
        (
            0x230 + 0x40 * 4 + 0x26,
            b"\xff\xff",
            "section 4: content at offset 0x40 with size 0xffff000000000160 runs past the end at 0x3f0",
        ),
        (
            0x230 + 0x40 * 4,
            b"\x00\x10\x00\x00",
            "section 4: its name, at offset 0x1000 of the section names, is missing",
        ),
        (
            0x230 + 0x40 * 6 + 0x20,
            b"\x47",
            "section 6: its size is not a multiple of a symbol's size",
        ),
        (
            0x1a0 + 0x18,
            b"\xff\x00\x00\x00",
            "symbol 1: its name, at offset 0xff of the string table, is missing",
        ),
        (
            0x230 + 0x40 * 6 + 0x28,
            b"\x09",
            "invalid section index 9: the file has 7 sections",
        ),
    ];
    for (offset, value, expected) in cases {
        assert_eq!(change(offset, value), expected, "{offset:#x}");
    }
}

#[test]
fn says_that_a_file_is_too_short_for_its_header() {
    let message = |len: usize| parse(&ELF64_LITTLE[..len]).unwrap_err().to_string();
    assert_eq!(
        message(0x20),
        "file header at offset 0x0 with size 0x40 runs past the end at 0x20"
    );
    assert_eq!(message(5), "expected an ELF file at offset 0x0");
    let message = parse(&ELF32_BIG[..0x33]).unwrap_err().to_string();
    assert_eq!(
        message,
        "file header at offset 0x0 with size 0x34 runs past the end at 0x33"
    );
}

#[test]
fn rejects_every_truncation() {
    for bytes in ALL {
        for len in 0..bytes.len() {
            parse(&bytes[..len]).unwrap_err();
        }
    }
}

#[test]
fn survives_every_single_byte_change() {
    let all = std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1");
    for bytes in ALL {
        let mut bytes = bytes.to_vec();
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            // All values with `make test-all`; else those that differ in one bit, and the ends.
            let is_tried =
                |value: u8| all || value % 255 == 0 || (value ^ before).count_ones() == 1;
            for value in (0..=255).filter(|value| is_tried(*value)) {
                bytes[offset] = value;
                let _ = read_all(&bytes);
                // Copies the file, so not for every value.
                if value % 16 == 15 {
                    let _ = with_section(&bytes, ".bss", ".other");
                    let _ = with_symbols(&bytes, |name| Some(format!("{name}.new")));
                    let _ = separated(&bytes, &[2]);
                }
            }
            bytes[offset] = before;
        }
    }
}

#[test]
fn accepts_a_file_without_sections() {
    let mut bytes = ELF64_LITTLE[..0x40].to_vec();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    assert_eq!(offload_sections(&parse(&bytes).unwrap()), Vec::new());
    assert_eq!(
        parse(&bytes).unwrap().symbols(SymbolTable::All),
        Ok(Vec::new())
    );
    assert_eq!(parse(&bytes).unwrap().find(".text"), Ok(None));
}

#[test]
fn embeds_for_every_machine() {
    for (arch, number, flags) in [
        ("x86_64", 62, 0),
        ("aarch64", 183, 0),
        ("riscv64", 243, 5),
        ("powerpc64le", 21, 2),
    ] {
        let triple = crate::names::Triple::parse(&format!("{arch}-unknown-linux-gnu")).unwrap();
        let machine = Machine::of(&triple).unwrap();
        assert_eq!((machine.number, machine.flags), (number, flags));
        let object = elf_object(machine, TWO_IMAGES).unwrap();
        let elf = parse(&object).unwrap();
        assert_eq!((elf.file_type, elf.machine, elf.flags), (1, number, flags));
        let sections = offload_sections(&elf);
        let [section] = sections[..] else {
            panic!("{sections:?}")
        };
        assert_eq!(
            (section.flags, section.alignment, section.offset % 8),
            (0x8000_0000, 8, 0)
        );
        assert_eq!(elf.content(&section), Ok(TWO_IMAGES));
        assert_eq!(elf.find(OFFLOADING_SECTION), Ok(Some(section)));
        let stack = elf.find(".note.GNU-stack").unwrap().unwrap();
        assert_eq!((stack.section_type, stack.flags, stack.size), (1, 0, 0));
    }
    let machine = Machine {
        number: 8,
        flags: 0,
    };
    assert_eq!(
        elf_object(machine, b"").unwrap_err().to_string(),
        "objects for machine 0x8 cannot be written (those for x86_64, 0x3e, aarch64, 0xb7, \
         riscv64, 0xf3, powerpc64le, 0x15 can)"
    );
}

fn with_section(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, ElfWriteError> {
    let pieces = rename_section(bytes, 0..bytes.len() as u64, old, new)?;
    Ok(pieces::to_bytes(&pieces, &[bytes]).unwrap())
}

fn with_symbols(
    bytes: &[u8],
    new: impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, ElfWriteError> {
    let pieces = rename_symbols(bytes, 0..bytes.len() as u64, new)?;
    Ok(pieces::to_bytes(&pieces, &[bytes]).unwrap())
}

#[test]
fn renames_a_section_and_moves_nothing_else() {
    for bytes in [ELF64_LITTLE, ELF64_BIG] {
        let new = ".llvm.offloading.done";
        let renamed = with_section(bytes, OFFLOADING_SECTION, new).unwrap();
        let (before, after) = (parse(bytes).unwrap(), parse(&renamed).unwrap());
        assert_eq!(after.find(OFFLOADING_SECTION), Ok(None));
        let section = after.find(new).unwrap().unwrap();
        assert_eq!(section.index, 4);
        let (old_names, new_names) = (before.names().unwrap(), after.names().unwrap());
        for (old, now) in before.sections().zip(after.sections()).skip(1) {
            if old.index != 4 {
                assert_eq!(old_names.of(&old), new_names.of(&now));
            }
            // Section 1 is that of the names.
            if old.index != 1 {
                assert_eq!(
                    ElfSection {
                        name_offset: old.name_offset,
                        ..now
                    },
                    old
                );
            }
        }
        assert_eq!(
            before.symbols(SymbolTable::All),
            after.symbols(SymbolTable::All)
        );
        let changed = bytes
            .iter()
            .zip(&renamed)
            .filter(|(old, new)| old != new)
            .count();
        assert!(changed <= 4 + 8 + 8, "{changed}");
    }
}

#[test]
fn renames_the_symbols_that_other_objects_see() {
    for bytes in [ELF64_LITTLE, ELF64_BIG] {
        let renamed = with_symbols(bytes, |name| Some(format!("{name}.new"))).unwrap();
        let (before, after) = (parse(bytes).unwrap(), parse(&renamed).unwrap());
        let (old, new) = (
            before.symbols(SymbolTable::All).unwrap(),
            after.symbols(SymbolTable::All).unwrap(),
        );
        assert_eq!(old.len(), new.len());
        let mut count = 0;
        for (old, new) in old.iter().zip(&new) {
            let is_seen = old.binding != Binding::Local && old.place != SymbolPlace::Undefined;
            let expected = match is_seen {
                true => [old.name, b".new"].concat(),
                false => old.name.to_vec(),
            };
            count += usize::from(is_seen);
            assert_eq!(new.name, expected);
            assert_eq!(
                ElfSymbol { name: b"", ..*old },
                ElfSymbol { name: b"", ..*new }
            );
        }
        assert!(count > 0);
        // No other byte than names of symbols, and where the names are.
        let changed = bytes
            .iter()
            .zip(&renamed)
            .filter(|(old, new)| old != new)
            .count();
        assert!(changed <= 4 * count + 8 + 8, "{changed}");
        assert_eq!(
            with_symbols(bytes, |_| None).unwrap().len() - bytes.len(),
            {
                let strings = before.sections().find(|section| section.section_type == 2);
                before.section(strings.unwrap().link).unwrap().size as usize
            }
        );
    }
    let error = with_symbols(ELF32_BIG, |_| None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a 64-bit ELF file with sections"
    );
}

#[test]
fn rejects_what_has_no_such_section() {
    let message = |bytes, old| with_section(bytes, old, "new").unwrap_err().to_string();
    assert_eq!(message(ELF64_LITTLE, ".none"), "section `.none` is missing");
    assert_eq!(
        message(ELF32_BIG, ".text"),
        "expected a 64-bit ELF file with sections"
    );
    assert_eq!(
        message(b"MZ", ".text"),
        "expected an ELF file at offset 0x0"
    );
}

fn separated(bytes: &[u8], symbols: &[u32]) -> Result<Vec<u8>, ElfWriteError> {
    let names = symbols.iter().map(|index| (*index, format!("own{index}")));
    let pieces = separate_symbols(bytes, 0..bytes.len() as u64, &names.collect())?;
    Ok(pieces::to_bytes(&pieces, &[bytes]).unwrap())
}

#[test]
fn gives_a_symbol_a_second_name() {
    for bytes in [ELF64_LITTLE, ELF64_BIG] {
        let after = separated(bytes, &[2]).unwrap();
        let (old, new) = (parse(bytes).unwrap(), parse(&after).unwrap());
        let old = old.symbols(SymbolTable::All).unwrap();
        let new = new.symbols(SymbolTable::All).unwrap();
        assert_eq!(new.len(), 4);
        assert_eq!((new[0], new[1], new[3]), (old[0], old[1], old[2]));
        let own = ElfSymbol {
            name: b"own2",
            ..old[2]
        };
        assert_eq!(new[2], own);
        assert_eq!(separated(bytes, &[]).unwrap(), bytes);
    }
}

#[test]
fn rejects_symbols_that_others_do_not_see() {
    let message = |bytes, index| separated(bytes, &[index]).unwrap_err().to_string();
    // Symbol 1 is local, and there are three.
    for index in [0, 1, 3] {
        assert_eq!(
            message(ELF64_LITTLE, index),
            format!("symbol {index}: expected a defined symbol that other objects see")
        );
    }
    assert_eq!(
        message(ELF32_BIG, 2),
        "expected a 64-bit ELF file with sections"
    );
}

#[test]
fn reads_relocations_with_and_without_addends() {
    let entry =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let relocations = |kind: u32, entry: &[u8]| {
        // The content of the offload binaries, section 4, becomes relocations.
        let mut bytes = ELF64_LITTLE.to_vec();
        bytes[0x40..0x40 + entry.len()].copy_from_slice(entry);
        let header = 0x230 + 0x40 * 4;
        bytes[header + 4..header + 8].copy_from_slice(&kind.to_le_bytes());
        let size = (entry.len() as u64).to_le_bytes();
        bytes[header + 0x20..header + 0x28].copy_from_slice(&size);
        let file = parse(&bytes).unwrap();
        let table = file.section(4).unwrap();
        file.relocations(&table)
    };
    let relocation = |addend| ElfRelocation {
        offset: 0x12,
        symbol: 2,
        addend,
    };
    let [rela, rel] = [4, 9];
    let record = entry(&[0x12, 2 << 32 | 4, (-4_i64) as u64]);
    assert_eq!(relocations(rela, &record), Ok(vec![relocation(Some(-4))]));
    assert_eq!(relocations(rel, &record[..16]), Ok(vec![relocation(None)]));
    assert_eq!(relocations(1, &record), Ok(Vec::new()));
    let error = relocations(rela, &record[..16]).unwrap_err();
    let expected = "section 4: its relocations cannot be rewritten";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn reads_the_section_indices_of_this_table_of_symbols() {
    let indices = [[0_u32, 7], [0, 5]].map(|indices| indices.map(u32::to_le_bytes).concat());
    let section = |kind: u32, link, content| SampleSection {
        kind,
        flags: 0,
        address: 0,
        link,
        content,
    };
    let symbols = symbol_table(&[(1, elf::SHN_XINDEX.0)]);
    let sections = [
        section(elf::SHT_SYMTAB.0, 1, &symbols[..]),
        // Of another table.
        section(elf::SHT_SYMTAB_SHNDX.0, 9, &indices[0]),
        section(elf::SHT_SYMTAB_SHNDX.0, 2, &indices[1]),
    ];
    let file = elf_file(1, 62, b"\0x\0", &sections);
    let symbols = parse(&file).unwrap().symbols(SymbolTable::All).unwrap();
    assert_eq!(
        (symbols[1].name, symbols[1].place),
        (&b"x"[..], SymbolPlace::Section(5))
    );
}

#[test]
fn rejects_segments_of_notes_that_lie_over_each_other() {
    let mut note = [4_u32, 4096, 1].map(u32::to_le_bytes).concat();
    note.extend(b"GNU\0");
    note.resize(note.len() + 4096, 7);
    let file = |count: u16| {
        let mut file = ELF64_LITTLE[..0x40].to_vec();
        file[0x28..0x30].fill(0);
        file[0x3c..0x40].fill(0);
        file[0x20..0x28].copy_from_slice(&64_u64.to_le_bytes());
        file[0x36..0x3a].copy_from_slice(&[56, count].map(u16::to_le_bytes).concat());
        let (offset, size) = (64 + 56 * u64::from(count), note.len() as u64);
        for _ in 0..count {
            file.extend([elf::PT_NOTE.0, 4].map(u32::to_le_bytes).concat());
            let words = [offset, 0, 0, size, size, 4];
            file.extend(words.map(u64::to_le_bytes).concat());
        }
        file.extend(&note);
        file
    };
    let notes = |file: &[u8]| parse(file).unwrap().notes().map(|notes| notes.len());
    assert_eq!(notes(&file(1)), Ok(1));
    let offset = 64 + 2 * 56;
    assert_eq!(notes(&file(2)), Err(ElfError::Notes { offset }));
}
