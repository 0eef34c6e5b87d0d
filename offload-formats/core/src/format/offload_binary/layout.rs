//! The records of an offload binary, and the differences between versions.

use crate::format::bytes::record;
use crate::names::LlvmRelease;

pub(super) const MAGIC: [u8; 4] = *b"\x10\xff\x10\xad";

record! {
    pub(crate) struct BinaryHeader, "header", 32 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u32,
        0x08 size: u64,
        0x10 entries_offset: u64,
        0x18 entries: u64,
    }
}

// Additional fields of version 3.
record! {
    pub(crate) struct HeaderEnd, "header", 8 bytes {
        0x00 inflated_size: u64,
    }
}

record! {
    pub(crate) struct EntryRecord, "entry", 40 bytes {
        0x00 image_kind: u16,
        0x02 offload_kind: u16,
        0x04 flags: u32,
        0x08 strings_offset: u64,
        0x10 string_count: u64,
        0x18 image_offset: u64,
        0x20 image_size: u64,
    }
}

record! {
    pub(crate) struct StringRecord, "string entry", 16 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
    }
}

record! {
    pub(crate) struct SizedStringRecord, "string entry", 24 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
        0x10 value_size: u64,
    }
}

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OffloadBinaryVersion {
    /// LLVM 15 to 22, read by all later releases; one image.
    #[default]
    V1,
    /// LLVM 23; any number of images, and values that contain NUL.
    V2,
    /// The main branch; optionally compressed.
    V3,
}

impl OffloadBinaryVersion {
    /// Returns the version that the tools of a release write.
    #[must_use]
    pub fn of(release: LlvmRelease) -> Self {
        match release {
            LlvmRelease::Main => Self::V3,
            LlvmRelease::V23 => Self::V2,
            _ => Self::V1,
        }
    }

    /// Returns the version with that number.
    #[must_use]
    #[doc(hidden)]
    pub fn from_raw(raw: u32) -> Option<Self> {
        let all = [Self::V1, Self::V2, Self::V3];
        all.into_iter().find(|version| version.raw() == raw)
    }

    /// Returns its number.
    #[must_use]
    pub(crate) fn raw(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    pub(super) fn header_size(self) -> u64 {
        match self {
            Self::V1 | Self::V2 => BinaryHeader::LEN,
            Self::V3 => BinaryHeader::LEN + HeaderEnd::LEN,
        }
    }

    /// Returns the size of a string entry in bytes.
    pub(super) fn string_entry_size(self) -> u64 {
        match self {
            Self::V1 => StringRecord::LEN,
            Self::V2 | Self::V3 => SizedStringRecord::LEN,
        }
    }
}
