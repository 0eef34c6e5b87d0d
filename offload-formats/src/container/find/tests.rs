use std::cell::RefCell;

use super::*;
use crate::container::archive::{self, NewMember};
use crate::container::embed::elf_object;
use crate::format::bytes::{ReadAt, SourceError};
use crate::format::pieces;

mod formats;

const FAT: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf64le.o");
const FAT_BIG: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf32be.o");
const GNU: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/gnu.a");
const THIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/thin.a");
const TWO: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/two-images.offload-binary");

/// Bytes that remember what was read of them.
#[derive(Clone, Copy)]
struct Counting<'a> {
    bytes: &'a [u8],
    reads: &'a RefCell<Vec<Range<u64>>>,
}

impl<'a> ReadAt<'a> for Counting<'a> {
    fn size(self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }
    fn read_at(self, offset: u64, size: u64) -> Option<&'a [u8]> {
        self.reads.borrow_mut().push(offset..offset + size);
        self.bytes.read_at(offset, size)
    }
    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'a [u8]> {
        self.reads.borrow_mut().push(range.clone());
        self.bytes.read_until(range, delimiter)
    }
}

/// Returns the number of bytes and reads of `run`.
fn reads<'a, T>(
    bytes: &'a [u8],
    reads: &'a RefCell<Vec<Range<u64>>>,
    run: impl FnOnce(Counting<'a>) -> T,
) -> (u64, usize) {
    reads.borrow_mut().clear();
    run(Counting { bytes, reads });
    let reads = reads.borrow();
    (
        reads.iter().map(|range| range.end - range.start).sum(),
        reads.len(),
    )
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let member = |&(name, bytes)| NewMember {
        name,
        bytes,
        symbols: &[],
    };
    archive::write(&members.iter().map(member).collect::<Vec<_>>())
}

fn arches(found: &[FoundImage]) -> Vec<&str> {
    found.iter().map(|image| image.entry.arch()).collect()
}

/// Calls the tested function with enough memory for every input.
fn images<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundImage>, FindError> {
    super::images(data)
}

fn link_inputs<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundImage>, FindError> {
    super::link_inputs(data, &mut Unpacking::in_memory(super::INFLATE_LIMIT))
}

fn image<'a>(file: &'a [u8], found: &FoundImage) -> &'a [u8] {
    let Range { start, end } = found.entry.image;
    &file[start as usize..end as usize]
}

#[test]
fn finds_images_in_files_objects_and_archives() {
    for file in [TWO, FAT, FAT_BIG, GNU] {
        let found = images(file).unwrap();
        assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
        assert_eq!(
            (image(file, &found[0]), image(file, &found[1])),
            (&b"AAAA"[..], &b"BBBBBBBBB"[..])
        );
        assert_eq!((found[0].binary, found[1].binary), (0, 1));
        assert_eq!((found[0].index, found[1].index), (0, 0));
        for found in &found {
            let Range { start, end } = found.binary_range;
            let of_golden = [&TWO[..0x98], &TWO[0x98..]][found.binary];
            assert_eq!(&file[start as usize..end as usize], of_golden);
        }
        assert_eq!(link_inputs(file).unwrap(), found);
    }
}

#[test]
fn says_where_an_image_was_found() {
    let found = &images(GNU).unwrap()[1];
    assert_eq!(found.members, [b"fat.o"]);
    assert_eq!(found.section, Some(4));
    assert_eq!(found.standing, Standing::Excluded);
    let found = &images(TWO).unwrap()[1];
    assert_eq!(
        (found.members.len(), found.section, found.standing),
        (0, None, Standing::Raw)
    );
}

#[test]
fn finds_images_in_nested_archives_and_skips_what_is_none() {
    let inner = archive(&[("text", b"hello"), ("two", TWO)]);
    let outer = archive(&[
        ("empty", b""),
        ("inner.a", &inner),
        ("fat.o", FAT),
        ("lib.rmeta", b"rust"),
    ]);
    let found = images(&outer[..]).unwrap();
    assert_eq!(arches(&found), ["sm_70", "gfx90a", "sm_70", "gfx90a"]);
    assert_eq!(found[0].members, [&b"inner.a"[..], b"two"]);
    assert_eq!(found[3].members, [&b"fat.o"[..]]);
    assert_eq!(image(&outer, &found[1]), b"BBBBBBBBB");
}

#[test]
fn tells_finished_images_from_input() {
    let mut allocated = FAT.to_vec();
    // `sh_flags` of section 4: SHF_ALLOC instead of SHF_EXCLUDE.
    allocated[0x230 + 0x40 * 4 + 8..][..8].copy_from_slice(&2_u64.to_le_bytes());
    let found = images(&allocated[..]).unwrap();
    assert!(
        found
            .iter()
            .all(|image| image.standing == Standing::Allocated)
    );
    assert_eq!(link_inputs(&allocated[..]).unwrap().len(), 2);

    let range = 0..allocated.len() as u64;
    let finished = elf::rename_section(&allocated[..], range, ".llvm.offloading", FINISHED_SECTION);
    let mut finished = pieces::to_bytes(&finished.unwrap(), &[&allocated]).unwrap();
    // `sh_type`: PROGBITS, as it is there.
    finished[0x230 + 0x40 * 4 + 4..][..4].copy_from_slice(&1_u32.to_le_bytes());
    let found = images(&finished[..]).unwrap();
    assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
    assert!(
        found
            .iter()
            .all(|image| image.standing == Standing::Finished)
    );
    assert_eq!(link_inputs(&finished[..]), Ok(Vec::new()));
}

