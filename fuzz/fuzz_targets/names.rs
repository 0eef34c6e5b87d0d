//! Any text: no panic, and what is displayed is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::target::{TargetId, Triple};

fuzz_target!(|text: &str| {
    if let Ok(id) = TargetId::parse(text) {
        assert_eq!(TargetId::parse(&id.to_string()), Ok(id));
    }
    if let Ok(triple) = Triple::parse(text) {
        let _ = (triple.to_string(), triple.is_cpu());
    }
});
