//! Other formats than ELF, and files that are made to be large.

use super::*;
use crate::container::embed::{Flavor, Host, elf_object, embed_bytes};
use crate::container::macho::universal;
use crate::format::bytes::{ReadAt, SourceError};
use crate::names::Triple;

const IMAGE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/image.exe");
const BITCODE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/embedded.bc");

/// A file of which only some parts are there: the others are never read.
#[derive(Clone, Copy)]
struct Sparse<'a> {
    parts: &'a [(u64, &'a [u8])],
    size: u64,
    read: &'a RefCell<u64>,
}

impl<'a> ReadAt<'a> for Sparse<'a> {
    fn size(self) -> Option<u64> {
        Some(self.size)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }
    fn read_at(self, offset: u64, size: u64) -> Option<&'a [u8]> {
        *self.read.borrow_mut() += size;
        let inside = |&&(start, bytes): &&(u64, &[u8])| {
            start <= offset && offset + size <= start + bytes.len() as u64
        };
        let (start, bytes) = self.parts.iter().find(inside)?;
        bytes.read_at(offset - start, size)
    }
    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'a [u8]> {
        let (start, bytes) = *self.parts.iter().rev().find(|part| part.0 <= range.start)?;
        let end = (range.end - start).min(bytes.len() as u64);
        bytes.read_until(range.start - start..end, delimiter)
    }
}

#[test]
fn reads_kilobytes_of_a_file_of_gigabytes() {
    const LARGE: u64 = 2 << 30;
    let reads = |parts: &[(u64, &[u8])]| {
        let read = RefCell::new(0);
        let size = parts
            .iter()
            .map(|(start, bytes)| start + bytes.len() as u64)
            .max();
        let data = Sparse {
            parts,
            size: size.unwrap() + 0x1000,
            read: &read,
        };
        let found = images(data).unwrap();
        assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
        assert_eq!(&*found[1].content(data).unwrap(), b"BBBBBBBBB");
        let read = *read.borrow();
        assert!(read < 0x1000, "{read}");
    };
    // The same file, with its section headers after two gigabytes of something else.
    let mut elf = FAT.to_vec();
    elf[0x28..0x30].copy_from_slice(&LARGE.to_le_bytes());
    reads(&[(0, &elf), (LARGE, &FAT[0x230..])]);

    // A COFF object and an image whose section is as far away, with a long name and a cut one.
    let size = TWO.len() as u32;
    let object = coff(0x0240_0800, b"/4\0\0\0\0\0\0", size, LARGE as u32);
    reads(&[(0, &object), (LARGE, TWO)]);
    let image = windows_image(b".llvm.of", size, size, LARGE as u32);
    reads(&[(0, &image), (LARGE, TWO)]);
}

/// The headers of a COFF object with one section.
fn coff(characteristics: u32, name: &[u8; 8], size: u32, offset: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..4].copy_from_slice(b"\x64\x86\x01\0");
    bytes[8..12].copy_from_slice(&60_u32.to_le_bytes());
    bytes[20..28].copy_from_slice(name);
    for (place, value) in [(28, size), (36, size), (40, offset), (56, characteristics)] {
        bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes.extend(b"\x15\0\0\0.llvm.offloading\0");
    bytes
}

/// The headers of a PE image with one section, whose sizes in memory and in the file may differ.
fn windows_image(name: &[u8; 8], loaded: u32, size: u32, offset: u32) -> Vec<u8> {
    let mut headers = vec![0; 0x44];
    headers[..2].copy_from_slice(b"MZ");
    headers[0x3c] = 0x40;
    headers[0x40..].copy_from_slice(b"PE\0\0");
    let mut image = coff(0x4000_0040, name, size, offset);
    image[28..32].copy_from_slice(&loaded.to_le_bytes());
    // An optional header of images of 64 bits, without directories.
    image[16] = 112;
    let mut optional = vec![0; 112];
    optional[..2].copy_from_slice(b"\x0b\x02");
    image.splice(20..20, optional);
    headers.extend(image);
    headers
}

