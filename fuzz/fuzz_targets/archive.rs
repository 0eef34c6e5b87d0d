//! Any bytes: no panic, and what is accepted lies where it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::archive::Archive;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(archive) = Archive::parse(data, 0..size) else {
        return;
    };
    for member in &archive.members {
        assert!(member.header_offset < size);
        if let Some(content) = &member.content {
            assert!(content.start <= content.end && content.end <= size);
        }
    }
    let _ = archive.symbols();
});
