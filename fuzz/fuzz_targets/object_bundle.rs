//! Any bytes: no panic; what is written can be read, has the entries, and gives the host back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::object_bundle::{
    NewObjectEntry, bundle_sections, embed_bundle, host_part,
};
use offload_formats::container::{coff, elf};
use offload_formats::format::pieces::{Piece, to_bytes};
use offload_formats::registration::deferred::add_demand;

/// The pieces together, when they are no gigabytes.
fn whole(pieces: &[Piece], inputs: &[&[u8]]) -> Option<Vec<u8>> {
    let size: u64 = pieces.iter().map(Piece::size).sum();
    (size < 1 << 22).then(|| to_bytes(pieces, inputs).expect("pieces lie in their inputs"))
}

/// All that has a name gets another.
fn renamed(data: &[u8], range: std::ops::Range<u64>) {
    let Ok(mut object) = coff::Object::read(data, range) else {
        return;
    };
    let symbols: Vec<usize> = object.symbols().map(|symbol| symbol.index).collect();
    let count = object.sections().count();
    for number in 0..=count.min(99) {
        let _ = object.referred(number).count();
        object.rename_section(number, "a long name of a section");
    }
    symbols
        .iter()
        .for_each(|index| object.rename_symbol(*index, "a long name of a symbol"));
    let Ok(pieces) = object.write() else { return };
    let Some(written) = whole(&pieces, &[data]) else {
        return;
    };
    let again = coff::Object::read(&written[..], 0..written.len() as u64);
    let again = again.expect("what is written can be read");
    assert!(
        again
            .symbols()
            .all(|symbol| symbol.name == b"a long name of a symbol")
    );
}

fuzz_target!(|data: &[u8]| {
    let range = 0..data.len() as u64;
    // Also what cannot be told to be an object.
    let matches = |name: &[u8]| name.starts_with(b".t") || name.is_empty();
    for pieces in [
        elf::remove_sections(data, range.clone(), matches).ok(),
        coff::remove_sections(data, range.clone(), matches).ok(),
        coff::add_sections(data, range.clone(), &[]).ok(),
    ] {
        let _ = pieces.and_then(|pieces| whole(&pieces, &[data]));
    }
    if let Ok(pieces) = add_demand(data, range.clone()) {
        if let Some(demanding) = whole(&pieces, &[data]) {
            let symbols = elf::Elf::parse(&demanding[..], 0..demanding.len() as u64)
                .and_then(|elf| elf.symbols(elf::SymbolTable::All).map(|all| all.len()));
            assert!(symbols.is_ok(), "what is written can be read");
        }
    }
    renamed(data, range.clone());
    let Ok(before) = bundle_sections(data, range.clone()) else {
        return;
    };
    let entries =
        [("host-x", None), ("hip-y", Some(3))].map(|(id, size)| NewObjectEntry { id, size });
    let Ok(pieces) = embed_bundle(data, range, &entries) else {
        return;
    };
    let Some(fat) = whole(&pieces, &[data, b"", b"img"]) else {
        return;
    };
    let range = 0..fat.len() as u64;
    let after = bundle_sections(&fat[..], range.clone()).expect("what is written can be read");
    let ids: Vec<&str> = after.iter().map(|entry| &entry.id[..]).collect();
    assert!(ids.len() == before.len() + 2 && ids.ends_with(&["host-x", "hip-y"]));
    let image = after.last().expect("there are two").content.clone();
    assert_eq!(&fat[image.start as usize..image.end as usize], b"img");
    let Ok(pieces) = host_part(&fat[..], range) else {
        return;
    };
    let Some(host) = whole(&pieces, &[&fat]) else {
        return;
    };
    assert_eq!(
        bundle_sections(&host[..], 0..host.len() as u64).map(|entries| entries.len()),
        Ok(0)
    );
});
