//! Any bytes: no panic, and what is accepted lies where it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::bundle::{Bundle, BundleLayout};
use offload_formats::names::EntryId;
use std::num::NonZeroU64;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(bundle) = Bundle::parse(data, 0, size) else {
        return;
    };
    assert!(bundle.offset == 0 && bundle.range().end <= size);
    for entry in &bundle.entries {
        assert!(entry.image.start <= entry.image.end && entry.image.end <= size);
        let _ = EntryId::parse(&entry.id);
    }
    let image = |range: &std::ops::Range<u64>| range.end - range.start;
    let images = bundle
        .entries
        .iter()
        .map(|entry| (entry.id.as_str(), image(&entry.image)));
    let _ = BundleLayout::new(images, NonZeroU64::MIN);
});
