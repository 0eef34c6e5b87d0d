//! Any text, and any bytes: no panic, and what is printed is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::offload_yaml::{Document, parse};
use offload_formats::names::LlvmRelease;

fuzz_target!(|data: &[u8]| {
    if let Ok(document) = Document::of(data, 0..data.len() as u64, 1 << 20) {
        assert_eq!(parse(&document.to_string()), Ok(document));
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let tagged = format!("--- !Offload\nMembers:\n{text}");
    for text in [text, &tagged] {
        let Ok(document) = parse(text) else { continue };
        assert_eq!(parse(&document.to_string()), Ok(document.clone()));
        for release in [
            LlvmRelease::V19,
            LlvmRelease::V22,
            LlvmRelease::V23,
            LlvmRelease::Main,
        ] {
            let _ = document.to_bytes(release);
        }
    }
});
