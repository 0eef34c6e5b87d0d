use crate::md5::Md5;

use super::super::{ElfError, ElfSection, SymbolTable};
use super::*;
use crate::container::elf::{Elf, Machine};
use crate::container::test_objects::{DEVICE, SECTIONS, bytes};
use crate::format::bytes::OutOfBounds;
use crate::format::pieces::{Embedded, to_bytes};
use crate::registration::fat_binary::{FatBinary, Runtime};
use crate::registration::hip_symbols::HipSymbols;
use object::{Object as _, ObjectSection as _, RelocationTarget};

const HOST: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/bundle-host.o");
const FAT: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/bundle-in-object.o");
const ELF32_LITTLE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/elf32le.o");
const ELF32_BIG: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/elf32be.o");
const ELF64_LITTLE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/elf64le.o");
const ELF64_BIG: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/elf64be.o");

const ALL: [&[u8]; 6] = [HOST, FAT, ELF32_LITTLE, ELF32_BIG, ELF64_LITTLE, ELF64_BIG];

fn add(host: &[u8]) -> Result<Vec<Piece>, ElfWriteError> {
    add_sections(host, 0..host.len() as u64, &SECTIONS)
}

fn remove(object: &[u8], prefix: &[u8]) -> Result<Vec<Piece>, ElfWriteError> {
    let matches = |name: &[u8]| name.starts_with(prefix);
    remove_sections(object, 0..object.len() as u64, matches)
}

#[test]
fn adds_sections_with_the_bytes_of_llvm() {
    let written = bytes(&add(HOST).unwrap(), HOST).unwrap();
    assert_eq!(written, FAT);
    // As the specification has it.
    let digest = Md5::digest(&written);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "97005230743a03d2d566e1244764227d");
}

#[test]
fn removes_sections_with_the_bytes_of_llvm() {
    let pieces = remove(FAT, b"__CLANG_OFFLOAD_BUNDLE__").unwrap();
    assert_eq!(bytes(&pieces, FAT).unwrap(), HOST);
}

#[test]
fn copies_contents_from_where_they_are() {
    let file = [b"xx", HOST, b"yy"].concat();
    let pieces = add_sections(&file[..], 2..2 + HOST.len() as u64, &SECTIONS).unwrap();
    assert!(pieces.contains(&Piece::Copy {
        input: 0,
        range: 0x42..0x44
    }));
    assert!(pieces.contains(&Piece::Copy {
        input: 2,
        range: 0..25
    }));
    assert_eq!(to_bytes(&pieces, &[&file, b"", DEVICE]).unwrap(), FAT);
}

/// Names, types and contents of all sections but those of names and symbols.
fn sections(file: &[u8]) -> Vec<(Vec<u8>, u32, u64, Vec<u8>)> {
    let elf = Elf::parse(file, 0..file.len() as u64).unwrap();
    let names = elf.names().unwrap();
    let mut sections: Vec<_> = elf.sections().skip(1).collect();
    sections.retain(|section| !(2..=3).contains(&section.section_type));
    let fields = |section: &ElfSection| {
        let (name, content) = (names.of(section).unwrap(), elf.content(section).unwrap());
        let ElfSection {
            section_type,
            flags,
            ..
        } = *section;
        (name.to_vec(), section_type, flags, content.to_vec())
    };
    sections.iter().map(fields).collect()
}

