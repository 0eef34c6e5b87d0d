//! Any bytes as a file with images, at the starts of sections and anywhere in data: no panic, images inside of their
//! containers' data, kernels of each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::bundled::Unpacking;
use offload_formats::container::inventory::{
    ContainerData, Inventory, exhaustive_inventory, inventory,
};
use offload_formats::container::kernels::kernels_within;

const LIMIT: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    check(data, &inventory(data, &mut Unpacking::in_memory(LIMIT)));
    check(
        data,
        &exhaustive_inventory(data, &mut Unpacking::in_memory(LIMIT)),
    );
});

fn check(data: &[u8], found: &Inventory) {
    for problem in &found.problems {
        assert!(!problem.to_string().contains('\x1b'), "names are escaped");
    }
    for placed in found.images() {
        let image = placed.image;
        let stored = image.stored_range();
        if let ContainerData::File = placed.stored_data() {
            assert!(stored.start <= stored.end && stored.end <= data.len() as u64);
        }
        let unpacked;
        let bytes = match placed.data() {
            ContainerData::File => data,
            ContainerData::Unpacked(bytes) => {
                unpacked = bytes.read(&(0..bytes.size())).unwrap();
                &unpacked[..]
            }
            // Its content was not unpacked.
            _ => continue,
        };
        assert!(image.range.start <= image.range.end && image.range.end <= bytes.len() as u64);
        let _ = kernels_within(bytes, image.range.clone());
    }
}
