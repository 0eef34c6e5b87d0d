//! What some bytes are, by their first bytes. No other module compares magics to decide that.

use std::ops::Range;

use object::ReadRef;

use super::bytes::Cursor;

/// What a file, member or section holds, as far as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Magic {
    /// ELF of any class and byte order.
    Elf,
    /// One or more offload binaries.
    OffloadBinary,
    /// One or more bundles.
    Bundle,
    /// A compressed bundle.
    CompressedBundle,
    /// An ar archive that holds its members.
    Archive,
    /// An ar archive that names the files of its members.
    ThinArchive,
    /// An archive of AIX.
    BigArchive,
    /// LLVM bitcode, bare or in its wrapper.
    Bitcode,
    /// None of these.
    Unknown,
}

const MAGICS: [(&[u8], Magic); 9] = [
    (b"\x7fELF", Magic::Elf),
    (b"\x10\xff\x10\xad", Magic::OffloadBinary),
    (b"__CLANG_OFFLOAD_BUNDLE__", Magic::Bundle),
    (b"CCOB", Magic::CompressedBundle),
    (b"!<arch>\n", Magic::Archive),
    (b"!<thin>\n", Magic::ThinArchive),
    (b"<bigaf>\n", Magic::BigArchive),
    (b"BC\xc0\xde", Magic::Bitcode),
    (b"\xde\xc0\x17\x0b", Magic::Bitcode),
];

impl Magic {
    /// How many bytes are enough to tell.
    pub const LEN: usize = 24;

    /// What starts with `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let row = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic));
        row.map_or(Self::Unknown, |(_, kind)| *kind)
    }

    /// What starts at the start of a range of `data`; no more than [`Self::LEN`] bytes are read.
    pub fn at<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> Self {
        let mut cursor = Cursor::new(data, range);
        let rest = cursor.end().saturating_sub(cursor.position());
        let bytes = cursor.read(rest.min(Self::LEN as u64), "magic");
        Self::of(bytes.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_magic_and_no_part_of_one() {
        for (bytes, kind) in MAGICS {
            assert!(bytes.len() <= Magic::LEN);
            assert_eq!(Magic::of(bytes), kind);
            assert_eq!(Magic::of(&[bytes, b"more"].concat()), kind);
            assert_eq!(Magic::of(&bytes[..bytes.len() - 1]), Magic::Unknown);
            assert_eq!(Magic::at(&[b"xx", bytes].concat()[..], 2..99), kind);
        }
        assert_eq!(Magic::of(b""), Magic::Unknown);
    }
}