#[test]
fn reads_sections_of_images_without_what_is_not_loaded() {
    let image = |name, content: &[u8], loaded: usize| {
        let size = content.len() as u32;
        let offset = windows_image(name, 0, 0, 0).len() as u32;
        let headers = windows_image(name, loaded as u32, size, offset);
        [&headers, content].concat()
    };
    let padded = [TWO, b"padding"].concat();
    let found = images(&image(b".llvm.of", &padded, TWO.len())[..]).unwrap();
    assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
    // lld cuts the names of other sections to `.llvm`, too.
    let found = images(&image(b".llvm\0\0\0", TWO, TWO.len())[..]).unwrap();
    assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
    let other = image(b".llvm\0\0\0", b"another content", 15);
    assert_eq!(images(&other[..]), Ok(Vec::new()));
}

#[test]
fn rejects_files_whose_sections_lie_over_each_other() {
    // An ELF file in which 40 sections are the same images.
    let mut file = FAT[..0x230].to_vec();
    file.extend(FAT[0x230..].iter().take(0x40));
    for _ in 0..40 {
        file.extend(&FAT[0x230 + 4 * 0x40..][..0x40]);
    }
    file[0x3c..0x40].copy_from_slice(&[41, 0, 0, 0]);
    assert_eq!(link_inputs(&file[..]).unwrap().len(), 80);
    let big = [&file[..0x40], &TWO.repeat(100), &file[0x230..]].concat();
    let mut big = big;
    let headers = 0x40 + TWO.len() * 100;
    big[0x28..0x30].copy_from_slice(&(headers as u64).to_le_bytes());
    for section in 1..41 {
        let size = (TWO.len() as u64 * 100).to_le_bytes();
        big[headers + section * 0x40 + 0x20..][..8].copy_from_slice(&size);
    }
    assert_eq!(
        link_inputs(&big[..]).unwrap_err().to_string(),
        "too many sections or slices share the same bytes"
    );
}

#[test]
fn inflates_compressed_offload_binaries() {
    let strings: &[(&[u8], &[u8])] = &[(b"triple", b"spirv64-intel"), (b"arch", b"pvc")];
    let entry = offload_binary::NewBinaryEntry {
        image_size: 0x1000,
        strings,
        ..Default::default()
    };
    let image = [b'x'; 0x1000];
    let version = offload_binary::OffloadBinaryVersion::from_raw(3).unwrap();
    let release = crate::names::LlvmRelease::V22;
    let pieces = offload_binary::layout(&[entry], version, release).unwrap();
    let plain = crate::format::pieces::to_bytes(&pieces, &[&image]).unwrap();
    let method = offload_binary::Method::Zlib;
    let mut compressed = offload_binary::compress(&plain, method, None).unwrap();
    compressed.resize(compressed.len().next_multiple_of(8), 0);
    let file = [TWO, &compressed].concat();
    let object = elf_object(elf::Machine::X86_64, &file).unwrap();
    for file in [&file, &object] {
        let found = images(&file[..]).unwrap();
        assert_eq!(arches(&found), ["sm_70", "gfx90a", "pvc"]);
        assert_eq!(&*found[2].content(&file[..]).unwrap(), image);
        assert_eq!((found[2].binary, found[2].bytes.is_some()), (2, true));
        assert_eq!(found[1].bytes, None);
    }
    // The limit is one for all together.
    let two = [&compressed[..], &compressed].concat();
    let limited = |limit| images_within(&two[..], &mut Unpacking::in_memory(limit));
    let size = plain.len() as u64;
    assert_eq!(limited(2 * size).unwrap().len(), 2);
    let message = limited(2 * size - 1).unwrap_err().to_string();
    assert!(message.contains(" is more than the allowed "), "{message}");
    // More strings than there is room for: `compress` would refuse to write that.
    let mut damaged = plain.clone();
    damaged[0x28 + 0x10 + 3] = 1;
    let mut packed = std::io::Cursor::new(TWO.to_vec());
    packed.set_position(TWO.len() as u64);
    let size = damaged.len() as u64;
    offload_binary::compress_to(&damaged[..], size, method, None, &mut packed).unwrap();
    assert_eq!(packed.position(), packed.get_ref().len() as u64);
    let message = images(&packed.get_ref()[..]).unwrap_err().to_string();
    assert_eq!(
        message,
        "inflated offload binary 2: entry 0: string entries at offset 0x50 with size 0x18000030 runs past the end at \
         0x10a0"
    );
    // The inflated size that is claimed.
    let place = TWO.len() + 0x20;
    let mut large = file.clone();
    large[place + 4] = 1;
    let message = images(&large[..]).unwrap_err().to_string();
    let claimed = plain.len() + (1 << 32);
    assert_eq!(
        message,
        format!(
            "offload binary 2: compressed offload binary: inflated size {claimed:#x} is more than \
             the allowed 0x40000000"
        )
    );
}

