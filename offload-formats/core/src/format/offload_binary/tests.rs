use super::*;
use crate::format::pieces;
use crate::format::string_table;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

/// `clang-offload-packager` 19.1.7 and `llvm-offload-binary` 22.1.8, the same bytes of both:
/// `printf HELLOIMG > a.o`, then
/// `--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=openmp`.
pub(super) const ONE: &[u8] =
    b"\x10\xff\x10\xad\x01\0\0\0\x98\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0\
    \x01\0\x01\0\0\0\0\0\x48\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x90\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\
    \x69\0\0\0\0\0\0\0\x89\0\0\0\0\0\0\0\x6e\0\0\0\0\0\0\0\x75\0\0\0\0\0\0\0\
    \0arch\0triple\0nvptx64-nvidia-cuda\0sm_70\0\0HELLOIMG";

/// `llvm-offload-binary` 22.1.8: `: > e.o`, then `--image=file=e.o`.
const EMPTY: &[u8] =
    b"\x10\xff\x10\xad\x01\0\0\0\x50\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0\
    \x01\0\0\0\0\0\0\0\x48\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x50\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0";

/// `llvm-offload-binary` 22.1.8, and 19.1.7 but for the number of HIP: `printf AAAA > a.o`,
/// `printf BBBBBBBBB > b.bc`, then
/// `--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda`
/// `--image=file=b.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip,feature=+wavefrontsize64`.
const TWO_19: &[u8] =
    include_bytes!("../../../../../tests/golden/19.1.7/two-images.offload-binary");
const TWO_22: &[u8] =
    include_bytes!("../../../../../tests/golden/22.1.8/two-images.offload-binary");

const ONE_IMAGE: BinaryImage<'_> = BinaryImage {
    image_kind: ImageKind::OBJECT,
    offload_kind: OffloadKind::OPENMP,
    flags: 0,
    strings: &[("arch", "sm_70"), ("triple", "nvptx64-nvidia-cuda")],
    image: b"HELLOIMG",
};

const TWO_IMAGES: [BinaryImage<'_>; 2] = [
    BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::CUDA,
        flags: 0,
        strings: &[("arch", "sm_70"), ("triple", "nvptx64-nvidia-cuda")],
        image: b"AAAA",
    },
    BinaryImage {
        image_kind: ImageKind::BITCODE,
        offload_kind: OffloadKind::HIP,
        flags: 0,
        strings: &[
            ("feature", "+wavefrontsize64"),
            ("arch", "gfx90a"),
            ("triple", "amdgcn-amd-amdhsa"),
        ],
        image: b"BBBBBBBBB",
    },
];

/// The library of LLVM 23.1.4: `IMG-ONE`, object, openmp, `arch=sm_70`,
/// `triple=nvptx64-nvidia-cuda`; and `SECOND`, bitcode, hip, `arch=gfx90a:xnack+`,
/// `triple=amdgcn-amd-amdhsa`.
pub(super) fn version_2() -> Vec<u8> {
    let table = b"\0arch\0triple\0amdgcn-amd-amdhsa\0nvptx64-nvidia-cuda\0sm_70\0gfx90a:xnack+\0\0";
    let mut out = b"\x10\xff\x10\xad\x02\0\0\0".to_vec();
    let words = |out: &mut Vec<u8>, words: &[u64]| {
        words
            .iter()
            .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    };
    words(&mut out, &[0x128, 0x20, 2]);
    words(&mut out, &[0x0000_0000_0001_0001, 0x70, 2, 0x118, 7]);
    words(&mut out, &[0x0000_0000_0004_0002, 0xa0, 2, 0x11f, 6]);
    words(&mut out, &[0xd1, 0x103, 5, 0xd6, 0xef, 0x13]);
    words(&mut out, &[0xd1, 0x109, 13, 0xd6, 0xdd, 0x11]);
    out.extend_from_slice(table);
    out.extend_from_slice(b"IMG-ONESECOND\0\0\0");
    assert_eq!(out.len(), 0x128);
    out
}

fn parse(bytes: &[u8]) -> Result<OffloadBinary, OffloadBinaryError> {
    OffloadBinary::parse(bytes, 0, bytes.len() as u64)
}

fn walk(bytes: &[u8]) -> Result<Vec<OffloadBinary>, OffloadBinaryError> {
    super::walk(bytes, 0..bytes.len() as u64)
}

fn image<'a>(bytes: &'a [u8], entry: &BinaryEntry) -> &'a [u8] {
    &bytes[entry.image.start as usize..entry.image.end as usize]
}

