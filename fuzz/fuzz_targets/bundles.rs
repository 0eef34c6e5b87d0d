//! Any bytes: no panic, and bundles that lie one after the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::bundles::{AnyBundle, walk};

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(found) = walk(data, 0..size) else {
        return;
    };
    let mut position = 0;
    for bundle in &found.bundles {
        let range = bundle.range();
        assert!(range.start >= position && range.end > range.start);
        position = range.end;
        if let AnyBundle::Compressed(bundle) = bundle {
            let mut out = Vec::new();
            if bundle.uncompressed_size < 1 << 20 {
                let end = bundle.decompress_to(data, &mut out);
                assert!(end.map_or(true, |end| end <= range.end));
                assert!(out.len() as u64 <= bundle.uncompressed_size);
            }
            let _ = bundle.contents(data);
        }
    }
    assert!(position <= found.end && found.end <= size);
});
