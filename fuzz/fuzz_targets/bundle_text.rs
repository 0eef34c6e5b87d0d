//! Any bytes: no panic, and what is accepted can be written again and read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::format::bundle_text::{Comment, parse, to_bytes};

fuzz_target!(|data: &[u8]| {
    for comment in [Comment::Slashes, Comment::Hash, Comment::Semicolon] {
        let Ok(entries) = parse(data, 0..data.len() as u64, comment) else {
            continue;
        };
        let texts = entries.iter().map(|entry| {
            let text = &data[entry.text.start as usize..entry.text.end as usize];
            (entry.id.as_str(), text)
        });
        let texts: Vec<(&str, &[u8])> = texts.collect();
        let Ok(bytes) = to_bytes(&texts, comment) else {
            continue;
        };
        let again = parse(&bytes[..], 0..bytes.len() as u64, comment).unwrap();
        assert!(again.len() == texts.len());
        for (entry, (id, text)) in again.iter().zip(texts) {
            assert!(entry.id == id);
            assert!(bytes[entry.text.start as usize..entry.text.end as usize] == *text);
        }
    }
});
