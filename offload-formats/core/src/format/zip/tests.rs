use super::*;

use crate::format::pieces::{Piece, to_bytes};
use std::collections::BTreeMap;
use std::io::{self, Read as _};

// Written by `zipfile` of Python 3.11: members `a/k.txt`, stored, and `b`, 40 times `x`, deflated.

/// Written to a file.
const PLAIN: &[u8] = b"PK\x03\x04\x14\x00\x00\x00\x00\x00\x83\x18\"Xxw\xa6\x0f\x0c\x00\x00\x00\x0c\x00\x00\x00\x07\x00\
    \x00\x00a/k.txtstored bytesPK\x03\x04\x14\x00\x00\x00\x08\x00\x83\x18\"X\xf0q\x1a\xc4\x06\x00\
    \x00\x00(\x00\x00\x00\x01\x00\x00\x00b\xab\xa8 \x0e\x00\x00PK\x01\x02\x14\x03\x14\x00\x00\x00\
    \x00\x00\x83\x18\"Xxw\xa6\x0f\x0c\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\
    \x00\x00\x00\x00\xa4\x01\x00\x00\x00\x00a/k.txtPK\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00\x83\
    \x18\"X\xf0q\x1a\xc4\x06\x00\x00\x00(\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
    \x00\xa4\x011\x00\x00\x00bPK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00d\x00\x00\x00V\x00\x00\x00\
    \x00\x00";

/// Written to a pipe.
const STREAMED: &[u8] = b"PK\x03\x04\x14\x00\x08\x00\x00\x00\x83\x18\"X\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
    \x07\x00\x00\x00a/k.txtstored bytesPK\x07\x08xw\xa6\x0f\x0c\x00\x00\x00\x0c\x00\x00\x00PK\x03\
    \x04\x14\x00\x08\x00\x08\x00\x83\x18\"X\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\
    \x00\x00b\xab\xa8 \x0e\x00\x00PK\x07\x08\xf0q\x1a\xc4\x06\x00\x00\x00(\x00\x00\x00PK\x01\x02\x14\
    \x03\x14\x00\x08\x00\x00\x00\x83\x18\"Xxw\xa6\x0f\x0c\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\
    \x00\x00\x00\x00\x00\x00\x00\x00\x00\xa4\x01\x00\x00\x00\x00a/k.txtPK\x01\x02\x14\x03\x14\x00\
    \x08\x00\x08\x00\x83\x18\"X\xf0q\x1a\xc4\x06\x00\x00\x00(\x00\x00\x00\x01\x00\x00\x00\x00\x00\
    \x00\x00\x00\x00\x00\x00\xa4\x01A\x00\x00\x00bPK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00d\x00\
    \x00\x00v\x00\x00\x00\x00\x00";

/// With `force_zip64=True`.
const LARGE: &[u8] = b"PK\x03\x04-\x00\x00\x00\x00\x00\x83\x18\"Xxw\xa6\x0f\xff\xff\xff\xff\xff\xff\xff\xff\x07\x00\x14\
    \x00a/k.txt\x01\x00\x10\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00st\
    ored bytesPK\x03\x04-\x00\x00\x00\x08\x00\x83\x18\"X\xf0q\x1a\xc4\xff\xff\xff\xff\xff\xff\xff\
    \xff\x01\x00\x14\x00b\x01\x00\x10\x00(\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\
    \x00\xab\xa8 \x0e\x00\x00PK\x01\x02-\x03-\x00\x00\x00\x00\x00\x83\x18\"Xxw\xa6\x0f\x0c\x00\x00\
    \x00\x0c\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xa4\x01\x00\x00\x00\x00a\
    /k.txtPK\x01\x02-\x03-\x00\x00\x00\x08\x00\x83\x18\"X\xf0q\x1a\xc4\x06\x00\x00\x00(\x00\x00\x00\
    \x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xa4\x01E\x00\x00\x00bPK\x05\x06\x00\x00\x00\x00\
    \x02\x00\x02\x00d\x00\x00\x00~\x00\x00\x00\x00\x00";

