use super::{first_end, starts, unpack};
use crate::format::unpacked::Scratch;

/// Hand-assembled by RFC 8878: a single segment of 13 bytes, the raw block `abc`, and a last block of ten times `d`.
const SMALL: &[u8] = b"\x28\xb5\x2f\xfd\x20\x0d\x18\0\0abc\x53\0\0d";
/// Written by `zstd` 1.5.4 from standard input, 40 times `aaaabbbb`: a compressed block and a checksum, but no size.
const CHECKED: &[u8] =
    b"\x28\xb5\x2f\xfd\x04\x58\x7d\0\0@aaaabbbb\x01\0\x35\x53\x0b\x17\x8d\x80a\x1c";

fn unpacked(bytes: &[u8], size: u64, limit: u64) -> Result<Vec<u8>, String> {
    let scratch = Scratch::in_memory();
    let range = 0..bytes.len() as u64;
    let found = unpack(bytes, range, size, limit, &scratch);
    let found = found.map_err(|problem| problem.to_string())?;
    assert_eq!(found.size(), size);
    let bytes = found.read(&(0..size));
    bytes.ok_or_else(|| "the scratch cannot be read".to_owned())
}

#[test]
fn finds_the_end_of_the_first_frame() {
    let end = |bytes: &[u8]| first_end(bytes, 0..bytes.len() as u64);
    let all = SMALL.len() as u64;
    assert_eq!(end(SMALL), Some(all));
    assert_eq!(end(&[SMALL, SMALL, b"more"].concat()), Some(all));
    for size in 0..SMALL.len() {
        let part = SMALL.split_at(size).0;
        assert_eq!(end(part), None, "{size}");
        assert_eq!(starts(part, 0..size as u64), size >= 4);
    }
    assert!(!starts(&b"\x50\x2a\x4d\x18"[..], 0..4));
}

#[cfg(feature = "zstd")]
#[test]
fn unpacks_frames_of_the_expected_size() {
    let content = b"aaaabbbb".repeat(40);
    assert_eq!(unpacked(SMALL, 13, 13).unwrap(), b"abcdddddddddd");
    assert_eq!(unpacked(CHECKED, 320, 1000).unwrap(), content);
    for (bytes, size, limit, expected) in [
        (
            SMALL,
            13,
            12,
            "uncompressed size 0xd is more than the allowed 0xc",
        ),
        (
            SMALL,
            12,
            13,
            "expected 0xc bytes in the zstd frame, found more",
        ),
        (
            SMALL,
            14,
            20,
            "expected 0xe bytes in the zstd frame, found 0xd",
        ),
    ] {
        assert_eq!(unpacked(bytes, size, limit).unwrap_err(), expected);
    }
    for size in 0..CHECKED.len() {
        let text = unpacked(CHECKED.split_at(size).0, 320, 320).unwrap_err();
        assert!(text.starts_with("the zstd frame is damaged: "), "{text}");
    }
    // The checksum finds each change of the content.
    for index in 0..CHECKED.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut changed = CHECKED.to_vec();
            changed[index] = byte;
            if let Ok(bytes) = unpacked(&changed, 320, 320) {
                assert_eq!(bytes, content, "{index}");
            }
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn returns_errors_of_the_scratch() {
    let failing = Scratch::new(|| Err(std::io::ErrorKind::StorageFull.into()));
    let problem = unpack(SMALL, 0..SMALL.len() as u64, 13, 13, &failing).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "cannot write the content: no storage space"
    );
}

#[cfg(not(feature = "zstd"))]
#[test]
fn tells_which_feature_unpacks() {
    let text = unpacked(SMALL, 13, 13).unwrap_err();
    assert!(text.starts_with("zstd is not built in"), "{text}");
}
