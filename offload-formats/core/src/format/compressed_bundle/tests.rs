use std::io::{Cursor as Memory, Read, Write};
use std::num::{NonZeroU32, NonZeroU64};

use super::write::Compressor;
use super::*;
use crate::format::bundle::{Bundle, BundleImage, BundleLayout, to_bytes};
use crate::format::bytes::{ReadAt, SourceError};
use crate::format::unpacked::Scratch;

/// `clang-offload-bundler` of these releases; commands in `tests/golden/README.md`.
const V2: &[u8] = include_bytes!("../../../../../tests/golden/19.1.7/compressed.bundle");
const V3: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/compressed.bundle");

/// The same bundle in version 1, whose writer, LLVM 18, was not at hand: put together by hand,
/// accepted by `clang-offload-bundler` 19.1.7 and 22.1.8.
const V1: &[u8] = b"CCOB\x01\0\0\0\xac\0\0\0\xf4\x2b\x60\xc9\x9d\x30\xfa\x7a\
    \x78\x9c\x8b\x8f\x77\xf6\x71\xf4\x73\x8f\xf7\x77\x73\xf3\xf1\x77\x74\x89\x77\x0a\xf5\x73\xf1\
    \x71\x8d\x8f\x67\x62\x80\x80\x6e\x28\xcd\x01\xa5\xe5\xa0\x74\x46\x7e\x71\x89\x6e\x85\x85\x59\
    \xbc\x99\x89\x6e\x69\x5e\x76\x5e\x7e\x79\x9e\x6e\x4e\x66\x5e\x69\x85\x6e\x7a\x5e\xa9\xee\x64\
    \xa8\x2a\x49\x28\x2d\x0b\xd3\x95\x59\xa0\x9b\x98\x9b\x92\x9e\x9c\x07\xa2\x40\x38\xa3\x38\x51\
    \x57\x37\x3d\xad\xc2\xd2\xc0\xcc\xc3\x3f\x38\xc4\xc5\x31\xc4\xd1\x39\x3f\xaf\x24\x35\xaf\x44\
    \x21\x3f\x4d\x21\x25\xb5\x2c\x33\x39\x55\x21\x2d\x33\x27\x55\xc1\x90\x0b\x00\x2b\x5f\x28\x8c";

/// The bundle inside all of them.
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

fn parse(bytes: &[u8]) -> Result<CompressedBundle, CompressedBundleError> {
    CompressedBundle::parse(bytes, 0, bytes.len() as u64)
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, CompressedBundleError> {
    decompress_within(bytes, 1 << 20)
}

fn decompress_within(bytes: &[u8], limit: u64) -> Result<Vec<u8>, CompressedBundleError> {
    unpacked(&parse(bytes)?, bytes, limit)
}

fn unpacked(
    bundle: &CompressedBundle,
    bytes: &[u8],
    limit: u64,
) -> Result<Vec<u8>, CompressedBundleError> {
    let unpacked = bundle.unpack(bytes, limit, &Scratch::in_memory())?;
    Ok(unpacked.read(&(0..unpacked.size())).unwrap())
}

fn changed(whole: &[u8], offset: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[offset..offset + change.len()].copy_from_slice(change);
    bytes
}

fn how(version: CompressedBundleVersion, method: Method, level: Option<i32>) -> Compression {
    Compression {
        version,
        method,
        level,
        ..Compression::default()
    }
}

const ALL: [CompressedBundleVersion; 3] = [
    CompressedBundleVersion::V1,
    CompressedBundleVersion::V2,
    CompressedBundleVersion::V3,
];

#[test]
fn reads_what_llvm_writes() {
    for (bytes, version, method, header) in [
        (V1, CompressedBundleVersion::V1, Method::Zlib, 20),
        (V2, CompressedBundleVersion::V2, Method::Zstd, 24),
        (V3, CompressedBundleVersion::V3, Method::Zstd, 32),
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
    for (llvm, version) in [
        (V2, CompressedBundleVersion::V2),
        (V3, CompressedBundleVersion::V3),
    ] {
        let bytes = compress(&bundle(), how(version, Method::Zstd, None)).unwrap();
        let header = version.header_size() as usize;
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        assert_eq!(bytes[..header], changed(llvm, 8, &size)[..header]);
        assert_eq!(decompress(&bytes).unwrap(), bundle());
    }
    let bytes = compress(
        &bundle(),
        how(CompressedBundleVersion::V1, Method::Zlib, None),
    )
    .unwrap();
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
            for method in Method::ALL {
                for level in [None, Some(-7), Some(0), Some(1), Some(9), Some(1000)] {
                    let bytes = compress(content, how(version, method, level)).unwrap();
                    assert_eq!(decompress(&bytes).unwrap(), content);
                    assert_eq!(parse(&bytes).unwrap().range(), 0..bytes.len() as u64);
                }
            }
        }
    }
    let size = |level| {
        compress(
            &large,
            how(CompressedBundleVersion::V3, Method::Zlib, level),
        )
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
        assert_eq!(unpacked(&found, &bytes, 172).unwrap(), bundle());
    }
}

