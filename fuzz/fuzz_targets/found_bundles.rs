//! Any bytes: no panic, bundles lie inside of them, and entries are the same whether they are unpacked at once or later.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::bundled::{Unpacking, entries};
use offload_formats::container::bundles::find;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(found) = find(data, 0..size) else {
        return;
    };
    for (index, found) in found.bundles.iter().enumerate() {
        let range = found.bundle.range();
        assert!(found.index == index && range.start < range.end && range.end <= size);
    }
    for rest in &found.trailing {
        assert!(rest.range.start < rest.range.end && rest.range.end <= size);
    }
    // The same at another place.
    let moved = [b"12345", data].concat();
    let again = find(&moved[..], 5..5 + size);
    let ranges = |found: &offload_formats::container::bundles::FoundBundles, by: u64| {
        let ranges = found.bundles.iter().map(|found| found.bundle.range());
        ranges
            .map(|range| range.start + by..range.end + by)
            .collect::<Vec<_>>()
    };
    assert_eq!(again.map(|again| ranges(&again, 0)), Ok(ranges(&found, 5)));
    let entries = |memory| {
        let mut unpacking = Unpacking::in_memory(1 << 20).at_once(memory);
        entries(data, 0..size, &mut unpacking)
    };
    // IDs take memory, too: as much as there are bytes.
    let (Ok(at_once), Ok(later)) = (entries(u64::MAX), entries(1 << 12)) else {
        return;
    };
    assert_eq!(at_once.len(), later.len());
    for (one, two) in at_once.iter().zip(&later) {
        assert_eq!(
            (&one.id, one.bundle, &one.range, one.comment),
            (&two.id, two.bundle, &two.range, two.comment)
        );
        assert_eq!(one.content(data), two.content(data));
    }
});