/// After other bytes, with a comment, `force_zip64=True`, `ZIP64_LIMIT = 8` and `ZIP_FILECOUNT_LIMIT = 1`. The fields of the
/// end are those of files that exceed the real limits.
const ZIP64_END: &[u8] = b"#!python\nPK\x03\x04-\0\0\0\0\0\x83\x18\"Xxw\xa6\x0f\xff\xff\xff\xff\xff\xff\xff\xff\x07\0\x14\0a/\
    k.txt\x01\0\x10\0\x0c\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0stored bytesPK\x03\x04-\0\0\0\x08\0\x83\x18\"\
    X\xf0q\x1a\xc4\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\x14\0b\x01\0\x10\0(\0\0\0\0\0\0\0\x06\0\0\0\0\
    \0\0\0\xab\xa8 \x0e\0\0PK\x01\x02-\x03-\0\0\0\0\0\x83\x18\"Xxw\xa6\x0f\xff\xff\xff\xff\xff\xff\xff\
    \xff\x07\0\x1c\0\0\0\0\0\0\0\0\0\x80\x01\xff\xff\xff\xffa/k.txt\x01\0\x18\0\x0c\0\0\0\0\0\0\0\x0c\
    \0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0PK\x01\x02-\x03-\0\0\0\x08\0\x83\x18\"X\xf0q\x1a\xc4\xff\xff\xff\
    \xff\xff\xff\xff\xff\x01\0\x1c\0\0\0\0\0\0\0\0\0\x80\x01\xff\xff\xff\xffb\x01\0\x18\0(\0\0\0\0\0\0\
    \0\x06\0\0\0\0\0\0\0N\0\0\0\0\0\0\0PK\x06\x06,\0\0\0\0\0\0\0-\0-\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\
    \0\x02\0\0\0\0\0\0\0\x9c\0\0\0\0\0\0\0\x87\0\0\0\0\0\0\0PK\x06\x07\0\0\0\0#\x01\0\0\0\0\0\0\x01\0\
    \0\0PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x05\0wheel";

const FILES: [&[u8]; 4] = [PLAIN, STREAMED, LARGE, ZIP64_END];

