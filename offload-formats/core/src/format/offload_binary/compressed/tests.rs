use super::super::{
    NewBinaryEntry, OffloadBinaryVersion, OffloadBinaryWriteError, compress, layout, walk,
};
use super::*;
use crate::format::pieces;
use crate::names::LlvmRelease;

/// Version 3, uncompressed.
fn plain() -> Vec<u8> {
    let strings: &[(&[u8], &[u8])] = &[(b"arch", b"sm_70"), (b"triple", b"nvptx64-nvidia-cuda")];
    let entry = NewBinaryEntry {
        strings,
        image_size: 4096,
        ..NewBinaryEntry::default()
    };
    let pieces = layout(&[entry, entry], OffloadBinaryVersion::V3, LlvmRelease::Main).unwrap();
    pieces::to_bytes(&pieces, &[&[b'A'; 4096], &[b'B'; 4096]]).unwrap()
}

fn parse(bytes: &[u8]) -> OffloadBinary {
    OffloadBinary::parse(bytes, 0, bytes.len() as u64).unwrap()
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, InflateError> {
    parse(bytes).inflate(bytes, u64::MAX)
}

fn set(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn gives_back_what_it_compressed() {
    let plain = plain();
    for method in Method::ALL {
        let small = compress(&plain, method, None).unwrap();
        assert!(small.len() < plain.len() && small.len() % 8 == 0);
        let found = parse(&small);
        assert_eq!((found.offset, found.entries.len()), (0, 0));
        // Not rounded.
        assert_eq!(found.size.next_multiple_of(8), small.len() as u64);
        let compressed = found.compressed.clone().unwrap();
        assert_eq!(compressed.method, method);
        assert_eq!(compressed.inflated_size, plain.len() as u64);
        assert_eq!(compressed.data, 40..found.size);
        let magic: &[u8] = match method {
            Method::Zlib => b"\x78",
            Method::Zstd => &ZSTD,
        };
        assert!(small[40..].starts_with(magic));
        assert_eq!(
            found.inflate(&small[..], plain.len() as u64).unwrap(),
            plain
        );
    }
    assert_eq!(inflate(&plain).unwrap(), plain);
}

#[test]
fn stands_among_others() {
    let plain = plain();
    let small = compress(&plain, Method::Zstd, Some(-5)).unwrap();
    let bytes = [&small[..], &plain, &small].concat();
    let found = walk(&bytes[..], 0..bytes.len() as u64).unwrap();
    assert_eq!(found.len(), 3);
    for binary in found {
        assert_eq!(binary.inflate(&bytes[..], 1 << 20).unwrap(), plain);
    }
}

#[test]
fn rejects_levels_that_llvm_rejects() {
    let message = |method, level| {
        let error = compress(&plain(), method, Some(level));
        error.map(|_| ()).map_err(|error| error.to_string())
    };
    let text = "invalid zlib compression level 12; expected a value in [0, 9]";
    assert_eq!(message(Method::Zlib, 12), Err(text.to_owned()));
    let text = "invalid zstd compression level -6; expected a value in [-5, 22]";
    assert_eq!(message(Method::Zstd, -6), Err(text.to_owned()));
    for level in [-5, 0, 22] {
        assert_eq!(message(Method::Zstd, level), Ok(()));
    }
    for level in [0, 9] {
        assert_eq!(message(Method::Zlib, level), Ok(()));
    }
    message(Method::Zlib, -1).unwrap_err();
    message(Method::Zstd, 23).unwrap_err();
}

#[test]
fn compresses_only_version_3_and_only_once() {
    let small = compress(&plain(), Method::Zlib, None).unwrap();
    let mut longer = plain();
    longer.extend([0; 8]);
    // More strings than there is room for.
    let mut damaged = plain();
    damaged[0x28 + 0x10 + 3] = 1;
    for bytes in [&small[..], super::super::tests::ONE, &longer, &damaged, b""] {
        assert_eq!(
            compress(bytes, Method::Zlib, None),
            Err(OffloadBinaryWriteError::NotVersion3)
        );
    }
}

#[test]
fn rejects_sizes_that_are_not_those_of_the_data() {
    let plain = plain();
    let size = plain.len() as u64;
    for method in Method::ALL {
        let small = compress(&plain, method, None).unwrap();
        let claim = |claimed: u64| {
            let mut bytes = small.clone();
            set(&mut bytes, 32, claimed);
            inflate(&bytes)
        };
        let (claimed, found) = (size + 1, size);
        assert_eq!(
            claim(size + 1),
            Err(InflateError::Shorter { claimed, found })
        );
        let claimed = size - 1;
        assert_eq!(claim(size - 1), Err(InflateError::Longer { claimed }));
        assert_eq!(claim(40), Err(InflateError::Longer { claimed: 40 }));
        // Nothing of that size is allocated.
        claim(u64::MAX).unwrap_err();
        let (claimed, limit) = (size, size - 1);
        let limited = parse(&small).inflate(&small[..], limit);
        assert_eq!(limited, Err(InflateError::Limit { claimed, limit }));
    }
    let text = "compressed offload binary: inflated size 0x2100 is more than the allowed 0x10";
    let limited = parse(&plain).inflate(&plain[..], 16).unwrap_err();
    assert_eq!(limited.to_string(), text);
}

#[test]
fn rejects_damaged_data() {
    let plain = plain();
    for method in Method::ALL {
        let small = compress(&plain, method, None).unwrap();
        let size = parse(&small).size;
        // Cut: whatever was lost.
        for less in 1..size - 40 {
            let mut bytes = small.clone();
            set(&mut bytes, 8, size - less);
            inflate(&bytes).unwrap_err();
        }
        let mut bytes = [&small[..size as usize], b"more..."].concat();
        set(&mut bytes, 8, size + 7);
        inflate(&bytes).unwrap_err();
    }
    let small = compress(&plain, Method::Zlib, None).unwrap();
    let size = parse(&small).size;
    let mut bytes = [&small[..size as usize], b"more"].concat();
    set(&mut bytes, 8, size + 4);
    let (offset, end) = (size, size + 4);
    assert_eq!(inflate(&bytes), Err(InflateError::Trailing { offset, end }));
}

#[test]
fn rejects_headers_that_lie() {
    let small = compress(&plain(), Method::Zstd, None).unwrap();
    let message = |offset, value| {
        let mut bytes = small.clone();
        set(&mut bytes, offset, value);
        let parsed = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64);
        parsed.unwrap_err().problem.to_string()
    };
    // LLVM's tests expect this one to be refused.
    assert_eq!(
        message(16, 48),
        "expected compressed entries at its offset 0x28, found 0x30"
    );
    assert_eq!(
        message(16, 32),
        "expected entries at its offset 0x28 or later, found 0x20"
    );
    assert_eq!(
        message(32, 39),
        "expected an inflated size of 0x28 or more, found 0x27"
    );
    assert_eq!(
        message(8, 39),
        "expected a size of 0x28 or more, found 0x27"
    );
    for len in 0..small.len() - 8 {
        OffloadBinary::parse(&small[..len], 0, len as u64).unwrap_err();
    }
}

#[test]
fn survives_every_single_byte_change() {
    for method in Method::ALL {
        let small = compress(&plain(), method, None).unwrap();
        let mut bytes = small.clone();
        for offset in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                bytes[offset] = value;
                let parsed = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64);
                if let Ok(binary) = parsed {
                    let _ = binary.inflate(&bytes[..], 1 << 16);
                }
            }
            bytes[offset] = small[offset];
        }
    }
}
