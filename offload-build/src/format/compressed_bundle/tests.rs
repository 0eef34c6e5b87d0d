use std::num::NonZeroU64;

use super::*;
use crate::format::bundle::{BundleImage, to_bytes};

/// `clang-offload-bundler` of these releases; commands in `tests/golden/README.md`.
const V2: &[u8] = include_bytes!("../../../../tests/golden/19.1.7/compressed.bundle");
const V3: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/compressed.bundle");

/// The same bundle in version 1, whose writer, LLVM 18, was not at hand: put together by hand,
/// accepted by `clang-offload-bundler` 19.1.7 and 22.1.8.
const V1: &[u8] = b"CCOB\x01\0\0\0\xac\0\0\0\xf4\x2b\x60\xc9\x9d\x30\xfa\x7a\
    \x78\x9c\x8b\x8f\x77\xf6\x71\xf4\x73\x8f\xf7\x77\x73\xf3\xf1\x77\x74\x89\x77\x0a\xf5\x73\xf1\
    \x71\x8d\x8f\x67\x62\x80\x80\x6e\x28\xcd\x01\xa5\xe5\xa0\x74\x46\x7e\x71\x89\x6e\x85\x85\x59\
    \xbc\x99\x89\x6e\x69\x5e\x76\x5e\x7e\x79\x9e\x6e\x4e\x66\x5e\x69\x85\x6e\x7a\x5e\xa9\xee\x64\
    \xa8\x2a\x49\x28\x2d\x0b\xd3\x95\x59\xa0\x9b\x98\x9b\x92\x9e\x9c\x07\xa2\x40\x38\xa3\x38\x51\
    \x57\x37\x3d\xad\xc2\xd2\xc0\xcc\xc3\x3f\x38\xc4\xc5\x31\xc4\xd1\x39\x3f\xaf\x24\x35\xaf\x44\
    \x21\x3f\x4d\x21\x25\xb5\x2c\x33\x39\x55\x21\x2d\x33\x27\x55\xc1\x90\x0b\x00\x2b\x5f\x28\x8c";

/// What all of them contain.
fn bundle() -> Vec<u8> {
    let images = [
        ("host-x86_64-unknown-linux-gnu-", &b"HOSTDATA"[..]),
        (
            "hip-amdgcn-amd-amdhsa--gfx906",
            b"Content of device file 1\n",
        ),
    ];
    let images = images.map(|(id, image)| BundleImage { id, image });
    to_bytes(&images, NonZeroU64::MIN).unwrap()
}

fn parse(bytes: &[u8]) -> Result<CompressedBundle, Error> {
    CompressedBundle::parse(bytes, 0, bytes.len() as u64)
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    parse(bytes)?.decompress(bytes, 1 << 20)
}

fn changed(whole: &[u8], offset: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[offset..offset + change.len()].copy_from_slice(change);
    bytes
}

fn how(version: Version, method: Method, level: Option<i32>) -> Compression {
    Compression {
        version,
        method,
        level,
    }
}

const ALL: [Version; 3] = [Version::V1, Version::V2, Version::V3];

#[test]
fn reads_what_llvm_writes() {
    for (bytes, version, method, header) in [
        (V1, Version::V1, Method::Zlib, 20),
        (V2, Version::V2, Method::Zstd, 24),
        (V3, Version::V3, Method::Zstd, 32),
    ] {
        let found = parse(bytes).unwrap();
        assert_eq!((found.version, found.method), (version, method));
        assert_eq!(found.uncompressed_size, 172);
        assert_eq!(found.hash, *b"\xf4\x2b\x60\xc9\x9d\x30\xfa\x7a");
        assert_eq!(found.data, header..bytes.len() as u64);
        assert_eq!(decompress(bytes).unwrap(), bundle());
    }
}

#[test]
fn writes_the_headers_llvm_writes() {
    // The data is that of another release of zstd, or of another zlib.
    for (llvm, version) in [(V2, Version::V2), (V3, Version::V3)] {
        let bytes = compress(&bundle(), how(version, Method::Zstd, None)).unwrap();
        let header = version.header_size() as usize;
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        assert_eq!(bytes[..header], changed(llvm, 8, &size)[..header]);
        assert_eq!(decompress(&bytes).unwrap(), bundle());
    }
    let bytes = compress(&bundle(), how(Version::V1, Method::Zlib, None)).unwrap();
    assert_eq!(bytes[..20], V1[..20]);
    assert_eq!(decompress(&bytes).unwrap(), bundle());
    let default = compress(&bundle(), Compression::default()).unwrap();
    assert_eq!(default[..8], V3[..8]);
}

