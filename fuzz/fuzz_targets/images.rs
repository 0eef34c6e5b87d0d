//! Any bytes: no panic, and images lie inside of them, or of what was unpacked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::bundled::Unpacking;
use offload_formats::container::{images_within, link_inputs};

fuzz_target!(|data: &[u8]| {
    for found in images_within(data, &mut Unpacking::in_memory(1 << 20))
        .into_iter()
        .flatten()
    {
        let image = &found.entry.image;
        assert_eq!(
            found.content(data).map(|image| image.len() as u64),
            Some(image.end - image.start)
        );
    }
    let _ = link_inputs(data, &mut Unpacking::in_memory(1 << 20));
});
