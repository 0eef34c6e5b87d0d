//! The compressed bundle: a bundle, binary or text, behind a header.
//!
//! | version 1 | version 2 | version 3 | field                                     |
//! |----------:|----------:|----------:|-------------------------------------------|
//! |    `0x00` |    `0x00` |    `0x00` | magic, `CCOB`                             |
//! |    `0x04` |    `0x04` |    `0x04` | version, 2 bytes                          |
//! |    `0x06` |    `0x06` |    `0x06` | method, 2 bytes: 0 is zlib, 1 is zstd     |
//! |           |    `0x08` |    `0x08` | size of all; 4 bytes, in version 3 eight  |
//! |    `0x08` |    `0x0c` |    `0x10` | uncompressed size; the same               |
//! |    `0x0c` |    `0x10` |    `0x18` | hash: the first 8 bytes of the MD5 digest |
//! |    `0x14` |    `0x18` |    `0x20` | compressed data                           |
//!
//! Integers are little-endian. LLVM 18 writes version 1, LLVM 19 to 21 version 2, and LLVM 22
//! version 3, which HIP runtimes before ROCm 7 do not read. All of them write zstd.
//!
//! The methods are behind the cargo features `zlib` and `zstd`, so that those who need none build
//! none.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#compressed-bundle-format>.
//! LLVM 22 ignores the size of all, and a wrong hash or uncompressed size; here they are errors.
//! Bytes that follow a bundle of version 2 or 3 are no part of it, as in LLVM's main branch.

mod codec;
mod error;

use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;

use md5::{Digest, Md5};
use object::ReadRef;

use super::bytes::{Cursor, OutOfBounds, field, record};

pub use error::{Error, WriteError};

const MAGIC: [u8; 4] = *b"CCOB";

record! {
    struct Start, "header", 8 bytes {
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
pub enum Version {
    /// Of LLVM 18; the size of all is not in the file.
    V1,
    /// Of LLVM 19 to 21; sizes below 4 GiB.
    V2,
    /// Of LLVM 22.
    #[default]
    V3,
}

/// Version, number, size of the header.
const VERSIONS: [(Version, u16, u64); 3] = [
    (Version::V1, 1, Start::LEN + Sizes1::LEN),
    (Version::V2, 2, Start::LEN + Sizes2::LEN),
    (Version::V3, 3, Start::LEN + Sizes3::LEN),
];

impl Version {
    /// The version with that number.
    #[must_use]
    pub fn from_raw(raw: u16) -> Option<Self> {
        let row = VERSIONS.iter().find(|(_, number, _)| *number == raw);
        row.map(|(version, _, _)| *version)
    }

    /// Its number.
    #[must_use]
    pub fn raw(self) -> u16 {
        self.row().1
    }

    fn header_size(self) -> u64 {
        self.row().2
    }

    fn row(self) -> (Self, u16, u64) {
        let row = VERSIONS.iter().find(|(version, _, _)| *version == self);
        row.copied().unwrap_or((self, 0, 0))
    }
}

/// How the data is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A zlib stream; cargo feature `zlib`.
    Zlib,
    /// Zstandard frames; cargo feature `zstd`.
    #[default]
    Zstd,
}

/// Method, number, name of it and of its cargo feature.
const METHODS: [(Method, u16, &str); 2] = [(Method::Zlib, 0, "zlib"), (Method::Zstd, 1, "zstd")];

impl Method {
    /// The method with that number.
    #[must_use]
    pub fn from_raw(raw: u16) -> Option<Self> {
        let row = METHODS.iter().find(|(_, number, _)| *number == raw);
        row.map(|(method, _, _)| *method)
    }

    /// Its number.
    #[must_use]
    pub fn raw(self) -> u16 {
        self.row().1
    }

    /// Its name, such as `zstd`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (Self, u16, &'static str) {
        let row = METHODS.iter().find(|(method, _, _)| *method == self);
        row.copied().unwrap_or((self, 0, ""))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The header of a compressed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedBundle {
    /// From the start of the file.
    pub offset: u64,
    /// The version.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// As claimed, in bytes.
    pub uncompressed_size: u64,
    /// As claimed.
    pub hash: [u8; 8],
    /// The compressed data, from the start of the file. In version 1, whose size is not in the
    /// file, all that was given to [`Self::parse`].
    pub data: Range<u64>,
}

impl CompressedBundle {
    /// Reads the header at `offset` of `data`; nothing at `end` or later belongs to it.
    ///
    /// Any input may be given: this does not panic, and allocates nothing.
    ///
    /// # Errors
    ///
    /// When the magic is absent, version or method is unknown, or the size of all does not lie
    /// between that of the header and `end`.
    pub fn parse<'d, R: ReadRef<'d>>(data: R, offset: u64, end: u64) -> Result<Self, Error> {
        let mut cursor = Cursor::new(data, offset..end);
        let end = cursor.end();
        let found = field(&mut cursor.clone(), "magic of header").map_err(Error::Outside)?;
        if found != MAGIC {
            return Err(Error::Magic { offset, found });
        }
        let start = Start::read(&mut cursor).map_err(Error::Outside)?;
        let unknown = Error::Version {
            version: start.version,
        };
        let version = Version::from_raw(start.version).ok_or(unknown)?;
        let method = start.method;
        let method = Method::from_raw(method).ok_or(Error::Method { method })?;
        let (size, uncompressed_size, hash) = match version {
            Version::V1 => {
                let sizes = Sizes1::read(&mut cursor).map_err(Error::Outside)?;
                let size = end.saturating_sub(offset);
                (size, sizes.uncompressed_size.into(), sizes.hash)
            }
            Version::V2 => {
                let sizes = Sizes2::read(&mut cursor).map_err(Error::Outside)?;
                let (size, uncompressed) = (sizes.size.into(), sizes.uncompressed_size.into());
                (size, uncompressed, sizes.hash)
            }
            Version::V3 => {
                let sizes = Sizes3::read(&mut cursor).map_err(Error::Outside)?;
                (sizes.size, sizes.uncompressed_size, sizes.hash)
            }
        };
        let least = version.header_size();
        if size < least {
            return Err(Error::Size { size, least });
        }
        let all = OutOfBounds::check("body", offset, size, end).map_err(Error::Outside)?;
        Ok(Self {
            offset,
            version,
            method,
            uncompressed_size,
            hash,
            data: cursor.position()..all.end,
        })
    }

