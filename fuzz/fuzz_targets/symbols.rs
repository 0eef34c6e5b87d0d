//! Any bytes: no panic, and what the file defines for others fits into an index.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::archive::{Index, MemberPlan, layout};
use offload_formats::container::definitions;
use offload_formats::format::pieces::Piece;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let Ok(symbols) = definitions(data, 0..size) else {
        return;
    };
    let content = [Piece::Copy {
        input: 0,
        range: 0..size,
    }];
    let member = MemberPlan {
        name: "a",
        content: &content,
        symbols: &symbols,
    };
    let pieces = layout(&[member], Index::OfSymbols).unwrap();
    let written: u64 = pieces.iter().map(|piece| piece.size()).sum();
    let count = symbols.len() as u64;
    assert!(written <= 8 + 2 * 62 + 4 + 5 * count + 17 * size);
});