#[test]
fn names_the_member_the_section_and_the_place() {
    let message = |file: &[u8]| images(file).unwrap_err().to_string();
    let mut fat = FAT.to_vec();
    fat[0x40 + 0x42] = 0x10;
    let problem = "section 4: offload binary 0: image at offset 0xd0 with size 0x100004 runs past \
                   the end at 0xd8";
    assert_eq!(message(&fat), problem);
    let inner = archive(&[("fat.o", &fat)]);
    let outer = archive(&[("one", b"1"), ("inner.a", &inner)]);
    let problem = "member `inner.a`: member `fat.o`: section 4: offload binary 0: image at offset \
                   0x1da with size 0x100004 runs past the end at 0x1e2";
    assert_eq!(message(&outer), problem);
    let cut = archive(&[("cut.o", &FAT[..0x100])]);
    let problem = "member `cut.o`: section header table at offset 0x2b8 with size 0x1c0 runs past \
                   the end at 0x188";
    assert_eq!(message(&cut), problem);
    assert_eq!(
        message(THIN),
        "member `fat.o`: the archive is thin: the content is another file"
    );
    let problem = "offload binary 1: size of header at offset 0xa0 with size 0x8 runs past the end \
                   at 0xa2";
    assert_eq!(message(&TWO[..0xa2]), problem);
    let problem = "member at offset 0xb4: content at offset 0xf0 with size 0x3f0 runs past the end \
                   at 0x200";
    assert_eq!(message(&GNU[..0x200]), problem);
}

#[test]
fn rejects_archives_too_deep_in_each_other() {
    let mut file = TWO.to_vec();
    for _ in 0..16 {
        file = archive(&[("a", &file)]);
    }
    assert_eq!(images(&file[..]).unwrap().len(), 2);
    file = archive(&[("a", &file)]);
    let message = images(&file[..]).unwrap_err().to_string();
    let members = "member `a`: ".repeat(16);
    assert_eq!(
        message,
        format!("{members}archives are nested more than 16 deep")
    );
    for _ in 0..1000 {
        file = archive(&[("a", &file)]);
    }
    images(&file[..]).unwrap_err();
}

/// The link of every program goes through this: a read more for each object is a slower link.
#[test]
fn reads_only_headers_of_what_holds_no_images() {
    let log = RefCell::new(Vec::new());
    let mut plain = FAT.to_vec();
    plain[0x230 + 0x40 * 4 + 4..][..4].copy_from_slice(&1_u32.to_le_bytes());
    let (bytes, count) = reads(&plain, &log, |data| link_inputs(data).unwrap());
    // The magic, the file header, the section headers.
    assert_eq!((bytes, count), (24 + 64 + 7 * 64, 3));

    let big = vec![b'x'; 1 << 20];
    let file = archive(&[("a", &big), ("plain.o", &plain), ("b", &big), ("c", &big)]);
    let (bytes, count) = reads(&file, &log, |data| link_inputs(data).unwrap());
    // Twice the magic; the headers of the index and of four members, of each member the magic, and
    // of the object its headers.
    let headers = 60 + 4 * (60 + 24) + 64 + 7 * 64;
    assert_eq!((bytes, count), (24 * 2 + headers, 2 + 1 + 4 * 2 + 2));

    let (bytes, count) = reads(&file, &log, |data| {
        Archive::parse(data, 0..u64::MAX).unwrap().members.len()
    });
    assert_eq!((bytes, count), (24 + 5 * 60, 6));
}

#[test]
fn reads_no_image() {
    let log = RefCell::new(Vec::new());
    let image = vec![b'i'; 1 << 20];
    let strings: &[_] = &[("triple", "nvptx64-nvidia-cuda"), ("arch", "sm_90")];
    let written = offload_binary::BinaryImage {
        strings,
        image: &image,
        ..Default::default()
    };
    let binary = written.to_bytes(crate::names::LlvmRelease::V22).unwrap();
    let binaries = [&binary[..], &binary, &binary].concat();
    let object = elf_object(elf::Machine::X86_64, &binaries).unwrap();
    for file in [&binaries, &object, &archive(&[("object.o", &object)])] {
        let (bytes, _) = reads(file, &log, |data| {
            assert_eq!(images(data).unwrap().len(), 3)
        });
        assert!(bytes < 2048, "{bytes}");
        for range in log.borrow().iter() {
            assert!(range.end - range.start < 1024, "{range:x?}");
        }
    }
}

#[test]
fn rejects_every_truncation_of_an_object() {
    for len in 4..FAT.len() {
        images(&FAT[..len]).unwrap_err();
    }
}

#[test]
fn survives_every_single_byte_change() {
    let mut bytes = GNU[..0x4e0].to_vec();
    for offset in 0..bytes.len() {
        let before = bytes[offset];
        for value in [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            before ^ 1,
            before ^ 0x10,
            before.wrapping_add(1),
        ] {
            bytes[offset] = value;
            if let Ok(found) = images(&bytes[..]) {
                for found in &found {
                    image(&bytes, found);
                }
            }
        }
        bytes[offset] = before;
    }
}
