//! Compresses images of fat binaries, each by itself.

use std::fmt;
use std::io;
use std::num::NonZeroU32;

use super::entry::FatbinCompression;
use super::layout::{ImageHeader, LZ4, ZSTD};
use crate::format::codec::{Encoder, Method, not_built};
use crate::format::lz4;

/// How images of a fat binary are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinCompressor {
    /// By LZ4, which every driver reads.
    Lz4,
    /// By Zstandard, which drivers read since CUDA 12.4 (NVIDIA's documentation of `nvcc --compress-mode`); needs the cargo
    /// feature `zstd`.
    Zstd {
        /// Level of compression, clamped to zstd's range; 3 if there is none.
        level: Option<i32>,
    },
}

impl FatbinCompressor {
    /// Compresses an image. Returns nothing if that would not make it smaller, or the image has 4 GiB or more, whose
    /// size no header has.
    ///
    /// # Errors
    ///
    /// Fails if the method is not built in, or its library fails.
    pub fn compress(self, image: &[u8]) -> Result<Option<CompressedImage>, FatbinPackError> {
        if u32::try_from(image.len()).is_err() {
            return Ok(None);
        }
        let bytes = match self {
            Self::Lz4 => lz4::compress(image),
            Self::Zstd { level } => zstd(image, level)?,
        };
        let size = u32::try_from(bytes.len()).ok();
        let size = size.filter(|_| bytes.len() < image.len());
        Ok(size.map(|size| CompressedImage {
            how: (self, size),
            bytes,
        }))
    }

    /// Returns the method.
    #[must_use]
    pub fn method(self) -> FatbinCompression {
        match self {
            Self::Lz4 => FatbinCompression::Lz4,
            Self::Zstd { .. } => FatbinCompression::Zstd,
        }
    }
}

impl ImageHeader {
    /// Returns the header for an image of `size` bytes that is stored as it is, or compressed to so many bytes.
    #[must_use]
    pub fn stored_as(self, size: u64, compressed: Option<(FatbinCompressor, u32)>) -> Self {
        let flags = self.flags & !(LZ4 | ZSTD);
        match compressed {
            None => Self {
                image_size: size.next_multiple_of(8),
                compressed_size: 0,
                flags,
                uncompressed_size: 0,
                ..self
            },
            Some((compressor, stored)) => Self {
                image_size: u64::from(stored).next_multiple_of(8),
                compressed_size: stored,
                flags: match compressor {
                    FatbinCompressor::Lz4 => flags | LZ4,
                    FatbinCompressor::Zstd { .. } => flags | ZSTD,
                },
                uncompressed_size: size,
                ..self
            },
        }
    }
}

/// A compressed image of a fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressedImage {
    /// The method, and the number of bytes, as the image's header has them.
    pub how: (FatbinCompressor, u32),
    /// The bytes.
    pub bytes: Vec<u8>,
}

fn zstd(image: &[u8], level: Option<i32>) -> Result<Vec<u8>, FatbinPackError> {
    let failed = |error: io::Error| FatbinPackError::Zstd {
        message: error.to_string(),
    };
    let size = image.len() as u64;
    let encoder = Encoder::new(Method::Zstd, level, NonZeroU32::MIN, size, Vec::new());
    let mut encoder = encoder.map_err(failed)?.ok_or(FatbinPackError::NotBuilt)?;
    encoder.write_all(image).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// Reason why an image cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinPackError {
    /// Zstandard is not built in: the cargo feature `zstd` is off.
    NotBuilt,
    /// Zstandard failed.
    Zstd {
        /// Error of the library.
        message: String,
    },
}

impl fmt::Display for FatbinPackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => not_built(Method::Zstd, f),
            Self::Zstd { message } => write!(f, "zstd cannot compress it: {message}"),
        }
    }
}

impl std::error::Error for FatbinPackError {}
