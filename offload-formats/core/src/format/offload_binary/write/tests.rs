use super::super::tests::{ONE, version_2};
use super::super::{BinaryEntry, OffloadBinary};
use super::*;
use crate::format::pieces;

const NVPTX: &[(&[u8], &[u8])] = &[(b"arch", b"sm_70"), (b"triple", b"nvptx64-nvidia-cuda")];
const AMD: &[(&[u8], &[u8])] = &[
    (b"arch", b"gfx90a:xnack+"),
    (b"triple", b"amdgcn-amd-amdhsa"),
];

fn openmp(image_size: u64) -> NewBinaryEntry<'static> {
    NewBinaryEntry {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::OPENMP,
        flags: 0,
        strings: NVPTX,
        image_size,
    }
}

fn hip(image_size: u64) -> NewBinaryEntry<'static> {
    NewBinaryEntry {
        image_kind: ImageKind::BITCODE,
        offload_kind: OffloadKind::HIP,
        strings: AMD,
        ..openmp(image_size)
    }
}

fn bytes(
    entries: &[NewBinaryEntry<'_>],
    version: OffloadBinaryVersion,
    images: &[&[u8]],
) -> Vec<u8> {
    let pieces = layout(entries, version, LlvmRelease::Main).unwrap();
    pieces::to_bytes(&pieces, images).unwrap()
}

fn parse(bytes: &[u8]) -> OffloadBinary {
    OffloadBinary::parse(bytes, 0, bytes.len() as u64).unwrap()
}

#[test]
fn writes_the_bytes_of_version_1_and_2() {
    let images: &[&[u8]] = &[b"HELLOIMG"];
    assert_eq!(bytes(&[openmp(8)], OffloadBinaryVersion::V1, images), ONE);
    let images: &[&[u8]] = &[b"IMG-ONE", b"SECOND"];
    let entries = [openmp(7), hip(6)];
    assert_eq!(
        bytes(&entries, OffloadBinaryVersion::V2, images),
        version_2()
    );
    // Version 1 has one for each.
    let each = |index: usize| {
        bytes(
            &[entries[index]],
            OffloadBinaryVersion::V1,
            &images[index..],
        )
    };
    let both = bytes(&entries, OffloadBinaryVersion::V1, images);
    assert_eq!(both, [each(0), each(1)].concat());
}

/// From the formulas of the format, not from a tool: no release writes version 3.
#[test]
fn writes_the_places_of_version_3() {
    let bytes = bytes(&[openmp(64)], OffloadBinaryVersion::V3, &[&[b'A'; 64]]);
    assert_eq!(bytes.len(), 0xe8);
    let words: Vec<u64> = bytes[..0x50]
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let magic = 0x0000_0003_ad10_ff10;
    assert_eq!(words[..5], [magic, 0xe8, 0x28, 1, 0]);
    assert_eq!(words[5..], [0x0001_0001, 0x50, 2, 0xa8, 64]);
    assert_eq!(parse(&bytes).version, OffloadBinaryVersion::V3);
    assert_eq!(parse(&bytes).entries[0].image, 0xa8..0xe8);
}

#[test]
fn shares_strings_and_puts_images_back_to_back() {
    let entries = [openmp(3), openmp(5), hip(0)];
    for version in [OffloadBinaryVersion::V2, OffloadBinaryVersion::V3] {
        let bytes = bytes(&entries, version, &[b"one", b"other", b""]);
        assert_eq!(bytes.len() % 8, 0);
        let found = parse(&bytes);
        let images = found.entries.iter().map(|entry| {
            String::from_utf8_lossy(&bytes[entry.image.start as usize..entry.image.end as usize])
        });
        assert_eq!(images.collect::<Vec<_>>(), ["one", "other", ""]);
        let places = found.entries.iter().map(|entry| entry.image.start);
        let places: Vec<u64> = places.collect();
        assert_eq!((places[1], places[2]), (places[0] + 3, places[0] + 8));
        let arch = bytes.windows(6).filter(|window| window == b"\0arch\0");
        assert_eq!(arch.count(), 1);
    }
}

#[test]
fn writes_values_with_nul_since_version_2() {
    let strings: &[(&[u8], &[u8])] = &[(b"symbols", b"a\0b\0"), (b"b", b"")];
    let entry = NewBinaryEntry {
        strings,
        flags: BinaryEntry::METADATA,
        ..NewBinaryEntry::default()
    };
    let found = parse(&bytes(&[entry], OffloadBinaryVersion::V2, &[b""]));
    let entry_found = &found.entries[0];
    assert!(entry_found.strings.iter().eq(strings.iter().copied()));
    assert_eq!((entry_found.flags, entry_found.image.is_empty()), (1, true));
    let message = |strings, version| {
        let entry = NewBinaryEntry { strings, ..entry };
        let error = layout(
            &[NewBinaryEntry::default(), entry],
            version,
            LlvmRelease::V22,
        );
        error.unwrap_err()
    };
    let (entry, text) = (1, b"a\0b\0".to_vec());
    assert_eq!(
        message(strings, OffloadBinaryVersion::V1),
        OffloadBinaryWriteError::Nul { entry, text }
    );
    let text = b"x\0".to_vec();
    let strings: &[(&[u8], &[u8])] = &[(b"x\0", b"")];
    assert_eq!(
        message(strings, OffloadBinaryVersion::V3),
        OffloadBinaryWriteError::Nul { entry, text }
    );
}

#[test]
fn rejects_no_entries_but_in_version_1() {
    assert_eq!(bytes(&[], OffloadBinaryVersion::V1, &[]), b"");
    for version in [OffloadBinaryVersion::V2, OffloadBinaryVersion::V3] {
        let error = layout(&[], version, LlvmRelease::V23).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an offload binary must have at least one image"
        );
    }
}