#[test]
fn reads_a_magic_inside_the_data_as_data() {
    // A frame that decoders skip; accepted by `clang-offload-bundler` 22.1.8.
    let skipped = b"\x50\x2a\x4d\x18\x04\0\0\0CCOB";
    let bytes = [&V3[..32], skipped, &V3[32..]].concat();
    let bytes = changed(&bytes, 8, &[193]);
    assert_eq!(bytes.len(), 193);
    assert_eq!(decompress(&bytes).unwrap(), bundle());
}

#[test]
fn round_trips_in_every_version_method_and_level() {
    let large: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 9) as u8)
        .collect();
    for content in [&b""[..], b"x", &bundle(), &large] {
        for version in ALL {
            for (method, _, _) in METHODS {
                for level in [None, Some(-7), Some(0), Some(1), Some(9), Some(1000)] {
                    let bytes = compress(content, how(version, method, level)).unwrap();
                    assert_eq!(decompress(&bytes).unwrap(), content);
                    assert_eq!(parse(&bytes).unwrap().range(), 0..bytes.len() as u64);
                }
            }
        }
    }
    let size = |level| {
        compress(&large, how(Version::V3, Method::Zlib, level))
            .unwrap()
            .len()
    };
    assert!(size(Some(0)) > size(None), "levels make a difference");
}

#[test]
fn reads_one_inside_a_file_and_leaves_what_follows() {
    for (whole, size) in [(V1, None), (V2, Some(V2.len())), (V3, Some(V3.len()))] {
        let bytes = [b"12345", whole, &[0; 4096], V3].concat();
        let found = CompressedBundle::parse(&bytes[..], 5, bytes.len() as u64).unwrap();
        let size = size.unwrap_or(bytes.len() - 5) as u64;
        assert_eq!(found.range(), 5..5 + size);
        assert_eq!(found.decompress(&bytes[..], 172).unwrap(), bundle());
    }
    let zstd = compress(&bundle(), how(Version::V1, Method::Zstd, None)).unwrap();
    assert_eq!(
        decompress(&[&zstd[..], &[0; 4096], V3].concat()).unwrap(),
        bundle()
    );
}

/// `clang-offload-bundler` 22.1.8 accepts both: for it the header alone is an empty file.
#[test]
fn reads_several_frames_and_rejects_a_header_alone() {
    let half = |range: Range<usize>| {
        let half = bundle()[range].to_vec();
        compress(&half, Compression::default()).unwrap()[32..].to_vec()
    };
    let mut bytes = [V3[..32].to_vec(), half(0..100), half(100..172)].concat();
    let size = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    assert_eq!(decompress(&bytes).unwrap(), bundle());
    let header = changed(&V3[..32], 8, &[32]);
    let found = decompress(&header).unwrap_err();
    assert!(matches!(found, Error::Data { .. }), "{found}");
}

