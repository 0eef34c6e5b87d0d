//! Decompresses images of fat binaries.

use std::fmt;
use std::io::Read as _;
use std::ops::Range;

use super::entry::{FatbinCompression, FatbinEntry};
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};
use crate::format::codec::{BUFFER, Decoder, Method, OnceStream, not_built};
use crate::format::lz4::{self, Lz4Error};

/// Reads the images of a file's fat binaries, compressed or not.
///
/// It keeps the bytes that it read last, so the images of a group in file order are decompressed once. Each read is
/// [`ReadAt::read_once`]: no cache keeps an image.
#[derive(Clone, Debug)]
pub struct FatbinUnpacker<R> {
    data: R,
    limit: u64,
    last: Option<UnpackedBytes>,
}

/// The bytes that a [`FatbinUnpacker`] read last: of an image, or of a group. Another one for the same data can use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedBytes {
    /// Range of the stored bytes in the data.
    range: Range<u64>,
    compression: Option<FatbinCompression>,
    bytes: Vec<u8>,
}

impl<'d, R: ReadAt<'d>> FatbinUnpacker<R> {
    /// Creates a reader of images in `data`. `limit` is the maximum size of decompressed bytes that it keeps in memory.
    pub fn new(data: R, limit: u64) -> Self {
        Self {
            data,
            limit,
            last: None,
        }
    }

    /// Uses bytes that an unpacker for the same data has read.
    #[must_use]
    pub fn with_last(self, last: Option<UnpackedBytes>) -> Self {
        Self { last, ..self }
    }

    /// Returns the bytes that were read last.
    #[must_use]
    pub fn into_last(self) -> Option<UnpackedBytes> {
        self.last
    }

    /// Returns the bytes of an image. PTX ends with a NUL, and other images that are stored uncompressed or in a
    /// group are padded to 8 with zeros.
    ///
    /// # Errors
    ///
    /// Fails if the image is outside of the file, its compression method is unknown or not built in, it is larger
    /// than the limit, or the stored bytes are damaged.
    pub fn image(&mut self, entry: &FatbinEntry) -> Result<&[u8], FatbinUnpackError> {
        self.read(entry)?.image(entry)
    }

    /// Returns the bytes of all images that are stored together with that of `entry`.
    ///
    /// # Errors
    ///
    /// Those of [`image`](Self::image).
    pub fn whole(&mut self, entry: &FatbinEntry) -> Result<&[u8], FatbinUnpackError> {
        Ok(&self.read(entry)?.bytes)
    }

    fn read(&mut self, entry: &FatbinEntry) -> Result<&UnpackedBytes, FatbinUnpackError> {
        let range = entry.image.clone();
        // Other bytes go first.
        let compression = entry.compression;
        let is_same = |kept: &UnpackedBytes| kept.range == range && kept.compression == compression;
        let bytes = match (self.last.take().filter(is_same), compression) {
            (Some(kept), _) => kept.bytes,
            (None, Some(compression)) => self.decompress(entry, compression)?,
            (None, None) => self.stored(range.clone(), "image")?,
        };
        Ok(self.last.insert(UnpackedBytes {
            range,
            compression,
            bytes,
        }))
    }

    /// Reads a range of the data, which does not keep it.
    fn stored(&self, range: Range<u64>, what: &'static str) -> Result<Vec<u8>, FatbinUnpackError> {
        let (start, size) = (range.start, range.end.saturating_sub(range.start));
        let mut cursor = Cursor::new(self.data, range);
        OutOfBounds::check(what, start, size, cursor.end()).map_err(FatbinUnpackError::Outside)?;
        let mut bytes = Vec::new();
        let length = usize::try_from(size).ok();
        let length = length.filter(|length| bytes.try_reserve_exact(*length).is_ok());
        bytes.resize(length.ok_or(FatbinUnpackError::Memory { size })?, 0);
        let read = cursor.read_once(&mut bytes, what);
        read.map_err(FatbinUnpackError::Outside)?;
        Ok(bytes)
    }

    fn decompress(
        &self,
        entry: &FatbinEntry,
        compression: FatbinCompression,
    ) -> Result<Vec<u8>, FatbinUnpackError> {
        let group = entry.group.as_ref();
        let size = group.map_or(entry.uncompressed_size, |group| group.size);
        let limit = self.limit;
        let memory = usize::try_from(size).ok().filter(|_| size <= limit);
        let memory = memory.ok_or(FatbinUnpackError::Limit { size, limit })?;
        let start = entry.image.start;
        let end = entry.image.end;
        let stored = OutOfBounds::check("stored image", start, entry.stored_size, end)
            .map_err(FatbinUnpackError::Outside)?;
        match compression {
            FatbinCompression::Lz4 => {
                let block = self.stored(stored, "stored image")?;
                lz4::decompress(&block, memory).map_err(|problem| lz4_error(problem, size))
            }
            FatbinCompression::Zstd => self.zstd(stored, size),
            FatbinCompression::Other(flags) => Err(FatbinUnpackError::Method { flags }),
        }
    }