#[test]
fn rejects_images_that_no_file_can_hold() {
    for version in [
        OffloadBinaryVersion::V1,
        OffloadBinaryVersion::V2,
        OffloadBinaryVersion::V3,
    ] {
        let entries = [openmp(1 << 63), openmp(1 << 63)];
        let error = layout(&entries, version, LlvmRelease::V23).unwrap_err();
        let (entry, image_size) = (1, 1 << 63);
        assert_eq!(
            error,
            OffloadBinaryWriteError::TooLarge { entry, image_size }
        );
    }
}

#[test]
fn numbers_kinds_as_the_release_does() {
    let kind = |release| {
        let pieces = layout(&[hip(0)], OffloadBinaryVersion::V1, release).unwrap();
        pieces::to_bytes(&pieces, &[b""]).unwrap()[0x22]
    };
    let (old, new) = (kind(LlvmRelease::V19), kind(LlvmRelease::V22));
    assert_eq!((old, new), (3, 4));
}

#[test]
fn knows_the_version_of_each_release() {
    let releases = [
        LlvmRelease::V19,
        LlvmRelease::V22,
        LlvmRelease::V23,
        LlvmRelease::Main,
    ];
    let versions = releases.map(|release| OffloadBinaryVersion::of(release).raw());
    assert_eq!(versions, [1, 1, 2, 3]);
    assert_eq!(OffloadBinaryVersion::default(), OffloadBinaryVersion::V1);
    assert_eq!(
        (
            OffloadBinaryVersion::from_raw(0),
            OffloadBinaryVersion::from_raw(4)
        ),
        (None, None)
    );
}

#[test]
fn returns_the_range_of_the_image() {
    for image in [&b""[..], b"x", b"an image of more than 8 bytes"] {
        let binary = BinaryImage {
            strings: &[("triple", "amdgcn-amd-amdhsa")],
            image,
            ..BinaryImage::default()
        };
        let bytes = binary.to_bytes(LlvmRelease::V22).unwrap();
        let (_, range) = binary
            .to_pieces(image.len() as u64, LlvmRelease::V22)
            .unwrap();
        // The reader finds the same range in the records.
        assert_eq!(parse(&bytes).entries[0].image, range);
        assert_eq!(&bytes[range.start as usize..range.end as usize], image);
    }
}
