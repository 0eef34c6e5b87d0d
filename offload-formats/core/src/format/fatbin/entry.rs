//! An image of a fat binary, as its header describes it.

use std::fmt;
use std::ops::Range;

use super::layout::{
    CUBIN, HIDDEN, ImageHeader, LTO_IR, LZ4, PTX, THIS_FAMILY, THIS_PROCESSOR, ZSTD,
};

/// An image of a fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FatbinEntry {
    /// Kind of the image.
    pub kind: FatbinKind,
    /// Processor, such as `sm_80`, `sm_90a` or `sm_100f`.
    pub processor: String,
    /// Range in the file, with padding. The images of a group have the same range.
    pub image: Range<u64>,
    /// Size of the stored bytes, without padding if the image is compressed. For a group, of all its images.
    pub stored_size: u64,
    /// Size of the image in bytes.
    pub uncompressed_size: u64,
    /// Compression method; `None` if the image is stored as it is.
    pub compression: Option<FatbinCompression>,
    /// Place in the group, if several images are compressed together.
    pub group: Option<FatbinGroup>,
}

/// Place of an image in a group of images that are compressed together (`fatbinary --concat`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FatbinGroup {
    /// Range of the image in the uncompressed bytes of the group.
    pub image: Range<u64>,
    /// Size of the uncompressed group in bytes.
    pub size: u64,
}

/// Kind of an image in a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinKind {
    /// Text that the driver compiles.
    Ptx,
    /// Machine code that the driver loads.
    Cubin,
    /// Code that nvlink compiles (`-dlto`).
    LtoIr,
    /// Another kind, by number.
    Other(u16),
}

/// Compression method of an image in a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinCompression {
    /// A block of LZ4: CUDA 11 and 12, and `--compress-mode=speed` of CUDA 13.
    Lz4,
    /// A frame of Zstandard: CUDA 13.
    Zstd,
    /// Another method, by the flags of the image's header.
    Other(u64),
}

impl FatbinEntry {
    /// Returns the size of the image in the file in bytes, with padding. The images of a group share theirs by their sizes.
    #[must_use]
    pub fn size_in_file(&self) -> u64 {
        let stored = self.image.end.saturating_sub(self.image.start);
        let shared = self.group.as_ref().map(|group| {
            let part = u128::from(stored) * u128::from(self.uncompressed_size);
            let part = part.checked_div(group.size.into()).unwrap_or(0);
            // The sizes of a damaged group may exceed it.
            u64::try_from(part).map_or(stored, |part| part.min(stored))
        });
        shared.unwrap_or(stored)
    }

    /// Tells whether the stored bytes are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Returns the image of a header whose content is at `image`.
    pub(super) fn new(header: &ImageHeader, image: Range<u64>) -> Self {
        let letter = match header.flags {
            flags if flags & THIS_PROCESSOR != 0 => "a",
            flags if flags & THIS_FAMILY != 0 => "f",
            _ => "",
        };
        let compression = FatbinCompression::of(header);
        Self {
            kind: match header.kind {
                PTX => FatbinKind::Ptx,
                CUBIN => FatbinKind::Cubin,
                LTO_IR => FatbinKind::LtoIr,
                other => FatbinKind::Other(other),
            },
            processor: format!("sm_{}{letter}", header.processor),
            image,
            stored_size: match (compression, header.compressed_size) {
                (None, _) | (_, 0) => header.image_size,
                (Some(_), size) => size.into(),
            },
            uncompressed_size: match compression {
                None => header.image_size,
                Some(_) => header.uncompressed_size,
            },
            compression,
            group: None,
        }
    }
}

impl FatbinCompression {
    fn of(header: &ImageHeader) -> Option<Self> {
        let methods = LZ4 | ZSTD | HIDDEN;
        match header.flags & methods {
            LZ4 => Some(Self::Lz4),
            ZSTD => Some(Self::Zstd),
            0 if header.compressed_size == 0 && header.uncompressed_size == 0 => None,
            _ => Some(Self::Other(header.flags)),
        }
    }
}

impl fmt::Display for FatbinEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FatbinKind::Ptx => write!(f, "PTX for {}", self.processor),
            FatbinKind::Cubin => write!(f, "cubin for {}", self.processor),
            FatbinKind::LtoIr => write!(f, "LTO IR for {}", self.processor),
            FatbinKind::Other(kind) => write!(f, "kind {kind} for {}", self.processor),
        }
    }
}

impl fmt::Display for FatbinCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd => f.write_str("zstd"),
            Self::Other(flags) => write!(f, "unknown (flags {flags:#x})"),
        }
    }
}