#[test]
fn keeps_sections_and_symbols_in_every_class_and_byte_order() {
    for host in ALL {
        let written = bytes(&add(host).unwrap(), host).unwrap();
        let (before, after) = (sections(host), sections(&written));
        let (old, new) = after.split_at(before.len());
        assert_eq!(old, before);
        let names: Vec<&[u8]> = new.iter().map(|(name, ..)| &name[..]).collect();
        assert_eq!(names, SECTIONS.map(|section| section.name));
        assert_eq!(new[1].3, DEVICE);
        assert!(
            new.iter()
                .all(|(_, kind, flags, _)| (*kind, *flags) == (1, 0x8000_0000))
        );
        let symbols = |file| {
            let elf = Elf::parse(file, 0..u64::MAX).unwrap();
            let symbols = elf.symbols(SymbolTable::All).unwrap().into_iter();
            symbols
                .map(|symbol| (symbol.name, symbol.place, symbol.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(symbols(host), symbols(&written));
    }
}

fn refer(host: &[u8]) -> Result<Vec<Piece>, ElfWriteError> {
    add_reference(host, 0..host.len() as u64, "wanted", elf::R_X86_64_64)
}

#[test]
fn refers_to_a_symbol_of_another_object() {
    use object::read::elf::{ElfFile64, FileHeader};
    use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};

    for host in [ELF64_LITTLE, ELF64_BIG] {
        let written = bytes(&refer(host).unwrap(), host).unwrap();
        let before = sections(host);
        assert_eq!(sections(&written)[..before.len()], before);
        let file: ElfFile64<'_> = ElfFile64::parse(&written[..]).unwrap();
        assert_eq!(file.elf_header().e_ident().os_abi, elf::ELFOSABI_GNU);
        let section = file.section_by_name(REFERENCE_SECTION).unwrap();
        assert_eq!(section.data().unwrap(), [0; 8]);
        assert_eq!(section.align(), 8);
        // SHF_WRITE, SHF_ALLOC, SHF_GNU_RETAIN.
        let endian = file.endian();
        assert_eq!(
            section.elf_section_header().sh_flags.get(endian).0,
            0x20_0003
        );
        let relocations: Vec<_> = section.relocations().collect();
        let [(0, relocation)] = &relocations[..] else {
            panic!("{relocations:?}")
        };
        let r_type = elf::R_X86_64_64;
        assert_eq!(relocation.flags(), RelocationFlags::Elf { r_type });
        assert_eq!(relocation.addend(), 0);
        let RelocationTarget::Symbol(index) = relocation.target() else {
            panic!("{relocation:?}")
        };
        let symbol = file.symbol_by_index(index).unwrap();
        assert_eq!(symbol.name(), Ok("wanted"));
        assert!(symbol.is_undefined() && symbol.is_global() && !symbol.is_weak());
        let names = |file| {
            let elf = Elf::parse(file, 0..u64::MAX).unwrap();
            let symbols = elf.symbols(SymbolTable::All).unwrap().into_iter();
            symbols
                .map(|symbol| (symbol.name, symbol.place, symbol.value))
                .collect::<Vec<_>>()
        };
        let (old, new) = (names(host), names(&written[..]));
        assert_eq!(new[..old.len()], old);
        assert_eq!(new.len(), old.len() + 1);
    }
}

#[test]
fn refers_only_from_objects_whose_symbols_and_relocations_are_known() {
    let error = refer(HOST).unwrap_err().to_string();
    assert_eq!(error, "section `.symtab` is missing");
    let mips = patched(ELF64_LITTLE, &[(0x12, &[8])]);
    assert_eq!(refer(ELF32_BIG).unwrap_err(), ElfWriteError::NotWide);
    let error = refer(&mips).unwrap_err();
    assert_eq!(error, ElfWriteError::Machine { number: 8 });
}

/// Returns an object with relocations.
fn registration() -> Vec<u8> {
    let registration = FatBinary {
        runtime: Runtime::Hip,
        bytes: Embedded::Bytes(b"__CLANG_OFFLOAD_BUNDLE__"),
        tables: &[],
        symbols: HipSymbols::default(),
        globals: &[],
    };
    registration.to_object(Machine::X86_64).unwrap()
}

/// Against the crate `object`.
#[test]
fn lists_the_symbols_in_relocations_of_a_section() {
    let object = registration();
    let elf = Elf::parse(&object[..], 0..u64::MAX).unwrap();
    let mut count = 0;
    for section in object::File::parse(&object[..]).unwrap().sections() {
        let expected = section
            .relocations()
            .map(|(_, found)| match found.target() {
                RelocationTarget::Symbol(index) => index.0 as u32,
                _ => 0,
            });
        let expected: Vec<u32> = expected.collect();
        assert_eq!(elf.referred(section.index().0 as u32).unwrap(), expected);
        count += expected.len();
    }
    assert!(count > 0);
}

#[test]
fn passes_over_no_relocations_that_it_cannot_read() {
    let object = registration();
    let elf = Elf::parse(&object[..], 0..u64::MAX).unwrap();
    let is_table = |section: &ElfSection| section.section_type == elf::SHT_RELA.0;
    let table = elf.sections().find(is_table).unwrap();
    let headers = u64::from_le_bytes(object[0x28..0x30].try_into().unwrap()) as usize;
    let header = headers + 0x40 * table.index as usize;
    // The compact form, and a size that is no multiple of a relocation's.
    for change in [(header + 4, &[0x14, 0, 0, 0x40][..]), (header + 0x20, &[1])] {
        let changed = patched(&object, &[change]);
        let elf = Elf::parse(&changed[..], 0..u64::MAX).unwrap();
        let index = table.index;
        let error = elf.referred(table.info).unwrap_err();
        assert_eq!(error, ElfWriteError::Relocations { index });
    }
    for place in 0..object.len() {
        for change in [0x01, 0xfe] {
            let mut changed = object.clone();
            changed[place] ^= change;
            if let Ok(elf) = Elf::parse(&changed[..], 0..u64::MAX) {
                let _ = elf.referred(table.info);
            }
        }
    }
}

#[test]
fn survives_every_truncation_and_every_single_byte_change() {
    for file in ALL {
        for len in 0..file.len() {
            let short = &file[..len];
            assert!(add(short).is_err(), "{len}");
            assert!(refer(short).is_err(), "{len}");
            assert!(remove(short, b"").is_err(), "{len}");
        }
        for place in 0..file.len() {
            for change in [0x01, 0xfe] {
                let mut changed = file.to_vec();
                changed[place] ^= change;
                // What is written can be read, with the sections that were asked for.
                if let Ok(pieces) = add(&changed) {
                    if let Some(written) = bytes(&pieces, &changed) {
                        let elf = Elf::parse(&written[..], 0..u64::MAX).unwrap();
                        let name = std::str::from_utf8(SECTIONS[1].name).unwrap();
                        assert!(elf.find(name).unwrap().is_some(), "{place:#x}");
                        remove(&written, b"__CLANG").unwrap();
                    }
                }
                if let Some(written) = refer(&changed).ok().and_then(|new| bytes(&new, &changed)) {
                    let elf = Elf::parse(&written[..], 0..u64::MAX).unwrap();
                    let symbols = elf.symbols(SymbolTable::All).unwrap();
                    assert_eq!(symbols.last().unwrap().name, b"wanted", "{place:#x}");
                }
                let _ = remove(&changed, b".").map(|pieces| bytes(&pieces, &changed));
            }
        }
    }
}

/// The file with other bytes at some places.
fn patched(file: &[u8], patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (place, bytes) in patches {
        file[*place..place + bytes.len()].copy_from_slice(bytes);
    }
    file
}

/// Returns the offset of a section header in `FAT`.
const fn header(index: usize) -> usize {
    0xe8 + 64 * index
}

#[test]
fn tells_what_is_damaged() {
    let error = |patches| add(&patched(FAT, patches)).unwrap_err().to_string();
    for (patches, expected) in [
        (
            &[(0x28, &[0; 8][..])][..],
            "the ELF file has no section header table",
        ),
        (
            &[(0x3e, &[0, 0])],
            "the ELF file has no section header table",
        ),
        (
            &[(header(3) + 4, &[1])],
            "section 3: expected a string table that programs do not load",
        ),
        // Index 0xffff: the header of section 0 has the index, which is 0 and so invalid.
        (
            &[(0x3c, &[1, 0, 0xff, 0xff]), (header(0) + 4, &[3])],
            "section 0: expected a string table that programs do not load",
        ),
        (
            &[(header(1) + 0x28, &[9])],
            "invalid section index 9: the file has 6 sections",
        ),
        (
            &[
                // Relocations of type SHT_CREL, and the section that they are for.
                (header(1) + 4, &[0x14, 0, 0, 0x40]),
                (header(1) + 0x2c, &[9]),
            ],
            "invalid section index 9: the file has 6 sections",
        ),
        (
            &[(header(1) + 0x19, &[9])],
            "section 1: content at offset 0x940 with size 0x1 runs past the end at 0x268",
        ),
        (
            &[(header(1) + 0x20, &[0; 8]), (header(1) + 4, &[17])],
            "section 1: the group has no flags",
        ),
        (
            &[(header(1) + 4, &[4, 0, 0, 0, 0])],
            "section 1: its relocations cannot be rewritten",
        ),
        (
            &[(header(1) + 4, &[18]), (header(5) + 4, &[18])],
            "section 5: expected one section of this type, found it in section 1, too",
        ),
        (
            &[(header(1) + 0x34, &[1])],
            "0x1000000cc is too large for this file",
        ),
        (
            &[(0x20, &[0x40]), (0x36, &[56, 0, 20])],
            "20 program headers of size 0x38 at offset 0x40 are invalid or outside of the file",
        ),
    ] {
        assert_eq!(error(patches), expected);
    }
    let segment = patched(FAT, &[(0x20, &[0x40]), (0x36, &[56, 0, 1])]);
    let error = add(&segment).unwrap_err();
    let ElfWriteError::Elf(ElfError::Segment { index: 0, problem }) = error else {
        panic!("{error}")
    };
    let OutOfBounds { what, end, .. } = problem;
    assert_eq!((what, end), ("content", 0x268));
}

#[test]
fn keeps_string_tables_that_no_names_are_in() {
    // `llvm-objcopy` 22.1 writes them empty.
    let host = patched(HOST, &[(header_of_host(1) + 4, &[3, 0, 0, 0, 0])]);
    let written = bytes(&add(&host).unwrap(), &host).unwrap();
    let elf = Elf::parse(&written[..], 0..u64::MAX).unwrap();
    assert_eq!(elf.content(&elf.section(1).unwrap()).unwrap(), b"\xc3");
}

#[test]
fn keeps_segments_as_they_are_and_names_right() {
    // One segment of all of the file: `llvm-objcopy` 22.1 leaves the old names in it.
    let mut host = HOST.to_vec();
    let mut header = vec![1, 0, 0, 0, 4, 0, 0, 0];
    for field in [0, 0x1000, 0x1000, 352 + 56, 352 + 56, 8] {
        header.extend(u64::to_le_bytes(field));
    }
    host.extend(&header);
    let host = patched(&host, &[(0x20, &[0x60, 1]), (0x36, &[56, 0, 1])]);
    let written = bytes(&add(&host).unwrap(), &host).unwrap();
    // The section header table of the old file is in the segment, too; only the file header differs.
    assert_eq!(written[0x40..host.len()], host[0x40..]);
    let elf = Elf::parse(&written[..], 0..u64::MAX).unwrap();
    let names = elf.names().unwrap();
    let names: Vec<&[u8]> = elf
        .sections()
        .map(|section| names.of(&section).unwrap())
        .collect();
    let added = SECTIONS.map(|section| section.name);
    let expected = [
        &b""[..],
        b".text",
        b".strtab",
        b".shstrtab",
        added[0],
        added[1],
    ];
    assert_eq!(names, expected);
    assert_eq!(elf.section(1).unwrap().offset, 0x40);
    assert!(elf.section(3).unwrap().offset >= host.len() as u64);
    let written_again = remove(&written, b"__CLANG_OFFLOAD").unwrap();
    let back = bytes(&written_again, &written).unwrap();
    assert_eq!(back[0x40..host.len()], host[0x40..]);
}

/// Returns the offset of a section header in `HOST`.
const fn header_of_host(index: usize) -> usize {
    0x60 + 64 * index
}

#[test]
fn removes_what_is_in_a_segment_by_zeros() {
    let mut host = HOST.to_vec();
    let mut header = vec![1, 0, 0, 0, 4, 0, 0, 0];
    for field in [0x40, 0x1040, 0x1040, 1, 1, 0x1000] {
        header.extend(u64::to_le_bytes(field));
    }
    host.extend(&header);
    let host = patched(&host, &[(0x20, &[0x60, 1]), (0x36, &[56, 0, 1])]);
    let removed = remove(&host, b".text").unwrap();
    let written = bytes(&removed, &host).unwrap();
    // As with `llvm-objcopy` 22.1 the segment stays.
    assert_eq!((written[0x40], &written[0x38..0x3a]), (0, &[1, 0][..]));
}

#[test]
fn removes_nothing_that_is_needed() {
    let error = remove(FAT, b".shstrtab").unwrap_err().to_string();
    assert_eq!(error, "section 3 cannot be removed: it contains names");
    // Section 1 needs section 2.
    let linked = patched(FAT, &[(header(1) + 0x28, &[2])]);
    let error = remove(&linked, b".strtab").unwrap_err().to_string();
    assert_eq!(error, "section 2 cannot be removed: section 1 needs it");
}