    /// The bytes of the file that it takes up.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.data.end
    }

    /// Decompresses the data of the file that it was read from, to `out`, and compares size and
    /// hash; an error may come after output.
    ///
    /// No more than the claimed size is written, and memory grows with what is decompressed, not
    /// with what is claimed. Whoever trusts no claim compares [`Self::uncompressed_size`] first.
    ///
    /// # Errors
    ///
    /// When the data is damaged, or has another size or hash; when `out` fails; when the method
    /// is not built in.
    pub fn decompress_to<'d, R: ReadRef<'d> + 'd>(
        &self,
        data: R,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        let mut stream = codec::decoder(self, data)?;
        let (mut hash, mut written) = (Md5::new(), 0_u64);
        let mut buffer = vec![0; codec::BUFFER];
        let claimed = self.uncompressed_size;
        // One byte more than claimed is asked for, to see that there is none. Not of zstd in version
        // 1, whose end is not known: what follows there it would take for a damaged frame.
        let open = (self.version, self.method) == (Version::V1, Method::Zstd);
        let more = u64::from(!open);
        loop {
            let left = claimed.saturating_sub(written).saturating_add(more);
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let room = buffer.get_mut(..left.min(codec::BUFFER));
            let room = room.unwrap_or_default();
            let count = stream.read(room).map_err(|problem| Error::Data {
                message: problem.to_string(),
            })?;
            if count == 0 {
                break;
            }
            written = written.saturating_add(count as u64);
            if written > claimed {
                return Err(Error::Longer { claimed });
            }
            let bytes = room.get(..count).unwrap_or_default();
            hash.update(bytes);
            out.write_all(bytes).map_err(|problem| Error::Output {
                kind: problem.kind(),
            })?;
        }
        if written < claimed {
            return Err(Error::Shorter {
                claimed,
                found: written,
            });
        }
        let found = head_of(hash);
        if found != self.hash {
            let claimed = self.hash;
            return Err(Error::Hash { claimed, found });
        }
        Ok(())
    }

    /// The bundle, for those who want it in memory.
    ///
    /// # Errors
    ///
    /// Those of [`Self::decompress_to`], and when the claimed size is more than `limit`.
    pub fn decompress<'d, R: ReadRef<'d> + 'd>(
        &self,
        data: R,
        limit: u64,
    ) -> Result<Vec<u8>, Error> {
        let claimed = self.uncompressed_size;
        if claimed > limit {
            return Err(Error::Limit { claimed, limit });
        }
        let mut bundle = Vec::new();
        self.decompress_to(data, &mut bundle)?;
        Ok(bundle)
    }
}

/// How to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Version 3 when not said, as LLVM 22.
    pub version: Version,
    /// Zstd when not said, as LLVM.
    pub method: Method,
    /// What the method calls so, brought into its range; when not said 3 for zstd and 6 for zlib,
    /// as LLVM.
    pub level: Option<i32>,
}

/// Compresses a bundle, binary or text.
///
/// With zstd this is what LLVM writes when it uses the same version of that library.
///
/// # Errors
///
/// When the method is not built in, or a size is too large for the version.
pub fn compress(bundle: &[u8], how: Compression) -> Result<Vec<u8>, WriteError> {
    let Compression {
        version, method, ..
    } = how;
    let data = codec::compress(bundle, how)?;
    let uncompressed_size = bundle.len() as u64;
    let size = version.header_size() + data.len() as u64;
    let hash = head_of(Md5::new_with_prefix(bundle));
    let small = |size| {
        let large = WriteError::TooLarge { version, size };
        u32::try_from(size).map_err(|_| large)
    };
    let mut bytes = Vec::new();
    Start {
        magic: MAGIC,
        version: version.raw(),
        method: method.raw(),
    }
    .write(&mut bytes);
    match version {
        Version::V1 => Sizes1 {
            uncompressed_size: small(uncompressed_size)?,
            hash,
        }
        .write(&mut bytes),
        Version::V2 => Sizes2 {
            size: small(size)?,
            uncompressed_size: small(uncompressed_size)?,
            hash,
        }
        .write(&mut bytes),
        Version::V3 => Sizes3 {
            size,
            uncompressed_size,
            hash,
        }
        .write(&mut bytes),
    }
    bytes.extend_from_slice(&data);
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
