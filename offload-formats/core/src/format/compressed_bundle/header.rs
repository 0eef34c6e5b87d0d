//! The versions of compressed bundles and the layouts of their headers.

use crate::format::bytes::record;

record! {
    pub(crate) struct FixedHeader, "header", 8 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u16,
        0x06 method: u16,
    }
}

record! {
    pub(crate) struct Sizes1, "header", 12 bytes {
        0x00 uncompressed_size: u32,
        0x04 hash: [u8; 8],
    }
}

record! {
    pub(crate) struct Sizes2, "header", 16 bytes {
        0x00 size: u32,
        0x04 uncompressed_size: u32,
        0x08 hash: [u8; 8],
    }
}

record! {
    pub(crate) struct Sizes3, "header", 24 bytes {
        0x00 size: u64,
        0x08 uncompressed_size: u64,
        0x10 hash: [u8; 8],
    }
}

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CompressedBundleVersion {
    /// LLVM 18; without the total size.
    V1,
    /// LLVM 19 to 21; sizes below 4 GiB.
    V2,
    /// LLVM 22.
    #[default]
    V3,
}

impl CompressedBundleVersion {
    /// Returns the version with that number.
    #[must_use]
    pub(crate) fn from_raw(raw: u16) -> Option<Self> {
        let all = [Self::V1, Self::V2, Self::V3];
        all.into_iter().find(|version| version.raw() == raw)
    }

    /// Returns its number.
    #[must_use]
    pub fn raw(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// Returns the version for a new bundle of `size` bytes whose runtime is unknown: 2, which every release reads that
    /// reads compressed bundles. Its sizes have 32 bits, so the largest bundles get version 3.
    #[must_use]
    pub fn for_any_runtime(size: u64) -> Self {
        // Incompressible data grow by less than this.
        let largest = size.saturating_add(size / 128).saturating_add(1024);
        match u32::try_from(largest) {
            Ok(_) => Self::V2,
            Err(_) => Self::V3,
        }
    }

    pub(super) fn header_size(self) -> u64 {
        let sizes = match self {
            Self::V1 => Sizes1::LEN,
            Self::V2 => Sizes2::LEN,
            Self::V3 => Sizes3::LEN,
        };
        FixedHeader::LEN + sizes
    }
}