/// Version 1 does not say where it ends, its data does.
#[test]
fn ends_where_the_data_of_version_1_ends() {
    let frame = &V3[32..];
    let rests: [&[u8]; 5] = [b"", b"x", &[0; 4096], V3, V1];
    for rest in rests {
        let zlib = [V1, rest].concat();
        let found = parse(&zlib).unwrap();
        assert_eq!(found.size, None);
        let end = found.decompress_to(&zlib[..], &mut std::io::sink());
        assert_eq!(end, Ok(V1.len() as u64));
        // In one frame, in three, two of which are skipped, and with a frame that says no size.
        let skipped = b"\x57\x2a\x4d\x18\x04\0\0\0CCOB";
        let unsized_ = [&frame[..4], b"\0\x58", &frame[6..]].concat();
        for frames in [frame.to_vec(), [skipped, skipped, frame].concat(), unsized_] {
            let whole = [b"CCOB\x01\0\x01\0", &V1[8..20], &frames].concat();
            let bytes = [&whole[..], rest].concat();
            let found = parse(&bytes).unwrap();
            assert_eq!(found.range(), 0..whole.len() as u64);
            let mut out = Vec::new();
            let end = found.decompress_to(&bytes[..], &mut out);
            assert_eq!((end, out), (Ok(whole.len() as u64), bundle()));
            let cut = parse(&bytes[..whole.len() - 1]).unwrap();
            assert_eq!(cut.range(), 0..whole.len() as u64 - 1);
            unpacked(&cut, &bytes, 172).unwrap_err();
        }
    }
}

/// The end is read off headers of every form: of the frame, and of its blocks.
#[test]
fn ends_where_frames_of_any_form_end() {
    for size in [0, 10, 300, 70_000, 300_000] {
        let mut content = Vec::new();
        numbers(size).read_to_end(&mut content).unwrap();
        content.extend([0; 200_000]);
        for (checksum, sized) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            encoder.include_checksum(checksum).unwrap();
            let content = &content[..size as usize + if size > 1000 { 200_000 } else { 0 }];
            if sized {
                let size = content.len() as u64;
                encoder.set_pledged_src_size(Some(size)).unwrap();
            }
            encoder.write_all(content).unwrap();
            let frame = encoder.finish().unwrap();
            let hash = Md5::digest(content)[..8].try_into().unwrap();
            let (version, size) = (CompressedBundleVersion::V1, content.len() as u64);
            let header = header(version, Method::Zstd, 0, size, hash).unwrap();
            let whole = [&header[..], &frame].concat();
            let bytes = [&whole[..], V3].concat();
            let found = parse(&bytes).unwrap();
            assert_eq!(
                found.range(),
                0..whole.len() as u64,
                "{size}, {checksum}, {sized}"
            );
            assert!(unpacked(&found, &bytes, size).unwrap() == content);
        }
    }
}

/// RFC 8878, 3.1.1.1.1.6: flag 3 is a dictionary ID of 4 bytes. No dictionary has the ID 0.
#[test]
fn ends_where_a_frame_with_the_id_of_a_dictionary_ends() {
    let content = b"content";
    // A single segment, so that the size of the content follows; the last block, of 7 bytes as they are.
    let start = b"\x28\xb5\x2f\xfd\x23\0\0\0\0\x07\x39\0\0";
    let hash = Md5::digest(content)[..8].try_into().unwrap();
    let (version, size) = (CompressedBundleVersion::V1, content.len() as u64);
    let header = header(version, Method::Zstd, 0, size, hash).unwrap();
    let whole = [&header[..], start, content].concat();
    let bytes = [&whole[..], V3].concat();
    let found = parse(&bytes).unwrap();
    assert_eq!(found.range(), 0..whole.len() as u64);
    assert_eq!(unpacked(&found, &bytes[..], size).unwrap(), content);
}

