//! Any bytes: no panic, and no more output than is claimed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::bundle::Bundle;
use offload_formats::format::compressed_bundle::CompressedBundle;
use offload_formats::format::unpacked::Scratch;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(found) = CompressedBundle::parse(data, 0, size) else {
        return;
    };
    assert!(found.data.start <= found.data.end && found.data.end <= size);
    if let Ok(bundle) = found.unpack(data, 1 << 20, &Scratch::in_memory()) {
        assert!(bundle.size() == found.uncompressed_size);
        // Its headers alone say the same.
        if let Ok(Some(inside)) = found.contents(data) {
            assert_eq!(
                Bundle::parse(&bundle.open(), 0, bundle.size()),
                Ok(inside)
            );
        }
    }
});
