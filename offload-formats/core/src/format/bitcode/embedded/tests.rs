#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use super::*;

/// Twice two images, and between them an empty file; commands in `tests/golden/README.md`.
const CLANG: &[u8] = include_bytes!("../../../../../../tests/golden/22.1.8/embedded.bc");
const TWO: &[u8] =
    include_bytes!("../../../../../../tests/golden/22.1.8/two-images.offload-binary");

fn read(bytes: &[u8]) -> Result<Vec<Arc<[u8]>>, BitcodeError> {
    embedded_objects(bytes, 0..bytes.len() as u64)
}

#[test]
fn reads_what_clang_embedded() {
    let objects = read(CLANG).unwrap();
    assert_eq!(objects.len(), 2);
    assert!(objects.iter().all(|object| **object == *TWO));
    // Equal objects are one constant, and here one allocation.
    assert!(Arc::ptr_eq(&objects[0], &objects[1]));
    let file = [b"more", CLANG, b"more"].concat();
    let inside = embedded_objects(&file[..], 4..4 + CLANG.len() as u64);
    assert_eq!(inside.unwrap(), objects);
}

#[test]
fn rejects_every_truncation_of_the_module() {
    let whole = read(CLANG).unwrap();
    for len in 0..CLANG.len() {
        // Without an error only what precedes the module is there, or only what follows it is not.
        let rest = read(&CLANG[..len]);
        let fine = |objects: &Vec<_>| *objects == whole || objects.is_empty() && len < 0x40;
        assert!(rest.as_ref().map_or(true, fine), "{len:#x}");
    }
}

#[test]
fn survives_every_single_bit_change() {
    let mut bytes = CLANG.to_vec();
    // Every bit with `make test-all`; else one in each byte, another one in the next.
    let all = std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1");
    for bit in (0..bytes.len() * 8).step_by(if all { 1 } else { 7 }) {
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(objects) = read(&bytes) {
            let size: usize = objects.iter().map(|object| object.len()).sum();
            assert!(size <= 16 * bytes.len());
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}
