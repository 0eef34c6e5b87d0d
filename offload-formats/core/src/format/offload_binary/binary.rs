//! An offload binary that was read.

use std::ops::Range;

use super::layout::OffloadBinaryVersion;
use super::strings::EntryStrings;
use crate::format::codec::Method;
use crate::names::{ImageKind, OffloadKind};

/// An offload binary in a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffloadBinary {
    /// Offset from the start of the file.
    pub offset: u64,
    /// Size with padding; the size of a compressed one excludes padding.
    pub size: u64,
    /// The version.
    pub version: OffloadBinaryVersion,
    /// The body, if [`Self::inflate`] must inflate it before its entries can be read.
    pub compressed: Option<CompressedBody>,
    /// Entries: one in version 1, none if compressed.
    pub entries: Vec<BinaryEntry>,
}

/// An image in an offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinaryEntry {
    /// Kind of the image, as written.
    pub image_kind: ImageKind,
    /// Runtime that manages the image.
    pub offload_kind: OffloadKind,
    /// Bit 0: there are strings but no image. Other bits have no meaning yet.
    pub flags: u32,
    /// Properties of the image.
    pub strings: EntryStrings,
    /// Range from the start of the file.
    pub image: Range<u64>,
}

/// The body of a compressed offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressedBody {
    /// Method, detected from the first bytes of the data.
    pub method: Method,
    /// Size of the inflated offload binary with its header in bytes, according to the header.
    pub inflated_size: u64,
    /// The compressed data, from the start of the file.
    pub data: Range<u64>,
}

impl BinaryEntry {
    /// Flag of an entry that has strings but no image; since LLVM 23.
    pub const METADATA: u32 = 1;

    /// Returns the target triple as written, or an empty string.
    #[must_use]
    pub fn triple(&self) -> &str {
        self.text("triple")
    }

    /// Returns the processor or target ID as written, or an empty string.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.text("arch")
    }

    fn text(&self, key: &str) -> &str {
        self.strings.value(key).map_or("", |value| {
            std::str::from_utf8(value).expect("`parse` rejects other values of these keys")
        })
    }
}

impl OffloadBinary {
    /// Returns its range in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}
