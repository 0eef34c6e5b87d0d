//! Any bytes: no panic, and images lie inside of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::container::{images, link_inputs};

fuzz_target!(|data: &[u8]| {
    for found in images(data).into_iter().flatten() {
        let image = found.entry.image;
        assert!(image.start <= image.end && image.end <= data.len() as u64);
    }
    let _ = link_inputs(data);
});