/// However the stream comes; what follows in it is left there.
#[test]
fn decompresses_streams_and_leaves_what_follows() {
    for whole in [V1, V2, V3] {
        let bytes = [whole, V3].concat();
        let found = parse(&bytes).unwrap();
        for capacity in [1, 7, 1000] {
            let mut data = &bytes[found.data.start as usize..];
            let mut out = Vec::new();
            let source = std::io::BufReader::with_capacity(capacity, &mut data);
            let end = found.decompress_from(source, &mut out);
            assert_eq!((end, out), (Ok(whole.len() as u64), bundle()));
        }
        let mut data = &bytes[found.data.start as usize..];
        found.decompress_from(&mut data, &mut Vec::new()).unwrap();
        assert_eq!(data, V3);
    }
}

/// `clang-offload-bundler` 22.1.8 and 19.1.7 accept it, and not the same after zstd.
#[test]
fn accepts_bytes_after_a_stream_of_zlib_that_the_size_of_all_includes() {
    let zlib = compress(
        &bundle(),
        how(CompressedBundleVersion::V3, Method::Zlib, None),
    )
    .unwrap();
    let size = (zlib.len() as u32 + 5).to_le_bytes();
    let bytes = changed(&[&zlib[..], b"after"].concat(), 8, &size);
    assert_eq!(decompress(&bytes).unwrap(), bundle());
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
    assert!(
        matches!(found, CompressedBundleError::Data { .. }),
        "{found}"
    );
}

#[test]
fn names_the_problem_and_its_place() {
    let message = |bytes: &[u8]| decompress(bytes).unwrap_err().to_string();
    let cases: [(Vec<u8>, &str); 16] = [
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
            "expected version 1, 2 or 3, found 9",
        ),
        (
            changed(V3, 6, b"\x02"),
            "expected method 0 (zlib) or 1 (zstd), found 2",
        ),
        (
            changed(V3, 8, b"\x1f"),
            "expected a size of 0x20 or more, found 0x1f",
        ),
        (
            changed(V2, 8, b"\x17"),
            "expected a size of 0x18 or more, found 0x17",
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
            "expected data of uncompressed size 0xab, found more",
        ),
        (
            changed(V3, 16, b"\0"),
            "expected data of uncompressed size 0x0, found more",
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
            "expected data of uncompressed size 0xab, found more",
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
    let text = "zlib is not built in (the cargo feature `zlib` of `offload-build` is off) [OFF507]";
    let method = Method::Zlib;
    assert_eq!(
        CompressedBundleError::NotBuilt { method }.to_string(),
        format!("compressed bundle: {text}")
    );
    assert_eq!(
        CompressedBundleWriteError::NotBuilt { method }.to_string(),
        text
    );
}

#[test]
fn names_the_sizes_and_failures_of_writing() {
    let error = CompressedBundleWriteError::TooLarge {
        version: CompressedBundleVersion::V2,
        size: 1 << 32,
    };
    let text = "size 0x100000000 does not fit into version 2 of a compressed bundle";
    assert_eq!(error.to_string(), text);
    let message = "words".to_owned();
    let error = CompressedBundleWriteError::Compressor { message };
    assert_eq!(error.to_string(), "cannot compress the bundle: words");
}

/// A stream of numbers that compress a little, and are the same again every so far: farther than
/// zstd looks without long distance matching.
struct Numbers {
    state: u64,
    left: u64,
}

const AGAIN: u64 = 5 << 20;

impl Read for Numbers {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let count = room.len().min(self.left as usize);
        for byte in &mut room[..count] {
            if self.left % AGAIN == 0 {
                self.state = 1;
            }
            self.left -= 1;
            self.state = self
                .state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(1);
            *byte = (self.state >> 58) as u8;
        }
        Ok(count)
    }
}

fn numbers(size: u64) -> Numbers {
    Numbers {
        state: 0,
        left: size,
    }
}

fn compress_numbers(size: u64, how: Compression) -> Vec<u8> {
    let mut out = Memory::new(Vec::new());
    let compressed = compress_to(how, size, numbers(size), &mut out).unwrap();
    let bytes = out.into_inner();
    assert_eq!(compressed.size, bytes.len() as u64);
    assert!(bytes.starts_with(&compressed.header));
    assert_eq!(parse(&bytes).unwrap().hash, compressed.hash);
    bytes
}

