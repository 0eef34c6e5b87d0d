//! Any bytes behind the magic of bitcode: no panic, and what is embedded is a small multiple of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::bitcode::embedded_objects;

fuzz_target!(|data: &[u8]| {
    let file = [b"BC\xc0\xde", data].concat();
    let objects = embedded_objects(&file[..], 0..file.len() as u64).unwrap_or_default();
    let size: usize = objects.iter().map(|object| object.len()).sum();
    assert!(size <= 16 * file.len());
});
