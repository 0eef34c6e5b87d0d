//! Any bytes as a file to verify: no panic, findings are sorted, and each runtime adds findings to those without one.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use offload_formats::container::bundled::Unpacking;
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::inventory::inventory;
use offload_formats::container::verify::{FindingCode, VerifySettings, verify};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::compressed_bundle::HipRuntime;
use offload_formats::format::unpacked::Scratch;

const LIMIT: u64 = 1 << 20;

fuzz_target!(|file: &[u8]| {
    let found = inventory(file, &mut Unpacking::in_memory(LIMIT));
    let open = || ReadCache::new(Cursor::new(file.to_vec()));
    let of = |runtime| {
        let settings = VerifySettings {
            runtime,
            limit: DecompressionLimit::parse(Some("1M"), None).unwrap(),
            scratch: Scratch::in_memory(),
        };
        verify(open, &found, settings).unwrap()
    };
    let all = of(None);
    assert!(all.is_sorted_by_key(|finding| finding.code));
    for finding in &all {
        let text = format!("{}{}", finding.place, finding.message);
        assert!(!text.contains(|char: char| char.is_control()), "{text:?}");
    }
    let old = of(Some(HipRuntime::new(6, 4)));
    let others = old
        .iter()
        .filter(|finding| finding.code != FindingCode::UnreadCompression);
    assert!(others.eq(&all));
});
