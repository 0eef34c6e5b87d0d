//! Any bytes: no panic, and what is accepted lies where it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::format::bundle::{Layout, walk};
use offload_build::target::EntryId;
use std::num::NonZeroU64;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(found) = walk(data, 0..size) else { return };
    assert!(found.end <= size);
    let mut position = 0;
    for bundle in &found.bundles {
        assert!(bundle.offset >= position && bundle.range().end <= found.end);
        position = bundle.range().end;
        for entry in &bundle.entries {
            assert!(entry.image.start <= entry.image.end && entry.image.end <= size);
            let _ = EntryId::parse(&entry.id);
        }
        let image = |range: &std::ops::Range<u64>| range.end - range.start;
        let images = bundle.entries.iter().map(|entry| (entry.id.as_str(), image(&entry.image)));
        let _ = Layout::new(images, NonZeroU64::MIN);
    }
});
