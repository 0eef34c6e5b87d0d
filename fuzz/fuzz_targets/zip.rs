//! Any bytes as a zip file: members inside of the file, content of the directory's size or an error, and a file with new
//! content that is read again.
#![no_main]

use std::collections::BTreeMap;
use std::io::Read;

use libfuzzer_sys::fuzz_target;
use offload_formats::format::pieces::{Piece, to_bytes};
use offload_formats::format::zip::{NewZipContent, ZipFile, ZipMember, deflate};

fn content(member: &ZipMember, file: &[u8]) -> Option<Vec<u8>> {
    let stored = &file[member.content.start as usize..member.content.end as usize];
    let mut bytes = Vec::new();
    let read = member.unpack(stored).ok()?.read_to_end(&mut bytes);
    assert!(bytes.len() as u64 <= member.size);
    read.ok().map(|_| bytes)
}

fuzz_target!(|data: &[u8]| {
    let Ok(zip) = ZipFile::parse(data, 0..data.len() as u64) else {
        return;
    };
    // Members do not overlap, so the sum is that of the file at most.
    let stored: usize = zip
        .members
        .iter()
        .map(|member| (member.content.end - member.content.start) as usize)
        .sum();
    assert!(stored <= data.len());
    let contents: Vec<_> = zip
        .members
        .iter()
        .map(|member| content(member, data))
        .collect();
    let Some(first) = zip.members.first() else {
        return;
    };
    let mut bytes = Vec::new();
    let packed = deflate(&b"new"[..], first.method, &mut bytes).unwrap();
    let new = NewZipContent {
        crc: packed.crc,
        size: packed.size,
        pieces: vec![Piece::Bytes(bytes)],
    };
    let Ok(pieces) = zip.with_new_content(data, &BTreeMap::from([(0, new)])) else {
        return;
    };
    let file = to_bytes(&pieces, &[data]).expect("pieces are inside of the file");
    let again = ZipFile::parse(&file[..], 0..file.len() as u64);
    // A damaged member's header may contradict the directory; then the new file may be damaged, too.
    let Ok(again) = again else { return };
    assert_eq!(again.members.len(), zip.members.len());
    for (member, before) in again.members.iter().zip(&contents).skip(1) {
        assert_eq!(&content(member, &file), before);
    }
});
