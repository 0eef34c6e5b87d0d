//! An offload binary as it was read.

use std::ops::Range;

use super::layout::OffloadBinaryVersion;
use super::strings::EntryStrings;
use crate::format::codec::Method;
use crate::names::{ImageKind, OffloadKind};

/// One offload binary of a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffloadBinary {
    /// From the start of the file.
    pub offset: u64,
    /// Of all, padding included; a compressed one counts none.
    pub size: u64,
    /// The version.
    pub version: OffloadBinaryVersion,
    /// Where the entries are when they have to be inflated first, by [`Self::inflate`].
    pub compressed: Option<CompressedBody>,
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
    pub strings: EntryStrings,
    /// From the start of the file.
    pub image: Range<u64>,
}

/// The body of a compressed offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedBody {
    /// By the first bytes of the data.
    pub method: Method,
    /// Of all when inflated, the header included, in bytes and as claimed.
    pub inflated_size: u64,
    /// The compressed data, from the start of the file.
    pub data: Range<u64>,
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

impl OffloadBinary {
    /// The bytes of the file that it takes up.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}
