use std::num::NonZeroU64;

use super::*;
use crate::format::bundle::{BundleImage, to_bytes};

/// `clang-offload-bundler` of these releases; commands in `tests/golden/README.md`.
const PLAIN: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/three-images.bundle");
const ALIGNED: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/aligned.bundle");
const V2: &[u8] = include_bytes!("../../../../../tests/golden/19.1.7/compressed.bundle");
const V3: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/compressed.bundle");

/// Version 1 around the data of `V3`, or around the same in zlib.
fn v1_zstd() -> Vec<u8> {
    [b"CCOB\x01\0\x01\0\xac\0\0\0", &V3[24..]].concat()
}

fn v1_zlib() -> Vec<u8> {
    let data = b"\x78\x9c\x8b\x8f\x77\xf6\x71\xf4\x73\x8f\xf7\x77\x73\xf3\xf1\x77\x74\x89\x77\
        \x0a\xf5\x73\xf1\x71\x8d\x8f\x67\x62\x80\x80\x6e\x28\xcd\x01\xa5\xe5\xa0\x74\x46\x7e\x71\
        \x89\x6e\x85\x85\x59\xbc\x99\x89\x6e\x69\x5e\x76\x5e\x7e\x79\x9e\x6e\x4e\x66\x5e\x69\x85\
        \x6e\x7a\x5e\xa9\xee\x64\xa8\x2a\x49\x28\x2d\x0b\xd3\x95\x59\xa0\x9b\x98\x9b\x92\x9e\x9c\
        \x07\xa2\x40\x38\xa3\x38\x51\x57\x37\x3d\xad\xc2\xd2\xc0\xcc\xc3\x3f\x38\xc4\xc5\x31\xc4\
        \xd1\x39\x3f\xaf\x24\x35\xaf\x44\x21\x3f\x4d\x21\x25\xb5\x2c\x33\x39\x55\x21\x2d\x33\x27\
        \x55\xc1\x90\x0b\x00\x2b\x5f\x28\x8c";
    [b"CCOB\x01\0\0\0\xac\0\0\0", &V3[24..32], data].concat()
}

fn changed(whole: &[u8], offset: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[offset..offset + change.len()].copy_from_slice(change);
    bytes
}

fn walk(bytes: &[u8]) -> Result<Bundles, BundleSequenceError> {
    super::walk(bytes, 0..bytes.len() as u64)
}

fn ranges(bytes: &[u8]) -> (Vec<Range<u64>>, u64) {
    let found = walk(bytes).unwrap();
    (
        found.bundles.iter().map(AnyBundle::range).collect(),
        found.end,
    )
}

/// The bundles one after the other with `gap` after each, and where each is.
fn laid_out(bundles: &[Vec<u8>], gap: impl Fn(usize) -> Vec<u8>) -> (Vec<u8>, Vec<Range<u64>>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for bundle in bundles {
        let start = bytes.len() as u64;
        bytes.extend_from_slice(bundle);
        places.push(start..bytes.len() as u64);
        bytes.extend(gap(bytes.len()));
    }
    (bytes, places)
}