/// Compresses as LLVM does: all at once, by one thread.
fn one_shot(content: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
    compressor.long_distance_matching(true).unwrap();
    compressor.compress(content).unwrap()
}

/// Size of the parts.
const PART: u64 = 8 << 20;

#[test]
fn writes_the_same_bytes_with_any_number_of_threads() {
    // Around the least size that libzstd has threads for, and around one part and two.
    let least = 512 << 10;
    let sizes = [least, least + 1, PART, PART + 1, 20 << 20];
    for size in sizes {
        let threads = |threads| Compression {
            threads: NonZeroU32::new(threads).unwrap(),
            ..Compression::default()
        };
        let bytes = compress_numbers(size, threads(1));
        // Decoders of one piece, as LLVM's, need the frame to say it.
        assert_eq!(zstd::decompressed_size(&bytes[32..]), Some(size));
        for &count in if size > PART { &[2, 5][..] } else { &[5] } {
            assert!(
                compress_numbers(size, threads(count)) == bytes,
                "{size:#x}, {count}"
            );
        }
        let mut content = Vec::new();
        numbers(size).read_to_end(&mut content).unwrap();
        assert!(decompress_within(&bytes, size).unwrap() == content);
        let (ours, llvm) = (&bytes[32..], one_shot(&content));
        if size <= PART {
            assert!(ours == llvm, "{size:#x}");
        }
        assert!(
            ours.len().abs_diff(llvm.len()) * 100 < llvm.len(),
            "{size:#x}"
        );
    }
}

/// However the bundle comes, and whatever is asked for in between.
#[test]
fn writes_the_same_bytes_for_any_pieces() {
    for method in [Method::Zlib, Method::Zstd] {
        for size in [1_000, 17 << 20] {
            let how = how(CompressedBundleVersion::V3, method, None);
            let whole = compress_numbers(size, how);
            for step in [100_003, 3 << 20] {
                let mut compressor = Compressor::new(how, size, Vec::new()).unwrap();
                let mut content = numbers(size);
                let mut buffer = vec![0; step];
                while let Some(count) = Some(content.read(&mut buffer).unwrap()).filter(|n| *n > 0)
                {
                    compressor.write_all(&buffer[..count]).unwrap();
                    compressor.flush().unwrap();
                }
                let (data, compressed) = compressor.finish().unwrap();
                assert!(
                    [compressed.header, data].concat() == whole,
                    "{method}, {size}, {step}"
                );
            }
        }
    }
}

#[test]
fn writes_where_the_output_is() {
    let mut out = Memory::new(b"before".to_vec());
    out.set_position(6);
    let bundle = bundle();
    let how = Compression::default();
    let compressed = compress_to(how, bundle.len() as u64, &bundle[..], &mut out).unwrap();
    out.write_all(b"after").unwrap();
    let bytes = out.into_inner();
    assert_eq!(bytes.len() as u64, 6 + compressed.size + 5);
    let found = CompressedBundle::parse(&bytes[..], 6, bytes.len() as u64).unwrap();
    assert_eq!(found.range(), 6..6 + compressed.size);
    assert_eq!(unpacked(&found, &bytes, 172).unwrap(), bundle);
}

#[test]
fn rejects_bundles_of_another_size_than_announced() {
    for method in Method::ALL {
        for size in [100, 9 << 20] {
            let compress = |announced| {
                let how = how(CompressedBundleVersion::V3, method, None);
                let out = &mut Memory::new(Vec::new());
                compress_to(how, announced, numbers(size), out).unwrap_err()
            };
            let (expected, found) = (size + 1, size);
            assert_eq!(
                compress(size + 1),
                CompressedBundleWriteError::Size { expected, found }
            );
            let error = compress(size - 1);
            assert!(
                matches!(error, CompressedBundleWriteError::Size { expected, .. } if expected == size - 1)
            );
        }
    }
}

#[test]
fn rejects_sizes_that_the_version_has_no_room_for() {
    for (version, method) in [
        (CompressedBundleVersion::V1, Method::Zlib),
        (CompressedBundleVersion::V2, Method::Zstd),
    ] {
        for size in [1 << 32, u64::MAX] {
            let error = Compressor::new(how(version, method, None), size, Vec::new());
            assert_eq!(
                error.err(),
                Some(CompressedBundleWriteError::TooLarge { version, size })
            );
        }
    }
    let large = Compressor::new(Compression::default(), 1 << 40, Vec::new());
    assert!(large.is_ok(), "version 3 has room");
}

