//! Any bytes: no panic, and what is accepted lies where it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::format::offload_binary::walk;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    for binary in walk(data, 0..size).into_iter().flatten() {
        assert!(binary.range().end <= size);
        for entry in &binary.entries {
            assert!(entry.image.start <= entry.image.end && entry.image.end <= size);
            assert!(entry.strings.iter().count() == entry.strings.len());
            let _ = (entry.triple(), entry.arch());
        }
    }
});
