//! Any bytes: no panic, what is accepted lies where it says, is inflated within limits, and is
//! written and read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::offload_binary::{
    Method, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion, compress, layout, walk,
};
use offload_formats::format::pieces;
use offload_formats::names::LlvmRelease;

const LIMIT: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    for binary in walk(data, 0..size).into_iter().flatten() {
        assert!(binary.range().end <= size);
        check(data, &binary);
        let Ok(bytes) = binary.inflate(data, LIMIT) else {
            continue;
        };
        assert!(bytes.len() as u64 <= LIMIT);
        if binary.compressed.is_none() {
            assert_eq!(bytes.len() as u64, binary.size);
        } else if let Ok(inflated) = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64) {
            assert!(inflated.compressed.is_none());
            check(&bytes, &inflated);
        }
    }
});

fn check(data: &[u8], binary: &OffloadBinary) {
    for entry in &binary.entries {
        assert!(entry.image.start <= entry.image.end && entry.image.end <= data.len() as u64);
        assert!(entry.strings.iter().count() == entry.strings.len());
        let _ = (entry.triple(), entry.arch());
    }
    let size = |range: &std::ops::Range<u64>| range.end - range.start;
    let images: u64 = binary.entries.iter().map(|entry| size(&entry.image)).sum();
    let strings = binary.entries.iter().flat_map(|entry| entry.strings.iter());
    let strings: usize = strings.map(|(key, value)| key.len() + value.len()).sum();
    // Entries may overlap in files, not in what is written.
    if binary.entries.is_empty() || images > LIMIT || strings as u64 > LIMIT {
        return;
    }
    let strings: Vec<Vec<(&[u8], &[u8])>> = binary
        .entries
        .iter()
        .map(|entry| entry.strings.iter().collect())
        .collect();
    let entries: Vec<NewBinaryEntry<'_>> = binary
        .entries
        .iter()
        .zip(&strings)
        .map(|(entry, strings)| NewBinaryEntry {
            image_kind: entry.image_kind,
            offload_kind: entry.offload_kind,
            flags: entry.flags,
            strings,
            image_size: size(&entry.image),
        })
        .collect();
    let inputs: Vec<&[u8]> = binary
        .entries
        .iter()
        .map(|entry| &data[entry.image.start as usize..entry.image.end as usize])
        .collect();
    let pieces = layout(&entries, OffloadBinaryVersion::V3, LlvmRelease::Main).unwrap();
    let written = pieces::to_bytes(&pieces, &inputs).unwrap();
    let small = compress(&written, Method::Zstd, Some(1)).unwrap();
    let small = OffloadBinary::parse(&small[..], 0, small.len() as u64)
        .unwrap()
        .inflate(&small[..], u64::MAX);
    assert!(small.unwrap() == written);
    let again = OffloadBinary::parse(&written[..], 0, written.len() as u64).unwrap();
    assert_eq!(again.entries.len(), binary.entries.len());
    for (entry, before) in again.entries.iter().zip(&binary.entries) {
        assert_eq!(entry.offload_kind, before.offload_kind);
        // A key given twice is written once.
        for (key, value) in entry.strings.iter() {
            let last = before
                .strings
                .iter()
                .filter(|(known, _)| *known == key)
                .last();
            assert_eq!(last, Some((key, value)));
        }
    }
}