#[test]
fn names_the_problem_and_its_place() {
    let message = |bytes: &[u8]| decompress(bytes).unwrap_err().to_string();
    let cases: [(Vec<u8>, &str); 15] = [
        (
            changed(V3, 0, b"X"),
            "expected the magic `CCOB` at offset 0x0, found `XCOB`",
        ),
        (
            V3[..3].to_vec(),
            "magic of header at offset 0x0 with size 0x4 runs past the end at 0x3",
        ),
        (
            V3[..7].to_vec(),
            "method of header at offset 0x6 with size 0x2 runs past the end at 0x7",
        ),
        (
            V3[..31].to_vec(),
            "hash of header at offset 0x18 with size 0x8 runs past the end at 0x1f",
        ),
        (
            changed(V3, 4, b"\x09"),
            "version 9 is not supported (1, 2 and 3 are)",
        ),
        (
            changed(V3, 6, b"\x02"),
            "method 2 is not known (0, zlib, and 1, zstd, are)",
        ),
        (
            changed(V3, 8, b"\x1f"),
            "size 0x1f is less than the 0x20 of its header",
        ),
        (
            changed(V2, 8, b"\x17"),
            "size 0x17 is less than the 0x18 of its header",
        ),
        (
            changed(V3, 8, b"\xb6"),
            "body at offset 0x0 with size 0xb6 runs past the end at 0xb5",
        ),
        (
            changed(V3, 8, &[0xff; 8]),
            "body at offset 0x0 with size 0xffffffffffffffff runs past the end at 0xb5",
        ),
        (
            changed(V3, 16, b"\xab"),
            "there is more data than its uncompressed size 0xab",
        ),
        (
            changed(V3, 16, b"\xad"),
            "expected data of uncompressed size 0xad, found 0xac",
        ),
        (
            changed(V3, 20, b"\x01"),
            "uncompressed size 0x1000000ac is more than the allowed 0x100000",
        ),
        (
            changed(V3, 24, b"\xf5"),
            "expected data with the hash f52b60c99d30fa7a, found f42b60c99d30fa7a",
        ),
        (
            changed(V1, 8, b"\xab"),
            "there is more data than its uncompressed size 0xab",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(message(&bytes), format!("compressed bundle: {expected}"));
    }
    // The words after the colon are those of the libraries.
    let damaged = [
        changed(V3, 32, b"X"),
        changed(V1, 20, b"X"),
        changed(V3, 6, b"\0"),
    ];
    for bytes in damaged {
        let found = message(&bytes);
        assert!(
            found.starts_with("compressed bundle: the data is damaged: "),
            "{found}"
        );
    }
    // Bytes that belong to the bundle and are no frame.
    let junk = changed(&[V3, b"junk!"].concat(), 8, &[V3.len() as u8 + 5]);
    assert!(message(&junk).contains("damaged"), "{}", message(&junk));
}

#[test]
fn names_the_cargo_feature_that_is_missing() {
    let text = "zlib is not built in (the cargo feature `zlib` of `offload-build` is off)";
    let method = Method::Zlib;
    assert_eq!(
        Error::NotBuilt { method }.to_string(),
        format!("compressed bundle: {text}")
    );
    assert_eq!(WriteError::NotBuilt { method }.to_string(), text);
}

#[test]
fn names_the_sizes_and_failures_of_writing() {
    let error = WriteError::TooLarge {
        version: Version::V2,
        size: 1 << 32,
    };
    let text = "size 0x100000000 does not fit into version 2 of a compressed bundle";
    assert_eq!(error.to_string(), text);
    let message = "words".to_owned();
    let error = WriteError::Compressor { message };
    assert_eq!(error.to_string(), "cannot compress the bundle: words");
}

#[test]
fn says_so_when_the_output_fails() {
    let mut room = [0; 100];
    let found = parse(V3).unwrap().decompress_to(V3, &mut &mut room[..]);
    let text = "compressed bundle: cannot write what it contains: write zero";
    assert_eq!(found.unwrap_err().to_string(), text);
}

#[test]
fn writes_no_more_than_is_claimed() {
    let zeros = vec![0; 10 << 20];
    for (method, _, _) in METHODS {
        let mut bytes = compress(&zeros, how(Version::V3, method, None)).unwrap();
        bytes[16..24].copy_from_slice(&1000_u64.to_le_bytes());
        let mut out = Vec::new();
        let error = parse(&bytes)
            .unwrap()
            .decompress_to(&bytes[..], &mut out)
            .unwrap_err();
        assert_eq!(error, Error::Longer { claimed: 1000 });
        assert!(out.len() <= 1000);
        // A claim is no reason to allocate: this one no machine could serve.
        bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = parse(&bytes)
            .unwrap()
            .decompress(&bytes[..], u64::MAX)
            .unwrap_err();
        let (claimed, found) = (u64::MAX, 10 << 20);
        assert_eq!(error, Error::Shorter { claimed, found });
    }
}

#[test]
fn rejects_every_truncation() {
    for whole in [V1, V2, V3] {
        for len in 0..whole.len() {
            let mut bytes = whole[..len].to_vec();
            decompress(&bytes).unwrap_err();
            // Also when the size of all is as it should be.
            if whole != V1 && len > 32 {
                bytes[8] = len as u8;
                decompress(&bytes).unwrap_err();
            }
        }
    }
}

#[test]
fn survives_every_single_byte_change() {
    for whole in [V1, V2, V3] {
        let mut bytes = whole.to_vec();
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in (0..=255).step_by(3) {
                bytes[offset] = value;
                // The hash lets nothing else pass.
                if let Ok(found) = decompress(&bytes) {
                    assert_eq!(found, bundle());
                }
            }
            bytes[offset] = before;
        }
    }
}