fn object(triple: &str, content: &[u8]) -> Vec<u8> {
    let host = Host::of(&Triple::parse(triple).unwrap()).unwrap();
    embed_bytes(host, Flavor::Excluded, content).unwrap()
}

#[test]
fn reads_universal_files_and_no_class_files() {
    let macho = object("x86_64-apple-macos", TWO);
    let size = macho.len() as u32;
    let file = universal(
        &[[0x0100_0007, 48, size], [0xc, 48 + size, size]],
        &macho.repeat(2),
    );
    let found = images(&file[..]).unwrap();
    assert_eq!(arches(&found), ["sm_70", "gfx90a", "sm_70", "gfx90a"]);
    assert_eq!(
        (&found[0].members[0][..], &found[2].members[0][..]),
        (&b"x86_64"[..], &b"arm"[..])
    );
    assert_eq!(found[2].section, Some(1));
    let class_file = [b"\xca\xfe\xba\xbe\0\0\0\x34".as_slice(), &[0; 64]].concat();
    assert_eq!(find(&class_file[..]), Ok(Vec::new()));
}

#[test]
fn reads_bitcode_in_its_wrapper() {
    let words = [0x0b17_c0de, 0, 20, BITCODE.len() as u32, 0].map(u32::to_le_bytes);
    let wrapped = [words.as_flattened(), BITCODE].concat();
    assert_eq!(images(&wrapped[..]).unwrap(), images(BITCODE).unwrap());
}

#[test]
fn names_the_problem_of_each_format() {
    let message = |file: &[u8]| images(file).unwrap_err().to_string();
    let macho = object("x86_64-apple-macos", TWO);
    let coff = object("x86_64-pc-windows-msvc", TWO);
    let size = macho.len() as u32;

    let file = universal(&[[7, 48, size], [7, 48, size]], &macho);
    let text = "too many sections or slices share the same bytes";
    assert_eq!(message(&file), text);
    // A slice that is the universal file itself.
    assert_eq!(message(&universal(&[[7, 0, 28]], b"")), text);
    assert_eq!(
        message(&universal(&[[7, 28, size]], &macho[..8])),
        format!("slice at offset 0x1c with size {size:#x} runs past the end at 0x24")
    );
    assert_eq!(
        message(&macho[..100]),
        "the Mach-O headers are damaged: Invalid Mach-O load command table size"
    );
    assert_eq!(
        message(&macho[..macho.len() - 8]),
        "section 1: content at offset 0xd0 with size 0x160 runs past the end at 0x228"
    );
    assert_eq!(message(&coff[..0x50]), "section 1: its name is missing");
    assert_eq!(
        message(&coff[..30]),
        "section table at offset 0x14 with size 0x28 runs past the end at 0x1e"
    );
    let mut lies = coff.clone();
    lies[20 + 16 + 2] = 1; // The size of the content.
    assert_eq!(
        message(&lies),
        format!(
            "section 1: content at offset 0x3c with size 0x10160 runs past the end at {:#x}",
            coff.len()
        )
    );
    let coff = object("x86_64-pc-windows-msvc", &TWO[..0x98 + 16]);
    assert_eq!(
        message(&coff),
        "section 1: offload binary 1: entries_offset of header at offset 0xe4 with size 0x8 runs \
         past the end at 0xe4"
    );
    // `llvm-bcanalyzer` 22: a module of 587 words, after 5 words of identification.
    assert_eq!(
        message(&BITCODE[..0x400]),
        "bitcode: block at offset 0x28 with size 0x92c runs past the end at 0x400"
    );
}

#[test]
fn survives_changes_of_every_format() {
    let macho = object("arm64-apple-macos", TWO);
    let size = macho.len() as u32;
    let files = [
        object("i686-pc-windows-msvc", TWO),
        object("i686-unknown-linux-gnu", TWO),
        object("s390x-unknown-linux-gnu", TWO),
        universal(&[[0x0100_000c, 28, size]], &macho),
        IMAGE[..0x400].to_vec(),
    ];
    for mut bytes in files {
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in [0, 0xff, before ^ 1] {
                bytes[offset] = value;
                for found in images(&bytes[..]).into_iter().flatten() {
                    found.content(&bytes[..]).unwrap();
                }
            }
            bytes[offset] = before;
            let _ = images(&bytes[..offset]);
        }
    }
}
