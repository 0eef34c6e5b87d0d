use std::cell::Cell;

use super::*;
use crate::container::elf::{ElfSection, SHT_LLVM_OFFLOADING};
use crate::format::bytes::{ReadAt, SourceError};

/// `clang-offload-bundler` of these releases; commands in `tests/golden/README.md`.
const PLAIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/three-images.bundle");
const V2: &[u8] = include_bytes!("../../../../tests/golden/19.1.7/compressed.bundle");
const V3: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/compressed.bundle");

/// An object of a compiler, in each class and byte order.
const ELFS: [&[u8]; 4] = [
    include_bytes!("../../../../tests/golden/22.1.8/elf32be.o"),
    include_bytes!("../../../../tests/golden/22.1.8/elf32le.o"),
    include_bytes!("../../../../tests/golden/22.1.8/elf64be.o"),
    include_bytes!("../../../../tests/golden/22.1.8/elf64le.o"),
];

fn find(bytes: &[u8]) -> Result<FoundBundles, FoundBundlesError> {
    super::find(bytes, 0..bytes.len() as u64)
}

/// Section names and where bundles start.
fn places(bytes: &[u8]) -> Vec<(String, u64)> {
    let found = find(bytes).unwrap().bundles;
    assert!(found.iter().map(|found| found.index).eq(0..found.len()));
    let place = |found: &FoundBundle| {
        let section = found.section.clone().unwrap_or_default();
        let section = String::from_utf8(section).unwrap();
        (section, found.bundle.range().start)
    };
    found.iter().map(place).collect()
}

/// A COFF object for x86-64 with these sections; a name longer than eight bytes is in the strings.
fn coff(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let header = 20 + 40 * sections.len();
    let contents: usize = sections.iter().map(|(_, content)| content.len()).sum();
    let mut bytes = b"\x64\x86".to_vec();
    bytes.extend((sections.len() as u16).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(((header + contents) as u32).to_le_bytes());
    bytes.extend([0; 8]);
    let (mut offset, mut strings) = (header, b"\0\0\0\0".to_vec());
    for (name, content) in sections {
        let mut field = name.as_bytes().to_vec();
        if name.len() > 8 {
            field = format!("/{}", strings.len()).into_bytes();
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        field.resize(8, 0);
        bytes.extend(field);
        bytes.extend([0; 8]);
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend((offset as u32).to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend(b"\x40\0\0\x40"); // Initialized data, read.
        offset += content.len();
    }
    sections
        .iter()
        .for_each(|(_, content)| bytes.extend(*content));
    let size = (strings.len() as u32).to_le_bytes();
    strings[..4].copy_from_slice(&size);
    bytes.extend(strings);
    bytes
}

/// An ELF object with the content of `.llvm.offloading` replaced, whose name is irrelevant.
fn elf(object: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = object.to_vec();
    let elf = Elf::parse(object, 0..object.len() as u64).unwrap();
    let mut sections = elf.sections();
    let is_offloading = |section: &ElfSection| section.section_type == SHT_LLVM_OFFLOADING;
    let section = sections.find(is_offloading).unwrap();
    let (start, room) = (section.offset as usize, section.size as usize);
    assert!(content.len() <= room, "{room} is too small");
    bytes[start..start + room].fill(0);
    bytes[start..start + content.len()].copy_from_slice(content);
    bytes
}

#[test]
fn finds_the_bundles_of_a_file_of_bundles() {
    let bytes = [PLAIN, &[0; 100], V3, V2].concat();
    let second = PLAIN.len() as u64 + 100;
    let third = second + V3.len() as u64;
    let starts = [0, second, third].map(|start| (String::new(), start));
    assert_eq!(places(&bytes), starts);
    assert!(
        find(&bytes)
            .unwrap()
            .bundles
            .iter()
            .all(|found| found.section.is_none())
    );
    assert_eq!(find(&bytes).unwrap().trailing, []);
    let bytes = [V3, b"rest"].concat();
    let trailing = find(&bytes).unwrap().trailing;
    let range = V3.len() as u64..bytes.len() as u64;
    let section = None;
    assert_eq!(trailing, [TrailingBytes { section, range }]);
}

#[test]
fn finds_nothing_in_other_files() {
    let archive = [b"!<arch>\n", V3].concat();
    let shifted = [b"x", V3].concat();
    let dos = [b"MZ", &[0; 100][..]].concat();
    let files: [&[u8]; 6] = [b"", b"x", &archive, &shifted, &dos, b"\x64\x86"];
    for file in files.into_iter().chain(ELFS) {
        assert_eq!(find(file), Ok(FoundBundles::default()), "{file:x?}");
    }
    assert_eq!(
        find(&coff(&[(".text", b"code")])),
        Ok(FoundBundles::default())
    );
}

#[test]
fn finds_the_sections_of_elf_files_of_every_class_and_order() {
    for object in ELFS {
        let found = places(&elf(object, V3));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, ".llvm.offloading");
        assert_eq!(find(&elf(object, V3)).unwrap().trailing, []);
        let damaged = elf(object, &V3[..32]);
        let found = find(&damaged).unwrap();
        let AnyBundle::Compressed(bundle) = &found.bundles[0].bundle else {
            panic!("{found:?}")
        };
        // Of the right size, and without its data.
        let into = &mut std::io::sink();
        bundle.decompress_to(&damaged[..], into).unwrap_err();
    }
}

#[test]
fn finds_the_sections_of_coff_files() {
    let plain = [PLAIN, V3, &[0; 7]].concat();
    let bytes = coff(&[
        (".text", b"code"),
        (".hip_fatbin", &plain),
        (".hip_fat", V2),
    ]);
    let start = 20 + 3 * 40 + 4;
    let second = start + PLAIN.len() as u64;
    let third = start + plain.len() as u64;
    let expected = [
        (".hip_fatbin", start),
        (".hip_fatbin", second),
        (".hip_fat", third),
    ];
    let expected = expected.map(|(name, start)| (name.to_owned(), start));
    assert_eq!(places(&bytes), expected);
    // Inside of another file, as a member of an archive is.
    let outer = [b"12345", &bytes[..], b"rest"].concat();
    let found = super::find(&outer[..], 5..5 + bytes.len() as u64).unwrap();
    assert_eq!(found.bundles[2].bundle.range().start, 5 + third);
    // The name as the header has it, when it is nowhere else.
    let strings = bytes.len() - 16;
    let nameless = places(&bytes[..strings]);
    assert_eq!(nameless[0].0, "/4");
}

#[test]
fn names_the_section_and_the_place() {
    let message = |bytes: &[u8]| find(bytes).unwrap_err().to_string();
    let cut = coff(&[(".hip_fatbin", &[V3, &V3[..20]].concat())]);
    let text = "section `.hip_fatbin`: bundle 1: compressed bundle: uncompressed_size of header \
                at offset 0x101 with size 0x8 runs past the end at 0x105";
    assert_eq!(message(&cut), text);
    let whole = coff(&[("a", b"code"), ("b", V3)]);
    let text = "section `b`: content at offset 0x68 with size 0xb5 runs past the end at 0xc8";
    assert_eq!(message(&whole[..200]), text);
    let headers = "section table at offset 0x14 with size 0x50 runs past the end at 0x5a";
    assert_eq!(message(&whole[..90]), headers);
    let object = elf(ELFS[3], V3);
    let text = "section header table at offset";
    assert!(message(&object[..object.len() - 1]).starts_with(text));
    let text = "bundle 0: compressed bundle: expected version 1, 2 or 3, found 9";
    assert_eq!(message(b"CCOB\x09\0\0\0"), text);
}

#[test]
fn survives_every_truncation_and_single_byte_change() {
    let coff = coff(&[(".text", b"code"), (".hip_fatbin", &[V3, V2].concat())]);
    for whole in [coff, elf(ELFS[0], V3), elf(ELFS[3], V3)] {
        for len in 0..whole.len() {
            let _ = find(&whole[..len]);
        }
        let mut bytes = whole;
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                bytes[offset] = value;
                for found in find(&bytes).unwrap_or_default().bundles {
                    let range = found.bundle.range();
                    assert!(range.start < range.end && range.end <= bytes.len() as u64);
                }
            }
            bytes[offset] = before;
        }
    }
}