    fn zstd(&self, stored: Range<u64>, size: u64) -> Result<Vec<u8>, FatbinUnpackError> {
        let damaged = |error: std::io::Error| FatbinUnpackError::Zstd {
            message: error.to_string(),
        };
        let source = OnceStream::new(Cursor::new(self.data, stored));
        let decoder = Decoder::new(Method::Zstd, source).map_err(damaged)?;
        let mut decoder = decoder.ok_or(FatbinUnpackError::NotBuilt)?;
        let (mut bytes, mut part) = (Vec::new(), vec![0; BUFFER]);
        loop {
            let count = decoder.read(&mut part).map_err(damaged)?;
            let read = part.get(..count).expect("`read` returns at most its room");
            bytes.extend_from_slice(read);
            let found = bytes.len() as u64;
            if found > size {
                return Err(FatbinUnpackError::Longer { expected: size });
            }
            if count == 0 {
                return match found == size {
                    true => Ok(bytes),
                    false => Err(FatbinUnpackError::Shorter {
                        expected: size,
                        found,
                    }),
                };
            }
        }
    }
}

impl UnpackedBytes {
    /// Returns the image of `entry`, if these are the bytes that it is stored in.
    ///
    /// # Errors
    ///
    /// Fails if the image exceeds its group.
    pub fn image(&self, entry: &FatbinEntry) -> Result<&[u8], FatbinUnpackError> {
        let bytes = self.bytes.as_slice();
        let Some(group) = &entry.group else {
            return Ok(bytes);
        };
        let size = group.image.end.saturating_sub(group.image.start);
        let image = Cursor::new(bytes, group.image.clone()).read(size, "image");
        image.map_err(FatbinUnpackError::Outside)
    }
}

fn lz4_error(problem: Lz4Error, expected: u64) -> FatbinUnpackError {
    match problem {
        Lz4Error::Cut { offset } | Lz4Error::Offset { offset } => FatbinUnpackError::Lz4 {
            offset: offset as u64,
        },
        Lz4Error::Longer => FatbinUnpackError::Longer { expected },
        Lz4Error::Shorter { found } => FatbinUnpackError::Shorter {
            expected,
            found: found as u64,
        },
    }
}

/// Reason why an image of a fat binary cannot be unpacked. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinUnpackError {
    /// The image exceeds the file or its group.
    Outside(OutOfBounds),
    /// The compression method is unknown.
    Method {
        /// Flags of the image's header.
        flags: u64,
    },
    /// Zstandard is not built in: the cargo feature `zstd` is off.
    NotBuilt,
    /// The uncompressed size exceeds the caller's limit.
    Limit {
        /// Uncompressed size in the header.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The system has no memory for the stored bytes.
    Memory {
        /// Their size.
        size: u64,
    },
    /// The block of LZ4 is damaged.
    Lz4 {
        /// Offset from the start of the stored image.
        offset: u64,
    },
    /// The frame of Zstandard is damaged.
    Zstd {
        /// Error of the library.
        message: String,
    },
    /// The data is larger than the uncompressed size.
    Longer {
        /// Uncompressed size in the header.
        expected: u64,
    },
    /// The data is smaller than the uncompressed size.
    Shorter {
        /// Uncompressed size in the header.
        expected: u64,
        /// Size of the data.
        found: u64,
    },
}

impl fmt::Display for FatbinUnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::Method { flags } => write!(
                f,
                "the compression method is unknown (flags {flags:#x}; lz4 and zstd are supported)"
            ),
            Self::NotBuilt => not_built(Method::Zstd, f),
            Self::Limit { size, limit } => write!(
                f,
                "the uncompressed size {size:#x} exceeds the limit {limit:#x}"
            ),
            Self::Memory { size } => write!(f, "there is no memory for {size:#x} bytes"),
            Self::Lz4 { offset } => write!(f, "the LZ4 block is damaged at offset {offset:#x}"),
            Self::Zstd { message } => write!(f, "the zstd frame is damaged: {message}"),
            Self::Longer { expected } => {
                write!(f, "expected {expected:#x} uncompressed bytes, found more")
            }
            Self::Shorter { expected, found } => write!(
                f,
                "expected {expected:#x} uncompressed bytes, found {found:#x}"
            ),
        }
    }
}

impl std::error::Error for FatbinUnpackError {}
