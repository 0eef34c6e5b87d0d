//! The compressed bundle: a header, then the compressed bytes of a binary or text bundle.
//!
//! | version 1 | version 2 | version 3 | field                                     |
//! |----------:|----------:|----------:|-------------------------------------------|
//! |    `0x00` |    `0x00` |    `0x00` | magic, `CCOB`                             |
//! |    `0x04` |    `0x04` |    `0x04` | version, 2 bytes                          |
//! |    `0x06` |    `0x06` |    `0x06` | method, 2 bytes: 0 is zlib, 1 is zstd     |
//! |           |    `0x08` |    `0x08` | total size; 4 bytes, in version 3 eight   |
//! |    `0x08` |    `0x0c` |    `0x10` | uncompressed size; the same               |
//! |    `0x0c` |    `0x10` |    `0x18` | hash: the first 8 bytes of the MD5 digest |
//! |    `0x14` |    `0x18` |    `0x20` | compressed data                           |
//!
//! Integers are little-endian. LLVM 18 writes version 1, LLVM 19 to 21 version 2, and LLVM 22
//! version 3. All of them write zstd. [`HipRuntime`] tells which HIP runtime reads which.
//!
//! Each method has a cargo feature, `zlib` or `zstd`, so that users who need none build none.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#compressed-bundle-format>.
//! LLVM 22 ignores the total size, a wrong hash and a wrong uncompressed size; here they are
//! errors. Data after the bundle does not belong to it, as in LLVM's main branch.
//!
//! Neither reading nor writing holds the bundle in memory: [`CompressedBundle::decompress_to`] and
//! [`compress_to`] are streams, and [`CompressedBundle::contents`] decompresses only headers.

mod error;
mod header;
mod read;
#[cfg(feature = "tools")]
mod runtimes;
mod write;

use std::ops::Range;

use crate::md5::Md5;

use super::bytes::{Cursor, OutOfBounds, ReadAt, field};
use super::{magic, zstd_frame};
use header::{FixedHeader, Sizes1, Sizes2, Sizes3};

pub use super::codec::Method;
pub use error::{CompressedBundleError, CompressedBundleWriteError};
pub use header::CompressedBundleVersion;
#[cfg(feature = "tools")]
pub use runtimes::{HipRuntime, HipRuntimeError};
pub use write::{CompressedHeader, Compression, compress, compress_to};

/// The header of a compressed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressedBundle {
    /// Offset from the start of the file.
    pub offset: u64,
    /// Version of the format.
    pub version: CompressedBundleVersion,
    /// Compression method.
    pub method: Method,
    /// Total size in bytes according to the header; absent in version 1.
    pub size: Option<u64>,
    /// Uncompressed size in bytes according to the header.
    pub uncompressed_size: u64,
    /// Hash according to the header.
    pub hash: [u8; 8],
    /// The compressed data, from the start of the file. Version 1 does not record its size: zstd
    /// data ends with its last frame, zlib data with the range given to [`Self::parse`].
    pub data: Range<u64>,
}

impl CompressedBundle {
    /// Reads the header at `offset` of `data`. Ignores data at `end` and later.
    ///
    /// Accepts any input: this does not panic, and allocates nothing. Reads only the header, and in
    /// version 1 also the headers of zstd's blocks.
    ///
    /// # Errors
    ///
    /// Fails if the magic is missing, the version or method is unknown, or the total size is less than
    /// the header or exceeds `end`.
    pub fn parse<'d, R: ReadAt<'d>>(
        data: R,
        offset: u64,
        end: u64,
    ) -> Result<Self, CompressedBundleError> {
        let mut bundle = Self::read(data, offset, end)?;
        bundle.data.end = match bundle.claimed_end() {
            Some(end) => end?,
            None => bundle.frames_end(data).unwrap_or(bundle.data.end),
        };
        Ok(bundle)
    }

    /// Reads one of several consecutive bundles, like [`Self::parse`]. If the total size is missing
    /// or impossible, the bundle ends with its data; if that end is unknown too, it ends at
    /// `boundary`.
    ///
    /// To find the end of zlib data, decompresses it if its uncompressed size is within `budget`.
    pub(super) fn parse_in_sequence<'d, R: ReadAt<'d>>(
        data: R,
        offset: u64,
        end: u64,
        budget: &mut u64,
        boundary: impl FnOnce(u64) -> u64,
    ) -> Result<Self, CompressedBundleError> {
        let mut bundle = Self::read(data, offset, end)?;
        let end = match (bundle.claimed_end(), bundle.method) {
            (Some(Ok(end)), _) => Some(end),
            (_, Method::Zstd) => bundle.frames_end(data),
            (_, Method::Zlib) => budget
                .checked_sub(bundle.uncompressed_size)
                .and_then(|left| {
                    *budget = left;
                    bundle.decompress_to(data, &mut std::io::sink()).ok()
                }),
        };
        bundle.data.end = end.unwrap_or_else(|| boundary(bundle.data.start));
        Ok(bundle)
    }

