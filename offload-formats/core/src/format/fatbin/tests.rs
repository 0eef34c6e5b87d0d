//! Tests of fat binaries.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{GROUP, GroupHeader, LZ4, ZSTD};
use super::*;
use crate::format::bytes::{OutOfBounds, ReadCache, Source};

/// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
const GOLDEN: &[u8] = include_bytes!("../../../../../tests/golden/cuda-13.5/two-images.fatbin");

fn read(bytes: &[u8]) -> Result<Vec<FatbinEntry>, FatbinReadError> {
    parse(bytes, 0..bytes.len() as u64)
}

fn cubin(processor: &str, image: Range<u64>) -> FatbinEntry {
    FatbinEntry {
        kind: FatbinKind::Cubin,
        processor: processor.into(),
        stored_size: image.end - image.start,
        uncompressed_size: image.end - image.start,
        image,
        compression: None,
        group: None,
    }
}

#[test]
fn reads_what_nvidia_writes() {
    let expected = [
        cubin("sm_80", 0x50..0xbf8),
        cubin("sm_100a", 0xc70..GOLDEN.len() as u64),
    ];
    assert_eq!(read(GOLDEN).unwrap(), expected);
    // The flags of the second image, at 0xbf8 + 0x28: for its family instead of for its processor alone.
    let mut family = GOLDEN.to_vec();
    family[0xc22] = 0x20;
    assert_eq!(read(&family).unwrap()[1].processor, "sm_100f");
    // Consecutive, as in an object's section.
    let two = [GOLDEN, GOLDEN].concat();
    let four = read(&two).unwrap();
    assert_eq!(four.len(), 4);
    assert_eq!(four[2].image.start, GOLDEN.len() as u64 + 0x50);
}

#[test]
fn rejects_every_truncation_and_what_follows() {
    for len in 0..GOLDEN.len() {
        read(&GOLDEN[..len]).unwrap_err();
    }
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let end = GOLDEN.len();
    assert_eq!(
        message(&[GOLDEN, &[0; 16]].concat()),
        format!("expected a CUDA fat binary at offset {end:#x}")
    );
    assert_eq!(
        message(&GOLDEN[..end - 1]),
        format!(
            "CUDA fat binary: images at offset 0x10 with size {:#x} runs past the end at {:#x}",
            end - 16,
            end - 1
        )
    );
    let mut long = GOLDEN.to_vec();
    long[0x18 + 3] = 1;
    assert_eq!(
        message(&long),
        format!(
            "image 0 of a CUDA fat binary: image at offset 0x50 with size 0x1000ba8 runs past the end at {end:#x}"
        )
    );
    let mut empty = GOLDEN[..16].to_vec();
    empty[8..].fill(0);
    assert_eq!(
        message(&empty),
        "the CUDA fat binary at offset 0x0 has no image"
    );
}

#[test]
fn survives_every_single_byte_change() {
    let mut changed = GOLDEN.to_vec();
    for index in 0..0xc70 {
        for byte in [0, 1, 0x80, 0xff] {
            let before = std::mem::replace(&mut changed[index], byte);
            let _ = read(&changed);
            changed[index] = before;
        }
    }
}

/// Written by `fatbinary` of CUDA 13.5 (`tests/golden/README.md`): cubins for `sm_80` and `sm_90`, then PTX for both.
const COMPRESSED_LZ4: &[u8] = include_bytes!("../../../../../tests/golden/cuda-13.5/lz4.fatbin");
const COMPRESSED_ZSTD: &[u8] = include_bytes!("../../../../../tests/golden/cuda-13.5/zstd.fatbin");
/// The same images; the groups of PTX come first.
const GROUPED: &[u8] = include_bytes!("../../../../../tests/golden/cuda-13.5/group.fatbin");

const SM_90: &[u8] = include_bytes!("../../../../../tests/golden/cuda-13.5/kernels.cubin");
const TEXT: &[u8] = b"\n.version 8.1\n.target sm_80\n.address_size 64\n\
    .visible .entry a(.param .u64 p) { ret; }\n.visible .entry b(.param .u64 p) { ret; }\n\0";

const LIMIT: u64 = 1 << 20;

/// Returns an image without the zeros at its end.
fn trimmed(image: &[u8]) -> &[u8] {
    let end = image.iter().rposition(|byte| *byte != 0);
    &image[..end.map_or(0, |end| end + 1)]
}

/// Returns the kind, processor and bytes of each image, without the zeros that pad a cubin.
fn unpacked(bytes: &[u8]) -> Vec<(FatbinKind, String, Vec<u8>)> {
    let mut unpacker = FatbinUnpacker::new(bytes, LIMIT);
    let unpack = |entry: FatbinEntry| {
        let image = unpacker.image(&entry).unwrap();
        assert_eq!(image.len() as u64, entry.uncompressed_size);
        let image = match entry.kind {
            FatbinKind::Cubin => trimmed(image),
            _ => image,
        };
        (entry.kind, entry.processor, image.to_vec())
    };
    read(bytes).unwrap().into_iter().map(unpack).collect()
}

