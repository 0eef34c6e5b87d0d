//! Any text: no panic, what is displayed is read as the same, and everything serves itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::names::{
    ConflictScope, EntryId, KindRule, LlvmRelease, TargetId, Triple, conflict,
};

fuzz_target!(|text: &str| {
    if let Ok(id) = TargetId::parse(text) {
        assert_eq!(TargetId::parse(&id.to_string()), Ok(id));
    }
    if let Ok(triple) = Triple::parse(text) {
        let _ = (triple.to_string(), triple.is_cpu());
        assert!(triple.serves(&triple));
    }
    for id in [EntryId::parse(text).ok(), EntryId::parse_target(text).ok()]
        .into_iter()
        .flatten()
    {
        assert!(EntryId::parse(&id.to_string()).is_ok());
        assert!(id.serves(&id, KindRule::SameRuntime));
        let _ = (id.hint(), id.unknown_processor());
        let _ = id.display_for(LlvmRelease::V19);
    }
    let _ = EntryId::parse_target_for(text, LlvmRelease::V19);
    let ids: Vec<EntryId> = text
        .lines()
        .filter_map(|line| EntryId::parse(line).ok())
        .collect();
    for scope in [ConflictScope::KindAndTriple, ConflictScope::All] {
        if let Some((first, later)) = conflict(&ids, scope) {
            assert!(first != later && first < ids.len() && later < ids.len());
        }
    }
});