    /// Returns its end according to the total size.
    fn claimed_end(&self) -> Option<Result<u64, CompressedBundleError>> {
        let (size, least) = (self.size?, self.version.header_size());
        let check = || {
            if size < least {
                return Err(CompressedBundleError::Size { size, least });
            }
            let all = OutOfBounds::check("body", self.offset, size, self.data.end);
            Ok(all.map_err(CompressedBundleError::Outside)?.end)
        };
        Some(check())
    }

    /// Reads the header; the data extends to `end`.
    fn read<'d, R: ReadAt<'d>>(
        data: R,
        offset: u64,
        end: u64,
    ) -> Result<Self, CompressedBundleError> {
        let mut cursor = Cursor::new(data, offset..end);
        let found = field(&mut cursor.clone(), "magic of header")
            .map_err(CompressedBundleError::Outside)?;
        if found != magic::COMPRESSED_BUNDLE {
            return Err(CompressedBundleError::Magic { offset, found });
        }
        let start = FixedHeader::read(&mut cursor).map_err(CompressedBundleError::Outside)?;
        let unknown = CompressedBundleError::Version {
            version: start.version,
        };
        let version = CompressedBundleVersion::from_raw(start.version).ok_or(unknown)?;
        let method = start.method;
        let method = Method::from_raw(method).ok_or(CompressedBundleError::Method { method })?;
        let (size, uncompressed_size, hash) = match version {
            CompressedBundleVersion::V1 => {
                let sizes = Sizes1::read(&mut cursor).map_err(CompressedBundleError::Outside)?;
                (None, sizes.uncompressed_size.into(), sizes.hash)
            }
            CompressedBundleVersion::V2 => {
                let sizes = Sizes2::read(&mut cursor).map_err(CompressedBundleError::Outside)?;
                let (size, uncompressed) = (sizes.size.into(), sizes.uncompressed_size.into());
                (Some(size), uncompressed, sizes.hash)
            }
            CompressedBundleVersion::V3 => {
                let sizes = Sizes3::read(&mut cursor).map_err(CompressedBundleError::Outside)?;
                (Some(sizes.size), sizes.uncompressed_size, sizes.hash)
            }
        };
        Ok(Self {
            offset,
            version,
            method,
            size,
            uncompressed_size,
            hash,
            data: cursor.position()..cursor.end(),
        })
    }

    /// Returns the end of the zstd frames at the start of the data.
    fn frames_end<'d, R: ReadAt<'d>>(&self, data: R) -> Option<u64> {
        match self.method {
            Method::Zlib => None,
            Method::Zstd => zstd_frame::end(Cursor::new(data, self.data.clone())),
        }
    }

    /// Returns its range in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.data.end
    }
}

/// Returns the bytes of a header.
fn header(
    version: CompressedBundleVersion,
    method: Method,
    size: u64,
    uncompressed_size: u64,
    hash: [u8; 8],
) -> Result<Vec<u8>, CompressedBundleWriteError> {
    let small = |size| {
        let large = CompressedBundleWriteError::TooLarge { version, size };
        u32::try_from(size).map_err(|_| large)
    };
    let mut bytes = Vec::new();
    FixedHeader {
        magic: magic::COMPRESSED_BUNDLE,
        version: version.raw(),
        method: method.raw(),
    }
    .write(&mut bytes);
    match version {
        CompressedBundleVersion::V1 => Sizes1 {
            uncompressed_size: small(uncompressed_size)?,
            hash,
        }
        .write(&mut bytes),
        CompressedBundleVersion::V2 => Sizes2 {
            size: small(size)?,
            uncompressed_size: small(uncompressed_size)?,
            hash,
        }
        .write(&mut bytes),
        CompressedBundleVersion::V3 => Sizes3 {
            size,
            uncompressed_size,
            hash,
        }
        .write(&mut bytes),
    }
    Ok(bytes)
}

fn head_of(hash: Md5) -> [u8; 8] {
    let digest = hash.finalize();
    let mut head = [0; 8];
    head.iter_mut()
        .zip(digest)
        .for_each(|(to, from)| *to = from);
    head
}

#[cfg(test)]
mod tests;
