//! The versions of compressed bundles and the layouts of their headers.

use crate::format::bytes::record;

record! {
    struct FixedHeader, "header", 8 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u16,
        0x06 method: u16,
    }
}

record! {
    struct Sizes1, "header", 12 bytes {
        0x00 uncompressed_size: u32,
        0x04 hash: [u8; 8],
    }
}

record! {
    struct Sizes2, "header", 16 bytes {
        0x00 size: u32,
        0x04 uncompressed_size: u32,
        0x08 hash: [u8; 8],
    }
}

record! {
    struct Sizes3, "header", 24 bytes {
        0x00 size: u64,
        0x08 uncompressed_size: u64,
        0x10 hash: [u8; 8],
    }
}

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompressedBundleVersion {
    /// LLVM 18; without the total size.
    V1,
    /// LLVM 19 to 21; sizes below 4 GiB.
    V2,
    /// LLVM 22.
    #[default]
    V3,
}

/// Each version with its number and the size of its header.
const VERSIONS: [(CompressedBundleVersion, u16, u64); 3] = [
    (
        CompressedBundleVersion::V1,
        1,
        FixedHeader::LEN + Sizes1::LEN,
    ),
    (
        CompressedBundleVersion::V2,
        2,
        FixedHeader::LEN + Sizes2::LEN,
    ),
    (
        CompressedBundleVersion::V3,
        3,
        FixedHeader::LEN + Sizes3::LEN,
    ),
];

impl CompressedBundleVersion {
    /// Returns the version with that number.
    #[must_use]
    pub fn from_raw(raw: u16) -> Option<Self> {
        let row = VERSIONS.iter().find(|(_, number, _)| *number == raw);
        row.map(|(version, _, _)| *version)
    }

    /// Returns its number.
    #[must_use]
    pub fn raw(self) -> u16 {
        self.row().1
    }

    pub(super) fn header_size(self) -> u64 {
        self.row().2
    }

    fn row(self) -> (Self, u16, u64) {
        let row = VERSIONS.iter().find(|(version, _, _)| *version == self);
        row.copied().unwrap_or((self, 0, 0))
    }
}
