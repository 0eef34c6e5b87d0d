//! Any bytes as CUDA's fat binaries with compressed images: no panic, sizes as described, never more than the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::kernels::{kernels_within, ptx_kernels};
use offload_formats::format::fatbin::{self, FatbinKind, FatbinUnpacker, walk};

const LIMIT: u64 = 1 << 20;
/// Images to unpack: small stored bytes may be many large images.
const MOST: usize = 16;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let mut unpacker = FatbinUnpacker::new(data, LIMIT);
    let mut end = 0;
    let mut walked = Vec::new();
    let mut is_damaged = false;
    for found in walk(data, 0..size) {
        let Ok(found) = found.map_err(|error| error.to_string()) else {
            is_damaged = true;
            continue;
        };
        assert!(!is_damaged, "the walk ends after an error");
        assert!(
            end <= found.range.start
                && found.range.start < found.range.end
                && found.range.end <= size
        );
        end = found.range.end;
        for entry in &found.entries {
            let stored = entry.image.end - entry.image.start;
            assert!(entry.image.end <= end && entry.stored_size <= stored);
            assert_eq!(entry.is_compressed(), entry.compression.is_some());
        }
        walked.extend(found.entries);
    }
    if let Ok(entries) = fatbin::parse(data, 0..size) {
        assert_eq!(entries, walked, "without padding both read the same");
    }
    for entry in walked.iter().take(MOST) {
        let Ok(image) = unpacker.image(entry).map_err(|error| error.to_string()) else {
            continue;
        };
        let found = image.len() as u64;
        assert!(found == entry.uncompressed_size && (found <= LIMIT || !entry.is_compressed()));
        let _ = match entry.kind {
            FatbinKind::Ptx => ptx_kernels(image),
            _ => kernels_within(image, 0..found),
        };
    }
});