#[test]
fn walks_bundles_of_every_kind_in_any_order() {
    let kinds = [
        PLAIN.to_vec(),
        ALIGNED.to_vec(),
        V2.to_vec(),
        V3.to_vec(),
        v1_zstd(),
        v1_zlib(),
    ];
    for first in &kinds {
        for second in &kinds {
            let bundles = [first, second, first, second].map(Clone::clone);
            let to_page = |end: usize| vec![0; end.next_multiple_of(4096) - end];
            for (bytes, places) in [
                laid_out(&bundles, to_page),
                laid_out(&bundles, |_| Vec::new()),
                laid_out(&bundles, |_| vec![0; 7]),
                laid_out(&bundles, |_| vec![0; 10_000]),
            ] {
                assert_eq!(ranges(&bytes), (places.clone(), bytes.len() as u64));
                for (place, found) in places.iter().zip(walk(&bytes).unwrap().bundles) {
                    let start = place.start;
                    match found {
                        AnyBundle::Plain(bundle) => {
                            let end = bytes.len() as u64;
                            assert_eq!(Ok(bundle), Bundle::parse(&bytes[..], start, end));
                        }
                        AnyBundle::Compressed(bundle) => {
                            let into = &mut std::io::sink();
                            bundle.decompress_to(&bytes[..], into).unwrap();
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn stays_inside_its_range() {
    let bytes = [b"12345", V3, PLAIN, V2, b"rest"].concat();
    let (second, third) = (5 + V3.len() as u64, (5 + V3.len() + PLAIN.len()) as u64);
    let found = super::walk(&bytes[..], 5..third).unwrap();
    assert_eq!((found.bundles.len(), found.end), (2, third));
    assert_eq!(found.bundles[1].range(), second..third);
    let found = super::walk(&bytes[..], second..u64::MAX).unwrap();
    assert_eq!(found.bundles.len(), 2);
    assert_eq!(found.end, bytes.len() as u64 - 4);
    super::walk(&bytes[..], 5..third - 1).unwrap_err();
}

#[test]
fn leaves_other_bytes_after_bundles_to_the_caller() {
    for rest in [&b"x"[..], &PLAIN[..23], b"CCO", b"\x7fELF"] {
        for bundle in [PLAIN, V3] {
            let bytes = [bundle, b"\0\0", rest].concat();
            let end = bundle.len() as u64;
            let (found, all) = ranges(&bytes);
            assert_eq!((found.len(), &found[0], all), (1, &(0..end), end + 2));
        }
    }
    for nothing in [
        &b""[..],
        b"\0",
        &PLAIN[..23],
        &[b"x", PLAIN].concat(),
        b"CCO",
    ] {
        let text = "bundle 0: expected a bundle at offset 0x0";
        assert_eq!(walk(nothing).unwrap_err().to_string(), text);
    }
}

/// Also at a multiple of a page, where linkers put bundles.
#[test]
fn takes_nothing_inside_a_bundle_for_a_bundle() {
    let page = [PLAIN, V3].concat();
    let images = [
        ("host-x86_64-unknown-linux-gnu-", &page[..]),
        ("hip-amdgcn-amd-amdhsa--gfx906", &page[..]),
    ];
    let images = images.map(|(id, image)| BundleImage { id, image });
    let outer = to_bytes(&images, NonZeroU64::new(4096).unwrap()).unwrap();
    // Data that is a frame with a magic at a page, which decoders skip.
    let skipped = [b"\x50\x2a\x4d\x18", &[0, 0x20, 0, 0][..]].concat();
    let mut frame = [skipped, vec![0; 0x2000]].concat();
    frame[0x1000 - 20..][..4].copy_from_slice(b"CCOB");
    frame[0x1000 - 32 + 100..][..24].copy_from_slice(&PLAIN[..24]);
    let sized = |header: &[u8], offset: usize| {
        let whole = [header, &frame, &V3[32..]].concat();
        let size = (whole.len() as u32).to_le_bytes();
        if offset == 0 {
            whole
        } else {
            changed(&whole, offset, &size)
        }
    };
    let cases = [
        outer,
        sized(&V3[..32], 8),
        sized(&V2[..24], 8),
        sized(&v1_zstd()[..20], 0),
    ];
    for case in &cases {
        let bytes = [case, V3].concat();
        let (first, end) = (case.len() as u64, bytes.len() as u64);
        assert_eq!(ranges(&bytes), (vec![0..first, first..end], end));
    }
}

/// Whoever decompresses the data finds its end.
#[test]
fn ends_a_bundle_where_its_size_says() {
    for (whole, least) in [(V2, 24), (V3, 32)] {
        for size in [least, whole.len() - 1, whole.len() + 5] {
            let bundle = changed(whole, 8, &(size as u32).to_le_bytes());
            let bytes = [&bundle[..], b"junk!", PLAIN].concat();
            let found = super::walk(&bytes[..], 0..bytes.len() as u64).unwrap();
            assert_eq!(found.bundles[0].range(), 0..size as u64);
            let rest = if size > whole.len() {
                bytes.len()
            } else {
                size
            };
            assert_eq!(found.end, rest as u64);
        }
    }
}

/// `clang-offload-bundler` 22.1.8 does not look at the size of all.
#[test]
fn finds_the_end_of_a_bundle_whose_size_is_absurd() {
    for (whole, size) in [
        (V3, &[0; 8][..]),
        (V3, &[31, 0, 0, 0, 0, 0, 0, 0]),
        (V3, &[0xff; 8]),
        (V3, &[0, 0, 0, 0, 1, 0, 0, 0]),
        (V2, &[0; 4]),
        (V2, &[0xff; 4]),
    ] {
        let bundle = changed(whole, 8, size);
        let bytes = [&bundle[..], &[0; 5], V2, PLAIN].concat();
        let (first, end) = (bundle.len() as u64, bytes.len() as u64);
        let (found, all) = ranges(&bytes);
        assert_eq!((found.len(), &found[0], all), (3, &(0..first), end));
    }
}

/// The page counts from the start of the range, which need not be at one of the file.
#[test]
fn ends_damaged_data_without_a_size_before_the_next_magic_at_a_page() {
    for damaged in [
        changed(&v1_zstd(), 20, b"X"),
        changed(&v1_zlib(), 20, b"X"),
        {
            let v1 = v1_zlib();
            v1[..v1.len() - 1].to_vec()
        },
    ] {
        for next in [PLAIN, V3] {
            let mut bytes = vec![b'x'; 4096 * 3 + 9];
            bytes[9..][..damaged.len()].copy_from_slice(&damaged);
            // Not at a page of the range.
            bytes[4096..][..next.len()].copy_from_slice(next);
            bytes.truncate(9 + 4096 * 2);
            bytes.extend_from_slice(next);
            let end = bytes.len() as u64;
            let found = super::walk(&bytes[..], 9..end).unwrap();
            assert_eq!(found.bundles[0].range(), 9..9 + 4096 * 2);
            assert_eq!((found.bundles.len(), found.end), (2, end));
        }
        let bytes = [&damaged[..], b"junk"].concat();
        let (found, end) = ranges(&bytes);
        assert_eq!(
            (found.len(), &found[0], end),
            (1, &(0..end), bytes.len() as u64)
        );
    }
}

#[test]
fn names_the_bundle_and_the_place() {
    let (cut, v3) = (&PLAIN[..PLAIN.len() - 1], V3.len() as u64);
    let end = v3 + cut.len() as u64;
    let entry = "entry 2: image at offset";
    for (bytes, expected) in [
        (
            [V3, cut].concat(),
            format!(
                "bundle 1: {entry} {:#x} with size 0x19 runs past the end at {end:#x}",
                end - 24
            ),
        ),
        (
            [V3, V3, &changed(V3, 4, b"\x09")].concat(),
            "bundle 2: compressed bundle: expected version 1, 2 or 3, found 9".to_owned(),
        ),
        (
            [V3, b"CCOB\x03\0\x02\0"].concat(),
            "bundle 1: compressed bundle: expected method 0 (zlib) or 1 (zstd), found 2".to_owned(),
        ),
        (
            [V3, b"CCOB\x03"].concat(),
            format!(
                "bundle 1: compressed bundle: version of header at offset {:#x} with size 0x2 \
                 runs past the end at {:#x}",
                v3 + 4,
                v3 + 5
            ),
        ),
    ] {
        assert_eq!(walk(&bytes).unwrap_err().to_string(), expected);
    }
}

#[test]
fn survives_every_single_byte_change() {
    for wholes in [[PLAIN, V3], [V2, ALIGNED], [&v1_zstd(), &v1_zlib()]] {
        let mut bytes = wholes.concat();
        let size = bytes.len() as u64;
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in (0..=255).step_by(5).chain([1, 2, 3]) {
                bytes[offset] = value;
                let Ok(found) = walk(&bytes) else { continue };
                let mut position = 0;
                for bundle in found.bundles {
                    let range = bundle.range();
                    assert!(range.start >= position && range.end <= size);
                    position = range.end;
                }
                assert!(position <= found.end && found.end <= size);
            }
            bytes[offset] = before;
        }
    }
}