#[test]
fn unpacks_what_nvidia_compresses() {
    let cubins = [("sm_80", &GOLDEN[0x50..0xbf8]), ("sm_90", SM_90)];
    let texts = ["sm_80", "sm_90"].map(|processor| (FatbinKind::Ptx, processor.into(), TEXT));
    let texts = texts.map(|(kind, processor, text)| (kind, processor, text.to_vec()));
    let cubins = cubins.map(|(processor, image)| {
        let image = trimmed(image).to_vec();
        (FatbinKind::Cubin, processor.to_owned(), image)
    });
    let expected = [&cubins[..], &texts[..]].concat();
    assert_eq!(unpacked(COMPRESSED_LZ4), expected);
    // In a group, PTX is padded, too.
    let padded = texts.map(|(kind, processor, mut text)| {
        text.resize(text.len().next_multiple_of(8), 0);
        (kind, processor, text)
    });
    let grouped = [&padded[..], &cubins[..]].concat();
    if cfg!(feature = "zstd") {
        assert_eq!(unpacked(COMPRESSED_ZSTD), expected);
        assert_eq!(unpacked(GROUPED), grouped);
    }
    assert_eq!(
        unpacked(GOLDEN)[0].2,
        trimmed(&GOLDEN[0x50..0xbf8]).to_vec()
    );
}

#[test]
fn describes_how_images_are_stored() {
    let describe = |bytes: &[u8]| {
        let entries = read(bytes).unwrap();
        let describe = |entry: &FatbinEntry| {
            let group = entry.group.as_ref().map(|group| group.image.clone());
            let start = entry.image.start;
            (
                entry.compression,
                start,
                entry.stored_size,
                entry.uncompressed_size,
                group,
            )
        };
        entries.iter().map(describe).collect::<Vec<_>>()
    };
    // Sizes and flags as they are in the files (`xxd`).
    let lz4 = Some(FatbinCompression::Lz4);
    let expected = [
        (lz4, 0x50, 0x3be, 0xba8, None),
        (lz4, 0x450, 0x623, 0x144c, None),
        (lz4, 0xac8, 0x65, 0x82, None),
        (lz4, 0xb80, 0x65, 0x82, None),
    ];
    assert_eq!(describe(COMPRESSED_LZ4), expected);
    let zstd = Some(FatbinCompression::Zstd);
    let expected = [
        (zstd, 0x50, 0x2ee, 0xba8, None),
        (zstd, 0x380, 0x4ad, 0x144c, None),
        (zstd, 0x880, 0x63, 0x82, None),
        (zstd, 0x938, 0x63, 0x82, None),
    ];
    assert_eq!(describe(COMPRESSED_ZSTD), expected);
    let expected = [
        (zstd, 0x108, 0x6a, 0x88, Some(0..0x88)),
        (zstd, 0x108, 0x6a, 0x88, Some(0x88..0x110)),
        (zstd, 0x250, 0x601, 0xba8, Some(0..0xba8)),
        (zstd, 0x250, 0x601, 0x1450, Some(0xba8..0x1ff8)),
    ];
    assert_eq!(describe(GROUPED), expected);
}

/// Returns the header of the first image.
fn first_header(bytes: &[u8]) -> ImageHeader {
    ImageHeader::read(&mut Cursor::new(bytes, 16..u64::MAX)).unwrap()
}

#[test]
fn changes_the_method_that_a_header_tells() {
    let [lz4, zstd] = [COMPRESSED_LZ4, COMPRESSED_ZSTD].map(first_header);
    let how = Some((FatbinCompressor::Zstd { level: None }, 0x2ee));
    assert_eq!(lz4.stored_as(0xba8, how), zstd);
    let how = Some((FatbinCompressor::Lz4, 0x3be));
    assert_eq!(zstd.stored_as(0xba8, how), lz4);
    assert_eq!(lz4.stored_as(0xba8, None).flags & (LZ4 | ZSTD), 0);
}

