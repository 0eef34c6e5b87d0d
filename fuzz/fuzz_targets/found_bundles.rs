//! Any bytes: no panic, and bundles lie inside of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::container::bundles::find;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(found) = find(data, 0..size) else { return };
    for (index, found) in found.bundles.iter().enumerate() {
        let range = found.bundle.range();
        assert!(found.index == index && range.start < range.end && range.end <= size);
    }
    for rest in &found.rests {
        assert!(rest.range.start < rest.range.end && rest.range.end <= size);
    }
    // The same at another place.
    let moved = [b"12345", data].concat();
    let again = find(&moved[..], 5..5 + size);
    let ranges = |found: &offload_build::container::bundles::FoundBundles, by: u64| {
        let ranges = found.bundles.iter().map(|found| found.bundle.range());
        ranges.map(|range| range.start + by..range.end + by).collect::<Vec<_>>()
    };
    assert_eq!(again.map(|again| ranges(&again, 0)), Ok(ranges(&found, 5)));
});
