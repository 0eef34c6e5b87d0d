use super::super::tests::{ONE, version_2};
use super::*;

fn parse(bytes: &[u8]) -> Result<OffloadBinary, OffloadBinaryError> {
    OffloadBinary::parse(bytes, 0, bytes.len() as u64)
}

fn message(bytes: &[u8]) -> String {
    let problem = walk(bytes, 0..bytes.len() as u64).unwrap_err().problem;
    problem.to_string()
}

/// A `u64` of [`ONE`] changed.
fn with(offset: usize, value: u64) -> Vec<u8> {
    let mut bytes = ONE.to_vec();
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// The table of what LLVM 22 makes of corrupted files. Each row that is an error there is one here;
/// so is each row that crashes it or prints nonsense.
#[test]
fn rejects_what_llvm_rejects_or_crashes_on() {
    for len in [4, 31, 32, 71, 72, 143] {
        walk(&ONE[..len], 0..len as u64).unwrap_err();
    }
    let size = ONE.len() as u64;
    let small = |size| format!("expected a size of 0x48 or more, found {size:#x}");
    for value in [0, 31, 32, 39, 40] {
        assert_eq!(message(&with(8, value)), small(value));
    }
    let past = |what: &str, offset: u64, size: u64, end: u64| {
        format!("{what} at offset {offset:#x} with size {size:#x} runs past the end at {end:#x}")
    };
    for (bytes, expected) in [
        (with(8, size + 1), past("body", 0, size + 1, size)),
        (with(8, 72), past("image", 0x90, 8, 72)),
        (with(8, size - 8), past("image", 0x90, 8, size - 8)),
        (with(8, size - 1), past("image", 0x90, 8, size - 1)),
        (
            with(16, 33),
            past("image", 0x0800_0000_0000_0000, 0x6900_0000_0000_0000, size),
        ),
        (
            with(16, size - 40),
            past("image", 0x3037_5f6d_7300, 0x474d_494f_4c4c_4548, size),
        ),
        (
            with(16, 1 << 63),
            past("image_kind of entry", 1 << 63, 2, size),
        ),
        (
            with(16, 0),
            "expected entries at its offset 0x20 or later, found 0x0".to_owned(),
        ),
        (with(0x28, size), past("string entries", size, 32, size)),
        (
            with(0x28, size + 1),
            past("string entries", size + 1, 32, size),
        ),
        (with(0x38, size), past("image", size, 8, size)),
        (with(0x38, size + 1), past("image", size + 1, 8, size)),
        (with(0x40, 1 << 20), past("image", 0x90, 1 << 20, size)),
        (with(0x30, 100), past("string entries", 0x48, 1600, size)),
        (
            with(0x48, 1 << 20),
            format!(
                "key at offset {:#x} has no NUL before the end at 0x98",
                1 << 20
            ),
        ),
    ] {
        assert_eq!(message(&bytes), expected);
    }
    let version = |number: u8| {
        let mut bytes = ONE.to_vec();
        bytes[4] = number;
        message(&bytes)
    };
    assert_eq!(version(0), "expected version 1, 2 or 3, found 0");
    // The size of the entry is taken for a count of 40.
    assert_eq!(
        version(2),
        "its size 0x98 is too small for the string entries of all entries"
    );
    assert!(
        version(3).contains("expected entries at its offset 0x28 or later"),
        "{}",
        version(3)
    );
}

#[test]
fn accepts_what_does_no_harm() {
    let size = ONE.len() as u64;
    for value in [0, size - 32, size - 31, 1000] {
        assert_eq!(parse(&with(24, value)), parse(ONE), "{value}");
    }
    for zeros in [1, 4, 8, 100] {
        let bytes = [ONE, &vec![0; zeros]].concat();
        assert_eq!(walk(&bytes[..], 0..bytes.len() as u64).unwrap().len(), 1);
    }
    let between = |zeros: usize| {
        let bytes = [ONE, &vec![0; zeros], ONE].concat();
        walk(&bytes[..], 0..bytes.len() as u64).map(|binaries| binaries.len())
    };
    assert_eq!(between(8), Ok(2));
    // The second would not be where any release looks for it.
    between(4).unwrap_err();
}

#[test]
fn rejects_headers_that_hold_less_than_they_must() {
    let mut bytes = version_2();
    bytes[0x18..0x20].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(parse(&bytes).is_err());
    // Each further entry needs its string entries.
    bytes[0x18..0x20].copy_from_slice(&3_u64.to_le_bytes());
    assert_eq!(parse(&bytes).unwrap_err().entry, Some(2));
    for size in [0, 32, 71] {
        bytes[8..16].copy_from_slice(&u64::to_le_bytes(size));
        let problem = OffloadBinaryProblem::Size { size, least: 72 };
        assert_eq!(parse(&bytes).unwrap_err().problem, problem);
    }
}

#[test]
fn reads_versions_in_one_stream() {
    let bytes = [ONE, &version_2(), ONE].concat();
    let binaries = walk(&bytes[..], 0..bytes.len() as u64).unwrap();
    let versions: Vec<OffloadBinaryVersion> =
        binaries.iter().map(|binary| binary.version).collect();
    assert_eq!(
        versions,
        [
            OffloadBinaryVersion::V1,
            OffloadBinaryVersion::V2,
            OffloadBinaryVersion::V1
        ]
    );
    assert_eq!(binaries[2].entries[0].arch(), "sm_70");
}