/// A fat binary of a group of images of 8 bytes, which are stored as they are. `names` has the offset and size of each name in
/// its header.
fn group_of(names: &[(u32, u32)]) -> Vec<u8> {
    let zero = ImageHeader::read(&mut Cursor::new(&[0; 64][..], 0..64)).unwrap();
    let mut table = Vec::new();
    for (index, (name_offset, name_size)) in (0..).zip(names) {
        let header = ImageHeader {
            kind: layout::PTX,
            // The offset in the group.
            header_size: index * 8,
            image_size: 8,
            processor: 80 + index,
            name_offset: *name_offset,
            name_size: *name_size,
            ..zero
        };
        let end = (table.len() + (name_offset + name_size + 1) as usize).next_multiple_of(8);
        header.write(&mut table);
        table.resize(table.len().max(end), 0);
    }
    let (count, size) = (names.len() as u32, table.len() as u32 + 8);
    let group = ImageHeader {
        kind: GROUP,
        header_size: 64 + size,
        image_size: u64::from(count) * 8,
        options_offset: 64,
        ..zero
    };
    let header = FatbinHeader {
        magic: MAGIC,
        version: 1,
        header_size: 16,
        size: u64::from(group.header_size) + group.image_size,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    group.write(&mut bytes);
    GroupHeader { count, size }.write(&mut bytes);
    bytes.extend(table);
    bytes.resize(bytes.len() + 8 * names.len(), 7);
    bytes
}

#[test]
fn finds_the_headers_of_a_group_after_names_of_any_size() {
    // With its NUL, a name of 8 bytes takes 16. The last row is damaged: the name is inside of the header.
    for names in [[(0, 0); 3], [(64, 7); 3], [(64, 8); 3], [(0, 1); 3]] {
        let found = read(&group_of(&names)).unwrap();
        let found = found.iter().map(|entry| {
            let place = entry.group.as_ref().unwrap().image.clone();
            (entry.processor.as_str(), place)
        });
        let expected = [("sm_80", 0..8), ("sm_81", 8..16), ("sm_82", 16..24)];
        assert!(found.eq(expected), "{names:?}");
    }
}

#[test]
fn walks_over_padding_and_keeps_what_precedes_damage() {
    let mut bytes = vec![0; 24];
    bytes.extend_from_slice(GOLDEN);
    bytes.resize(bytes.len() + 9000, 0);
    let second = bytes.len() as u64;
    bytes.extend_from_slice(COMPRESSED_LZ4);
    let end = bytes.len() as u64;
    bytes.extend_from_slice(&[0; 100]);
    let found = |bytes: &[u8]| walk(bytes, 0..bytes.len() as u64).collect::<Vec<_>>();
    let ranges = |bytes: &[u8]| {
        let ranges = found(bytes).into_iter();
        ranges
            .map(|one| one.map(|one| (one.range, one.entries.len())))
            .collect::<Vec<_>>()
    };
    let first = Ok((24..24 + GOLDEN.len() as u64, 2));
    assert_eq!(ranges(&bytes), [first.clone(), Ok((second..end, 4))]);
    let last = bytes.len() - 1;
    bytes[last] = 7;
    let offset = last as u64;
    let error = FatbinReadError::Magic { offset };
    let message = FatbinReadError::Header(OutOfBounds {
        what: "magic of header",
        offset,
        size: 4,
        end: offset + 1,
    });
    assert_eq!(
        ranges(&bytes),
        [first.clone(), Ok((second..end, 4)), Err(message)]
    );
    bytes.extend_from_slice(&[7; 100]);
    assert_eq!(ranges(&bytes), [first, Ok((second..end, 4)), Err(error)]);
    assert_eq!(found(&[]), []);
    assert_eq!(found(&[0; 10_000]), []);
}

#[test]
fn decompresses_a_group_once() {
    let entries = read(GROUPED).unwrap();
    let last = entries.last().unwrap().image.clone();
    let group: Vec<&FatbinEntry> = entries.iter().filter(|entry| entry.image == last).collect();
    assert!(group.len() > 1);
    let mut unpacker = FatbinUnpacker::new(GROUPED, LIMIT);
    let images = group
        .iter()
        .map(|entry| unpacker.image(entry).unwrap().to_vec());
    let expected: Vec<Vec<u8>> = images.collect();
    let mut last = unpacker.into_last();
    for (entry, expected) in group.iter().zip(expected) {
        // Without the file.
        let mut unpacker = FatbinUnpacker::new(&[][..], LIMIT).with_last(last);
        assert_eq!(unpacker.image(entry).unwrap(), expected);
        last = unpacker.into_last();
    }
}

/// A source that counts the bytes that are read.
struct CountedSource(&'static [u8], Arc<AtomicU64>);

impl Source for CountedSource {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.1.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let read = self.0.read_once(buffer, offset);
        read.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[test]
fn keeps_the_last_image_only() {
    let with_zstd = cfg!(feature = "zstd").then_some(COMPRESSED_ZSTD);
    for bytes in [GOLDEN, COMPRESSED_LZ4].into_iter().chain(with_zstd) {
        let entries = read(bytes).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let cache = ReadCache::new(CountedSource(bytes, Arc::clone(&count)));
        let mut unpacker = FatbinUnpacker::new(&cache, LIMIT);
        let read = [0, 0, 1, 0].map(|index: usize| {
            unpacker.image(&entries[index]).unwrap();
            count.swap(0, Ordering::Relaxed)
        });
        let [first, second] = [0, 1].map(|index: usize| entries[index].stored_size);
        assert_eq!(read, [first, 0, second, first]);
    }
}

#[test]
fn says_why_an_image_cannot_be_unpacked() {
    let message = |bytes: &[u8], limit| {
        let entry = read(bytes).unwrap().remove(0);
        FatbinUnpacker::new(bytes, limit)
            .image(&entry)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(COMPRESSED_LZ4, 0xba7),
        "the uncompressed size 0xba8 exceeds the limit 0xba7"
    );
    let changed = |bytes: &[u8], place: usize, byte: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] = byte;
        message(&bytes, LIMIT)
    };
    // The flags of the first image are at 0x38, its uncompressed size is at 0x48.
    assert_eq!(
        changed(COMPRESSED_LZ4, 0x39, 0),
        "the compression method is unknown (flags 0x11; lz4 and zstd are supported)"
    );
    assert_eq!(
        changed(COMPRESSED_LZ4, 0x39, 0xa0),
        "the compression method is unknown (flags 0xa011; lz4 and zstd are supported)"
    );
    assert_eq!(
        changed(COMPRESSED_LZ4, 0x48, 0xa7),
        "expected 0xba7 uncompressed bytes, found more"
    );
    assert_eq!(
        changed(COMPRESSED_LZ4, 0x48, 0xa9),
        "expected 0xba9 uncompressed bytes, found 0xba8"
    );
    // The offset of the first match, after a token and 10 literals.
    assert_eq!(
        changed(COMPRESSED_LZ4, 0x50 + 11, 11),
        "the LZ4 block is damaged at offset 0xb"
    );
    if cfg!(feature = "zstd") {
        assert_eq!(
            changed(COMPRESSED_ZSTD, 0x48, 0xa7),
            "expected 0xba7 uncompressed bytes, found more"
        );
        assert_eq!(
            changed(COMPRESSED_ZSTD, 0x48, 0xa9),
            "expected 0xba9 uncompressed bytes, found 0xba8"
        );
        let damaged = changed(COMPRESSED_ZSTD, 0x50, 0);
        assert!(
            damaged.starts_with("the zstd frame is damaged: "),
            "{damaged}"
        );
    }
}

#[test]
fn rejects_groups_whose_table_or_images_run_past_the_end() {
    let message = |place: usize, byte: u8| {
        let mut bytes = GROUPED.to_vec();
        bytes[place] = byte;
        read(&bytes).unwrap_err().to_string()
    };
    let start = "image 0 of a CUDA fat binary: ";
    // The table's header is at 0x50, the first image's at 0x58; the images begin at 0x108.
    assert_eq!(
        message(0x54, 0xb9),
        format!("{start}group at offset 0x50 with size 0xb9 runs past the end at 0x108")
    );
    assert_eq!(
        message(0x50, 3),
        format!(
            "{start}kind of image header at offset 0x108 with size 0x2 runs past the end at 0x108"
        )
    );
    assert_eq!(
        message(0x5d, 2),
        format!(
            "{start}image of the group at offset 0x200 with size 0x88 runs past the end at 0x110"
        )
    );
    // The compressed size is at 0x20.
    assert_eq!(
        message(0x20, 0x71),
        format!("{start}stored image at offset 0x108 with size 0x71 runs past the end at 0x178")
    );
}

#[test]
fn survives_every_truncation_and_byte_change_of_compressed_images() {
    let all = std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1");
    for golden in [COMPRESSED_LZ4, COMPRESSED_ZSTD, GROUPED] {
        for len in 0..golden.len() {
            let found: Vec<_> = walk(&golden[..len], 0..len as u64).collect();
            assert!(found.iter().all(Result::is_err), "{len}");
            assert_eq!(found.is_empty(), len == 0, "{len}");
        }
        let mut changed = golden.to_vec();
        for place in 0..changed.len() {
            for (number, byte) in [0, 1, 0x80, 0xff].into_iter().enumerate() {
                // Every value with `make test-all`; else one at each place.
                if !all && place % 4 != number {
                    continue;
                }
                let before = std::mem::replace(&mut changed[place], byte);
                let mut unpacker = FatbinUnpacker::new(changed.as_slice(), LIMIT);
                for found in walk(changed.as_slice(), 0..changed.len() as u64).flatten() {
                    for entry in found.entries {
                        let _ = unpacker.image(&entry).map_err(|error| error.to_string());
                    }
                }
                changed[place] = before;
            }
        }
    }
}