#[test]
fn names_what_fails_when_compressing() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::TimedOut.into())
        }
    }
    /// Claims to have read more than there is room for.
    struct TooMuch;
    impl Read for TooMuch {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            Ok(room.len() + 1)
        }
    }
    let how = Compression::default();
    let error = compress_to(how, 1, Broken, &mut Memory::new(Vec::new())).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the bundle: timed out");
    let error = compress_to(how, 1, TooMuch, &mut Memory::new(Vec::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the bundle: expected up to 0x20000 bytes from one read, found 0x20001"
    );
    for size in [100, 9 << 20] {
        let mut room = Memory::new([0; 40]);
        let error = compress_to(how, size, numbers(size), &mut room).unwrap_err();
        assert!(
            matches!(error, CompressedBundleWriteError::Output { .. }),
            "{error}"
        );
        let text = "cannot write the compressed bundle: ";
        assert!(error.to_string().starts_with(text), "{error}");
    }
}

#[test]
fn reads_the_headers_of_what_is_inside() {
    let inner = bundle();
    let plain = Bundle::parse(&inner[..], 0, inner.len() as u64).unwrap();
    for bytes in [V1, V2, V3] {
        let found = parse(bytes).unwrap().contents(bytes).unwrap();
        assert_eq!(found.as_ref(), Some(&plain));
    }
    // Text, nothing, and another compressed bundle are left to the caller.
    for content in [&b"// __CLANG_OFFLOAD_BUNDLE____START__ a\n"[..], b"", V3] {
        for method in Method::ALL {
            let bytes = compress(content, how(CompressedBundleVersion::V3, method, None)).unwrap();
            assert_eq!(parse(&bytes).unwrap().contents(&bytes[..]), Ok(None));
        }
    }
}

/// Counts what is read of a slice.
#[derive(Clone, Copy)]
struct Reads<'a>(&'a [u8], &'a std::cell::Cell<u64>);

impl<'a> ReadAt<'a> for Reads<'a> {
    fn size(self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }
    fn read_at(self, offset: u64, size: u64) -> Option<&'a [u8]> {
        self.1.set(self.1.get() + size);
        self.0.read_at(offset, size)
    }
    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'a [u8]> {
        self.0.read_until(range, delimiter)
    }
}

#[test]
fn decompresses_no_more_than_the_headers() {
    let size = 64 << 20;
    let layout = BundleLayout::new([("a-b", size)], NonZeroU64::new(4096).unwrap()).unwrap();
    // Stored, so that as much is decompressed as is read: a frame of blocks of 128 KiB.
    let mut content = vec![0; layout.size() as usize];
    content[..layout.head.len()].copy_from_slice(&layout.head);
    let mut frame = b"\x28\xb5\x2f\xfd\x00\x58".to_vec();
    let blocks = content.chunks(0x2_0000);
    let last = blocks.len() - 1;
    for (index, block) in blocks.enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(index == last);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    let (version, method) = (CompressedBundleVersion::V3, Method::Zstd);
    let all = 32 + frame.len() as u64;
    let header = header(version, method, all, layout.size(), [0; 8]).unwrap();
    let bytes = [header, frame].concat();
    let count = std::cell::Cell::new(0);
    let data = Reads(&bytes, &count);
    let found = CompressedBundle::parse(data, 0, all).unwrap();
    let contents = found.contents(data).unwrap().unwrap();
    assert_eq!(contents.entries[0].image, 4096..4096 + size);
    assert!(count.get() < 1 << 20, "{} bytes read", count.get());
}

/// More than is decompressed at first, so that it takes several attempts.
#[test]
fn reads_headers_of_any_length_inside() {
    let id = "i".repeat(300_000);
    let ids = [format!("{id}a"), format!("{id}b"), format!("{id}c")];
    let images = ids.iter().map(|id| BundleImage {
        id,
        image: b"image",
    });
    let inner = to_bytes(&images.collect::<Vec<_>>(), NonZeroU64::MIN).unwrap();
    for method in Method::ALL {
        let bytes = compress(&inner, how(CompressedBundleVersion::V3, method, None)).unwrap();
        let found = parse(&bytes).unwrap().contents(&bytes[..]).unwrap();
        assert_eq!(found, Bundle::parse(&inner[..], 0, inner.len() as u64).ok());
        // One ID that the rest holds, and the limit does not.
        let huge = changed(&inner, 48, &(17_u64 << 20).to_le_bytes());
        let huge = [huge, vec![0; 18 << 20]].concat();
        let bytes = compress(&huge, how(CompressedBundleVersion::V3, method, None)).unwrap();
        let error = parse(&bytes).unwrap().contents(&bytes[..]).unwrap_err();
        let (claimed, limit) = ((17 << 20) + 56, 16 << 20);
        assert_eq!(error, CompressedBundleError::Limit { claimed, limit });
    }
}