#[test]
fn writes_the_bytes_llvm_writes() {
    assert_eq!(ONE_IMAGE.to_bytes(LlvmRelease::V19).unwrap(), ONE);
    assert_eq!(ONE_IMAGE.to_bytes(LlvmRelease::V22).unwrap(), ONE);
    let nothing = BinaryImage {
        image_kind: ImageKind::OBJECT,
        ..BinaryImage::default()
    };
    assert_eq!(nothing.to_bytes(LlvmRelease::V22).unwrap(), EMPTY);
    let two = |release| {
        TWO_IMAGES
            .map(|image| image.to_bytes(release).unwrap())
            .concat()
    };
    assert_eq!(two(LlvmRelease::V19), TWO_19);
    assert_eq!(two(LlvmRelease::V22), TWO_22);
}

#[test]
fn reads_what_llvm_writes() {
    let binary = parse(ONE).unwrap();
    assert_eq!(
        (binary.offset, binary.size, binary.entries.len()),
        (0, 0x98, 1)
    );
    let entry = &binary.entries[0];
    assert_eq!(
        (entry.triple(), entry.arch()),
        ("nvptx64-nvidia-cuda", "sm_70")
    );
    assert_eq!(entry.image_kind, ImageKind::OBJECT);
    assert_eq!((entry.offload_kind, entry.flags), (OffloadKind::OPENMP, 0));
    assert_eq!(entry.image, 0x90..0x98);
    let entry = &parse(EMPTY).unwrap().entries[0];
    assert_eq!((entry.strings.len(), entry.image.clone()), (0, 0x50..0x50));
    assert_eq!((entry.triple(), entry.arch()), ("", ""));
}

