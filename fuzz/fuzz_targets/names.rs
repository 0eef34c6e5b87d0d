//! Any text: no panic, and what is displayed is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_build::target::{EntryId, TargetId, Triple};

fuzz_target!(|text: &str| {
    if let Ok(id) = TargetId::parse(text) {
        assert_eq!(TargetId::parse(&id.to_string()), Ok(id));
    }
    if let Ok(triple) = Triple::parse(text) {
        let _ = (triple.to_string(), triple.is_cpu());
    }
    for id in [EntryId::parse(text).ok(), EntryId::parse_target(text).ok()]
        .into_iter()
        .flatten()
    {
        assert!(EntryId::parse(&id.to_string()).is_ok());
        let _ = (id.canonical(), id.hint());
    }
});
