//! The offload binary: images, who they are for, and strings about them.
//!
//! | version 1, 2 | version 3 | size | field                                                     |
//! |-------------:|----------:|-----:|-----------------------------------------------------------|
//! |       `0x00` |    `0x00` |    4 | magic, `10 FF 10 AD`                                      |
//! |       `0x04` |    `0x04` |    4 | version                                                   |
//! |       `0x08` |    `0x08` |    8 | size of all; a multiple of 8, but when compressed         |
//! |       `0x10` |    `0x10` |    8 | offset of the entries                                     |
//! |       `0x18` |    `0x18` |    8 | number of entries; in version 1 the size of the one entry |
//! |              |    `0x20` |    8 | 0; of a compressed one, the size of all before            |
//! |              |           |      | then each entry:                                          |
//! |         `+0` |      `+0` |    2 | image kind                                                |
//! |         `+2` |      `+2` |    2 | offload kind                                              |
//! |         `+4` |      `+4` |    4 | flags; bit 0: there are strings but no image              |
//! |         `+8` |      `+8` |    8 | offset of the string entries                              |
//! |        `+16` |     `+16` |    8 | number of string entries                                  |
//! |        `+24` |     `+24` |    8 | offset of the image, in version 1 a multiple of 8         |
//! |        `+32` |     `+32` |    8 | size of the image                                         |
//! |              |           |      | then each string entry:                                   |
//! |         `+0` |      `+0` |    8 | offset of the key, which ends in NUL                      |
//! |         `+8` |      `+8` |    8 | offset of the value, which in version 1 ends in NUL       |
//! |              |     `+16` |    8 | versions 2 and 3: size of the value, which may contain NUL |
//! |              |           |      | then the strings, and the images                          |
//!
//! Integers are little-endian, offsets are from the first byte of the offload binary. Version 1
//! is what LLVM 15 to 22 write, and all releases read; version 2 is LLVM 23's, version 3 that of
//! the main branch. HIP was number 3 up to LLVM 20 and is 4 since, without a new version.
//!
//! In a compressed one, all behind the header is a zlib stream or a zstd frame, and offsets are
//! those of before: see [`Compressed`].
//!
//! Offload binaries are concatenated: by the packager, and by linkers that put sections together.
//!
//! Specification: <https://llvm.org/docs/CommandGuide/llvm-offload-binary.html>, which still shows
//! the old numbers. Where we differ from LLVM: `docs/differences.md#offload-binary`.

mod compressed;
mod error;
#[cfg(feature = "tools")]
mod pair_order;
mod read;
mod strings;
mod write;

use std::ops::Range;

use object::ReadRef;

use super::bytes::record;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

pub use super::codec::Method;
pub use compressed::{Compressed, compress};
pub use error::{Error, InflateError, Problem, WriteError};
#[cfg(feature = "tools")]
pub use pair_order::{PackagerMap, pair_order};
pub use read::walk;
pub use strings::Strings;
pub use write::{BinaryImage, NewEntry, layout};

const MAGIC: [u8; 4] = *b"\x10\xff\x10\xad";

record! {
    struct Header, "header", 32 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u32,
        0x08 size: u64,
        0x10 entries_offset: u64,
        0x18 entries: u64,
    }
}

// What version 3 has besides.
record! {
    struct HeaderEnd, "header", 8 bytes {
        0x00 inflated_size: u64,
    }
}

record! {
    struct EntryRecord, "entry", 40 bytes {
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
    struct StringRecord, "string entry", 16 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
    }
}

record! {
    struct SizedStringRecord, "string entry", 24 bytes {
        0x00 key_offset: u64,
        0x08 value_offset: u64,
        0x10 value_size: u64,
    }
}

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Of LLVM 15 to 22, and read by all releases since; one image.
    #[default]
    V1,
    /// Of LLVM 23; any number of images, and values that contain NUL.
    V2,
    /// Of the main branch; perhaps compressed.
    V3,
}

/// Version, number, size of the header, size of a string entry.
const VERSIONS: [(Version, u32, u64, u64); 3] = [
    (Version::V1, 1, Header::LEN, StringRecord::LEN),
    (Version::V2, 2, Header::LEN, SizedStringRecord::LEN),
    (
        Version::V3,
        3,
        Header::LEN + HeaderEnd::LEN,
        SizedStringRecord::LEN,
    ),
];

impl Version {
    /// The version that the tools of a release write.
    #[must_use]
    pub fn of(release: LlvmRelease) -> Self {
        match release {
            LlvmRelease::Main => Self::V3,
            LlvmRelease::V23 => Self::V2,
            _ => Self::V1,
        }
    }

    /// The version with that number.
    #[must_use]
    pub fn from_raw(raw: u32) -> Option<Self> {
        let row = VERSIONS.iter().find(|(_, number, ..)| *number == raw);
        row.map(|(version, ..)| *version)
    }

    /// Its number.
    #[must_use]
    pub fn raw(self) -> u32 {
        self.row().1
    }

    fn header_size(self) -> u64 {
        self.row().2
    }

    /// In bytes.
    fn string_entry_size(self) -> u64 {
        self.row().3
    }

    fn row(self) -> (Self, u32, u64, u64) {
        let row = VERSIONS.iter().find(|(version, ..)| *version == self);
        row.copied()
            .unwrap_or((self, 0, Header::LEN, StringRecord::LEN))
    }
}

/// One offload binary of a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffloadBinary {
    /// From the start of the file.
    pub offset: u64,
    /// Of all, padding included; a compressed one counts none.
    pub size: u64,
    /// The version.
    pub version: Version,
    /// Where the entries are when they have to be inflated first, by [`Self::inflate`].
    pub compressed: Option<Compressed>,
    /// One in version 1; none in a compressed one.
    pub entries: Vec<BinaryEntry>,
}

/// An image in an offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryEntry {
    /// What the image is said to be.
    pub image_kind: ImageKind,
    /// Who manages the image.
    pub offload_kind: OffloadKind,
    /// Bit 0: there is no image, only strings. The others have no meaning yet.
    pub flags: u32,
    /// What is said about the image.
    pub strings: Strings,
    /// From the start of the file.
    pub image: Range<u64>,
}

impl OffloadBinary {
    /// Reads the offload binary at `offset` of `data`; nothing at `end` or later belongs to it.
    ///
    /// Any input may be given: this does not panic, and allocates at most a small multiple of
    /// what it reads. Images are not read, and nothing is inflated.
    ///
    /// # Errors
    ///
    /// When the magic is absent, the version is not 1, 2 or 3, or anything lies outside of the
    /// offload binary.
    pub fn parse<'d, R: ReadRef<'d>>(data: R, offset: u64, end: u64) -> Result<Self, Error> {
        read::parse(data, offset, end).map_err(|(entry, problem)| Error {
            index: 0,
            entry,
            problem,
        })
    }

    /// The bytes of the file that it takes up.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

impl BinaryEntry {
    /// The flag of an entry that has strings but no image; since LLVM 23.
    pub const METADATA: u32 = 1;

    /// The target triple, as written; empty when there is none.
    #[must_use]
    pub fn triple(&self) -> &str {
        self.text("triple")
    }

    /// The processor or target ID, as written; empty when there is none.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.text("arch")
    }

    fn text(&self, key: &str) -> &str {
        // `parse` has refused what is not UTF-8 under these keys.
        let value = self.strings.value(key).map(std::str::from_utf8);
        value.and_then(Result::ok).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