/// A file that claims to be a terabyte, of which some places are not zero. Counts what is read.
#[derive(Clone, Copy)]
struct Sparse<'a> {
    parts: &'a [(u64, &'a [u8])],
    read: &'a Cell<u64>,
}

impl<'a> ReadAt<'a> for Sparse<'a> {
    fn size(self) -> Option<u64> {
        Some(1 << 40)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'a [u8]> {
        const ZEROS: [u8; 0x1000] = [0; 0x1000];
        self.read.set(self.read.get() + size);
        let part = self
            .parts
            .iter()
            .rev()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&offset));
        let bytes = part.map_or(&ZEROS[..], |(start, bytes)| {
            &bytes[(offset - start) as usize..]
        });
        bytes.get(..size as usize)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'a [u8]> {
        let bytes = self.read_at(range.start, 8)?;
        let end = bytes.iter().position(|byte| *byte == delimiter)?;
        Some(&bytes[..end])
    }
}

#[test]
fn reads_kilobytes_of_a_program_of_gigabytes() {
    // The first section of code, the second of bundles with an image of a gigabyte each.
    const GIGABYTE: u32 = 1 << 30;
    let id = "hip-amdgcn-amd-amdhsa--gfx906";
    let align = std::num::NonZeroU64::new(4096).unwrap();
    let layout = crate::format::bundle::BundleLayout::new([(id, GIGABYTE.into())], align).unwrap();
    let mut headers = coff(&[(".text", b"code"), (".hip_fat", &layout.head)])[..100].to_vec();
    let mut set = |offset: usize, value: u32| {
        headers[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    };
    set(8, 0); // No symbols.
    set(20 + 16, GIGABYTE);
    set(60 + 16, 2 * (GIGABYTE + 0x1000));
    set(60 + 20, GIGABYTE + 0x1000);
    let first = u64::from(GIGABYTE) + 0x1000;
    let read = Cell::new(0);
    let second = first + layout.size();
    let parts = [
        (0, &headers[..]),
        (first, &layout.head),
        (second, &layout.head),
    ];
    let data = Sparse {
        parts: &parts,
        read: &read,
    };
    let found = super::find(data, 0..1 << 40).unwrap();
    let ranges: Vec<_> = found
        .bundles
        .iter()
        .map(|found| found.bundle.range())
        .collect();
    assert_eq!(ranges, [first..second, second..second + layout.size()]);
    assert!(read.get() < 8 << 10, "{} bytes read", read.get());
}