fn unpacked(member: &ZipMember, file: &[u8]) -> std::io::Result<Vec<u8>> {
    let stored = &file[member.content.start as usize..member.content.end as usize];
    let mut bytes = Vec::new();
    member.unpack(stored)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn reads_members_and_their_content() {
    for file in FILES {
        // Inside of other data.
        let around = [b"before", file, b"after"].concat();
        let range = 6..6 + file.len() as u64;
        let zip = ZipFile::parse(&around[..], range).unwrap();
        let [one, two] = &zip.members[..] else {
            panic!("{zip:?}");
        };
        assert_eq!(
            (&one.name[..], one.method),
            (&b"a/k.txt"[..], ZipMethod::Stored)
        );
        assert_eq!(
            (&two.name[..], two.method),
            (&b"b"[..], ZipMethod::Deflated)
        );
        assert_eq!(unpacked(one, &around).unwrap(), b"stored bytes");
        assert_eq!(unpacked(two, &around).unwrap(), [b'x'; 40]);
    }
}

#[test]
fn checks_size_and_crc() {
    let zip = ZipFile::parse(PLAIN, 0..PLAIN.len() as u64).unwrap();
    let message = |member: &ZipMember| unpacked(member, PLAIN).unwrap_err().to_string();
    let mut member = zip.members[1].clone();
    member.size = 39;
    assert_eq!(
        message(&member),
        "the content has 0x28 bytes or more, expected 0x27"
    );
    member.size = 41;
    assert_eq!(
        message(&member),
        "the content has 0x28 bytes, expected 0x29"
    );
    let mut member = zip.members[0].clone();
    let crc = member.crc;
    member.crc = 7;
    let expected = format!("the content has CRC-32 {crc:#010x}, expected 0x00000007");
    assert_eq!(message(&member), expected);
    member.method = ZipMethod::Other(14);
    assert_eq!(message(&member), "compression method 14 is not supported");
    member.is_encrypted = true;
    assert_eq!(message(&member), "encrypted members are not supported");
}

#[test]
fn rejects_damaged_files() {
    let message = |file: &[u8]| {
        let read = ZipFile::parse(file, 0..file.len() as u64);
        read.unwrap_err().to_string()
    };
    let changed = |place: usize, byte: u8| {
        let mut file = PLAIN.to_vec();
        file[place] = byte;
        message(&file)
    };
    let end = PLAIN.len() - 22;
    assert_eq!(
        message(&PLAIN[..PLAIN.len() - 1]),
        "zip file: expected a directory at the end at offset 0xcf"
    );
    assert_eq!(
        changed(0, b'x'),
        "zip file: expected a member header at offset 0x0"
    );
    assert_eq!(
        changed(end + 4, 1),
        "zip file: files of several volumes are not supported at offset 0xba"
    );
    // Offset and size of the directory.
    let text = changed(end + 16, 0xff);
    assert!(
        text.starts_with("zip file: directory at offset 0xff with size"),
        "{text}"
    );
    assert_eq!(
        changed(end + 16, 0),
        "zip file: expected a directory entry at offset 0x0"
    );
    let entry = PLAIN.len() - 22 - 47 - 53;
    // The second entry's offset: both members are the first.
    assert_eq!(
        changed(PLAIN.len() - 22 - 5, 0),
        "zip file: the member overlaps the one before it at offset 0x0"
    );
    assert_eq!(
        changed(entry + 24, 13),
        format!(
            "zip file: size 0xd differs from the stored size 0xc of a member without compression at offset {entry:#x}"
        )
    );
}

/// Returns the file with new content of the member with that index.
fn with_new(file: &[u8], index: usize, content: &[u8]) -> Vec<u8> {
    let zip = ZipFile::parse(file, 0..file.len() as u64).unwrap();
    let mut stored = Vec::new();
    let packed = deflate(content, zip.members[index].method, &mut stored).unwrap();
    let new = NewZipContent {
        crc: packed.crc,
        size: packed.size,
        pieces: vec![Piece::Bytes(stored)],
    };
    let pieces = zip.with_new_content(file, &BTreeMap::from([(index, new)]));
    to_bytes(&pieces.unwrap(), &[file]).unwrap()
}

#[test]
fn replaces_content_and_keeps_everything_else() {
    for file in FILES {
        let new = with_new(file, 0, b"new");
        let zip = ZipFile::parse(&new[..], 0..new.len() as u64).unwrap();
        assert_eq!(unpacked(&zip.members[0], &new).unwrap(), b"new");
        assert_eq!(unpacked(&zip.members[1], &new).unwrap(), [b'x'; 40]);
        // Without the record after the content and its flag, a streamed member is as others.
        if file != STREAMED {
            assert!(with_new(file, 0, b"stored bytes") == file);
            assert!(with_new(file, 1, &[b'x'; 40]) == file);
        }
        // CRC and sizes are also in the header; `LARGE` has those of the directory in 32 bits.
        if file != LARGE {
            let fields = |start: u64| &new[start as usize..][..12];
            let ZipMember { header, entry, .. } = &zip.members[0];
            assert_eq!(fields(header + 14), fields(entry.start + 16));
        }
    }
}

#[test]
fn rejects_readers_that_claim_too_much() {
    struct TooMuch;
    impl io::Read for TooMuch {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            Ok(room.len() + 1)
        }
    }
    impl io::BufRead for TooMuch {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(&[])
        }
        fn consume(&mut self, _: usize) {}
    }
    let error = deflate(TooMuch, ZipMethod::Stored, &mut Vec::new()).unwrap_err();
    let text = "expected up to 0x20000 bytes from one read, found 0x20001";
    assert_eq!(error.to_string(), text);
    let zip = ZipFile::parse(FILES[0], 0..FILES[0].len() as u64).unwrap();
    let mut content = zip.members[0].unpack(TooMuch).unwrap();
    let error = content.read(&mut [0; 4]).unwrap_err();
    let text = "expected up to 0x4 bytes from one read, found 0x5";
    assert_eq!(error.to_string(), text);
}

#[test]
fn survives_truncations_and_changes() {
    let check = |file: &[u8]| {
        let Ok(zip) = ZipFile::parse(file, 0..file.len() as u64) else {
            return;
        };
        for member in &zip.members {
            let _ = unpacked(member, file);
        }
        let pieces = zip.with_new_content(file, &BTreeMap::new()).unwrap();
        assert!(to_bytes(&pieces, &[file]).is_some());
    };
    for file in FILES {
        for len in 0..file.len() {
            check(&file[..len]);
        }
        let mut changed = file.to_vec();
        for index in 0..file.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let before = std::mem::replace(&mut changed[index], byte);
                check(&changed);
                changed[index] = before;
            }
        }
    }
}