#[test]
fn reads_concatenated_ones_and_both_numbers_of_hip() {
    for bytes in [TWO_19, TWO_22] {
        let binaries = walk(bytes).unwrap();
        let offsets: Vec<u64> = binaries.iter().map(|binary| binary.offset).collect();
        assert_eq!(offsets, [0, 0x98]);
        for (binary, written) in binaries.iter().zip(TWO_IMAGES) {
            let entry = &binary.entries[0];
            assert_eq!(entry.offload_kind, written.offload_kind);
            assert_eq!(entry.image_kind, written.image_kind);
            assert_eq!(image(bytes, entry), written.image);
            let strings: Vec<_> = entry.strings.iter().collect();
            let bytes =
                |(key, value): &(&'static str, &'static str)| (key.as_bytes(), value.as_bytes());
            assert_eq!(
                strings,
                written.strings.iter().map(bytes).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn reads_version_2_with_its_sized_values() {
    let mut bytes = version_2();
    let entries = parse(&bytes).unwrap().entries;
    let summary = |entry: &BinaryEntry| format!("{} {}", entry.triple(), entry.arch());
    assert_eq!(
        entries.iter().map(summary).collect::<Vec<_>>(),
        [
            "nvptx64-nvidia-cuda sm_70",
            "amdgcn-amd-amdhsa gfx90a:xnack+"
        ]
    );
    assert_eq!(
        (image(&bytes, &entries[0]), image(&bytes, &entries[1])),
        (&b"IMG-ONE"[..], &b"SECOND"[..])
    );
    assert_eq!(entries[1].offload_kind, OffloadKind::HIP);
    bytes[0x105] = 0; // A NUL in the value is part of it.
    assert_eq!(parse(&bytes).unwrap().entries[0].arch(), "sm\x0070");
    bytes[0x18] = 0; // No entries.
    assert_eq!(parse(&bytes).unwrap().entries, []);
}

#[test]
fn gives_offsets_from_the_start_of_the_file() {
    let bytes = [&b"12345678"[..], ONE, b"rest"].concat();
    let binary = OffloadBinary::parse(&bytes[..], 8, 8 + ONE.len() as u64).unwrap();
    assert_eq!((binary.offset, binary.range()), (8, 8..0xa0));
    assert_eq!(image(&bytes, &binary.entries[0]), b"HELLOIMG");
    assert_eq!(binary.entries[0].arch(), "sm_70");
}

#[test]
fn accepts_zeros_between_and_after() {
    for zeros in [1, 7, 8, 24, 100, 8192] {
        let bytes = [ONE, &vec![0; zeros]].concat();
        assert_eq!(walk(&bytes).unwrap().len(), 1, "{zeros}");
        let bytes = [ONE, &vec![0; zeros.next_multiple_of(8)], TWO_22].concat();
        assert_eq!(walk(&bytes).unwrap().len(), 3, "{zeros}");
    }
    assert_eq!(walk(b"").unwrap(), []);
}

#[test]
fn aligns_after_a_size_that_is_no_multiple_of_8() {
    let mut first = ONE.to_vec();
    first[8] -= 3;
    first[0x40] -= 3;
    assert_eq!(walk(&[&first, ONE].concat()).unwrap().len(), 2);
}

#[test]
fn rejects_other_bytes_between_and_after() {
    let message = |more: &[u8]| walk(&[ONE, more].concat()).unwrap_err().to_string();
    assert_eq!(
        message(b"\0\0\0\0\0\0\0\0garbage!"),
        "offload binary 1: expected the magic 10ff10ad at offset 0xa0, found 67617262"
    );
    // Not at a multiple of 8: LLVM would not find it either.
    assert_eq!(
        message(&[&[0; 4], ONE].concat()),
        "offload binary 1: expected the magic 10ff10ad at offset 0x98, found 00000000"
    );
    assert_eq!(
        message(b"\x10\xff"),
        "offload binary 1: magic of header at offset 0x98 with size 0x4 runs past the end at 0x9a"
    );
}

#[test]
fn names_the_problem_and_its_place() {
    let cases: [(usize, &[u8], &str); 15] = [
        (
            0x00,
            b"MZ",
            "expected the magic 10ff10ad at offset 0x0, found 4d5a10ad",
        ),
        (0x04, b"\0", "expected version 1, 2 or 3, found 0"),
        (0x04, b"\x09", "expected version 1, 2 or 3, found 9"),
        (0x08, b"\x47", "expected a size of 0x48 or more, found 0x47"),
        (
            0x08,
            b"\x99",
            "body at offset 0x0 with size 0x99 runs past the end at 0x98",
        ),
        (
            0x10,
            b"\x1f",
            "expected entries at its offset 0x20 or later, found 0x1f",
        ),
        (
            0x10,
            b"\x90",
            "strings_offset of entry at offset 0x98 with size 0x8 runs past the end at 0x98",
        ),
        (
            0x10,
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            "image_kind of entry at offset 0xffffffffffffffff with size 0x2 runs past the end at 0x98",
        ),
        (
            0x28,
            b"\x79",
            "string entries at offset 0x79 with size 0x20 runs past the end at 0x98",
        ),
        (
            0x37,
            b"\xff",
            "string entries at offset 0x48 with size 0xffffffffffffffff runs past the end at 0x98",
        ),
        (
            0x38,
            b"\x91",
            "image at offset 0x91 with size 0x8 runs past the end at 0x98",
        ),
        (
            0x42,
            b"\x10",
            "image at offset 0x90 with size 0x100008 runs past the end at 0x98",
        ),
        (
            0x48,
            b"\x90",
            "key at offset 0x90 has no NUL before the end at 0x98",
        ),
        (
            0x52,
            b"\x10",
            "value at offset 0x100089 has no NUL before the end at 0x98",
        ),
        (0x89, b"\xff", "value of `arch` at offset 0x89 is not UTF-8"),
    ];
    for (offset, change, expected) in cases {
        let mut bytes = ONE.to_vec();
        bytes[offset..offset + change.len()].copy_from_slice(change);
        let message = parse(&bytes).unwrap_err().to_string();
        assert_eq!(
            message,
            format!("offload binary 0: {expected}"),
            "{offset:#x}"
        );
    }
}

#[test]
fn names_the_entry_when_there_are_several() {
    let changed = |offset: usize, value: u8| {
        let mut bytes = version_2();
        bytes[offset] = value;
        parse(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        changed(0x60, 0x23),
        "offload binary 0: entry 1: image at offset 0x123 with size 0x6 runs past the end at 0x128"
    );
    assert_eq!(
        changed(0xb0, 0x70),
        "offload binary 0: entry 1: value at offset 0x109 with size 0x70 runs past the end at 0x128"
    );
    assert_eq!(
        changed(0x30, 0x07),
        "offload binary 0: entry 1: its size 0x128 is too small for the string entries of all entries"
    );
}

#[test]
fn accepts_any_size_of_the_entry_and_strings_anywhere() {
    let mut bytes = ONE.to_vec();
    bytes[0x18] = 0xff;
    assert_eq!(parse(&bytes).unwrap(), parse(ONE).unwrap());
    // The value of `arch` taken from the image, whose end is a NUL.
    bytes[0x50] = 0x93;
    bytes[0x97] = 0;
    assert_eq!(parse(&bytes).unwrap().entries[0].arch(), "LOIM");
}

#[test]
fn rejects_every_truncation() {
    for len in 0..ONE.len() {
        parse(&ONE[..len]).unwrap_err();
    }
    for len in (1..TWO_22.len()).filter(|len| *len != 0x98) {
        walk(&TWO_22[..len]).unwrap_err();
    }
    let two = version_2();
    for len in 0..two.len() {
        parse(&two[..len]).unwrap_err();
    }
}

#[test]
fn survives_every_single_byte_change() {
    let all = std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1");
    let version_2 = version_2();
    for bytes in [ONE, EMPTY, TWO_22, &version_2] {
        let mut bytes = bytes.to_vec();
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            // All values with `make test-all`; else those that differ in one bit, and the ends.
            let is_tried =
                |value: u8| all || value % 255 == 0 || (value ^ before).count_ones() == 1;
            for value in (0..=255).filter(|value| is_tried(*value)) {
                bytes[offset] = value;
                for entry in walk(&bytes)
                    .iter()
                    .flatten()
                    .flat_map(|binary| &binary.entries)
                {
                    // What is accepted can be used.
                    image(&bytes, entry);
                    entry.strings.iter().for_each(drop);
                }
            }
            bytes[offset] = before;
        }
    }
}

#[test]
fn shares_the_tails_of_strings() {
    // `llvm-offload-binary` 22.1.8 with `arch=cuda,triple=nvptx64-nvidia-cuda,y=cuda,z=`.
    let mut strings = string_table::StringTableBuilder::default();
    for string in "arch cuda triple nvptx64-nvidia-cuda z  y cuda".split(' ') {
        strings.add(string.as_bytes());
    }
    let table = strings.layout(b"\0");
    assert_eq!(table.bytes, b"\0z\0y\0arch\0triple\0nvptx64-nvidia-cuda\0");
    assert_eq!(
        (table.offset(b""), table.offset(b"cuda")),
        (Some(0), Some(0x20))
    );
}

#[test]
fn keeps_the_first_place_and_the_last_value_of_a_key() {
    let strings: &[_] = &[("arch", "a"), ("triple", "t"), ("arch", "b")];
    let twice = BinaryImage {
        strings,
        ..ONE_IMAGE
    };
    let once = BinaryImage {
        strings: &[("arch", "b"), ("triple", "t")],
        ..ONE_IMAGE
    };
    assert_eq!(
        twice.to_bytes(LlvmRelease::V22),
        once.to_bytes(LlvmRelease::V22)
    );
}

#[test]
fn round_trips_images_and_strings_of_every_length() {
    let text = "x".repeat(40);
    for len in 0..40 {
        let strings: &[_] = &[
            ("triple", &text[..len]),
            (&text[..len], ""),
            ("k", &text[len..]),
        ];
        let written = BinaryImage {
            image_kind: ImageKind::from_raw(len as u16),
            offload_kind: OffloadKind::SYCL,
            flags: len as u32,
            strings,
            image: &[7; 40][..len],
        };
        let bytes = written.to_bytes(LlvmRelease::V22).unwrap();
        assert_eq!(bytes.len() % 8, 0);
        let binary = parse(&bytes).unwrap();
        assert_eq!(binary.size, bytes.len() as u64);
        let [entry] = &binary.entries[..] else {
            panic!("one entry")
        };
        assert_eq!(entry.image_kind, written.image_kind);
        assert_eq!(
            (entry.offload_kind, entry.flags),
            (OffloadKind::SYCL, len as u32)
        );
        assert_eq!(
            (image(&bytes, entry), entry.image.start % 8),
            (written.image, 0)
        );
        assert_eq!(entry.triple(), &text[..len]);
        assert_eq!(entry.strings.value("k"), Some(&text.as_bytes()[len..]));
    }
}

#[test]
fn gives_the_head_of_an_image_that_is_elsewhere() {
    let (pieces, _) = TWO_IMAGES[1].to_pieces(9, LlvmRelease::V22).unwrap();
    let bytes = pieces::to_bytes(&pieces, &[b"BBBBBBBBB"]).unwrap();
    assert_eq!(bytes, TWO_22[0x98..]);
}

#[test]
fn rejects_what_could_not_be_read_back() {
    let strings: &[_] = &[("arch", "a\0b")];
    let image = BinaryImage {
        strings,
        ..ONE_IMAGE
    };
    assert_eq!(
        image.to_bytes(LlvmRelease::V22).unwrap_err().to_string(),
        "a string of an offload binary contains a NUL: \"a\\x00b\""
    );
    let text = "an image of size 0xfffffffffffffff0 does not fit into an offload binary";
    let sized = |size| ONE_IMAGE.to_pieces(size, LlvmRelease::V22);
    assert_eq!(sized(u64::MAX - 15).unwrap_err().to_string(), text);
    assert!(sized(u64::MAX - 0x90 - 7).is_ok());
    assert!(sized(u64::MAX - 0x90 - 6).is_err());
}