#[test]
fn names_what_is_wrong_inside() {
    let message = |bytes: &[u8]| {
        let error = parse(bytes).unwrap().contents(bytes).unwrap_err();
        error.to_string()
    };
    let inner = changed(&bundle(), 0x1b, b"\x80");
    // The bytes of an image, taken for entries.
    let bytes = compress(&inner, Compression::default()).unwrap();
    let text = message(&bytes);
    assert!(
        text.starts_with("compressed bundle: inside of it, bundle 0: entry "),
        "{text}"
    );
    let outside = changed(&bundle(), 0x28, b"\xff");
    let bytes = compress(&outside, Compression::default()).unwrap();
    let text = "compressed bundle: inside of it, bundle 0: entry 0: image at offset 0x8b with \
                size 0xff runs past the end at 0xac";
    assert_eq!(message(&bytes), text);
    let claims = |size: u64| changed(V3, 16, &size.to_le_bytes());
    let text = "compressed bundle: expected data of uncompressed size 0xab, found more";
    assert_eq!(message(&claims(0xab)), text);
    let text =
        "compressed bundle: expected data of uncompressed size 0xffffffffffffffff, found 0xac";
    assert_eq!(message(&claims(u64::MAX)), text);
}

/// A frame as small as this may claim any window: the library would have to allocate it.
#[test]
fn allows_no_window_that_llvm_does_not_write() {
    // Blocks that repeat a zero 128 KiB times; 0x88 is a window of 128 MiB, 0xa8 of 2 GiB.
    let frame = |window: u8, blocks: usize| {
        let mut frame = b"\x28\xb5\x2f\xfd\x00".to_vec();
        frame.push(window);
        frame.extend(b"\x02\0\x10\0".repeat(blocks));
        [&frame, &b"\x01\0\0"[..]].concat()
    };
    let read = |window, claimed| {
        let frame = frame(window, 2);
        let (version, method) = (CompressedBundleVersion::V3, Method::Zstd);
        let size = 32 + frame.len() as u64;
        let header = header(version, method, size, claimed, [0; 8]).unwrap();
        decompress_within(&[header, frame].concat(), u64::MAX)
    };
    let found = 0x4_0000;
    let shorter = |claimed| Err(CompressedBundleError::Shorter { claimed, found });
    assert_eq!(read(0x88, found + 1), shorter(found + 1));
    assert_eq!(read(0x88, 1 << 31), shorter(1 << 31));
    for (window, claimed) in [(0x90, found + 1), (0xa8, 1 << 31), (0xb0, u64::MAX)] {
        let error = read(window, claimed).unwrap_err();
        assert!(
            matches!(error, CompressedBundleError::Data { .. }),
            "{error}"
        );
    }
}

#[test]
fn says_so_when_the_output_fails() {
    let mut room = [0; 100];
    let found = parse(V3).unwrap().decompress_to(V3, &mut &mut room[..]);
    let text = "compressed bundle: cannot write its contents: write zero";
    assert_eq!(found.unwrap_err().to_string(), text);
}

#[test]
fn writes_no_more_than_is_claimed() {
    let zeros = vec![0; 10 << 20];
    for method in Method::ALL {
        let mut bytes = compress(&zeros, how(CompressedBundleVersion::V3, method, None)).unwrap();
        bytes[16..24].copy_from_slice(&1000_u64.to_le_bytes());
        let mut out = Vec::new();
        let error = parse(&bytes)
            .unwrap()
            .decompress_to(&bytes[..], &mut out)
            .unwrap_err();
        assert_eq!(error, CompressedBundleError::Longer { claimed: 1000 });
        assert!(out.len() <= 1000);
        // A claim is no reason to allocate: this one no machine could serve.
        bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = decompress_within(&bytes, u64::MAX).unwrap_err();
        let (claimed, found) = (u64::MAX, 10 << 20);
        assert_eq!(error, CompressedBundleError::Shorter { claimed, found });
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
