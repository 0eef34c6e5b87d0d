//! Compressed bundles written: as the bundle comes, none of it kept.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU32;

use md5::{Digest, Md5};

use super::{CompressedBundleVersion, CompressedBundleWriteError, Method, head_of, header};
use crate::format::codec::{self, Encoder};

/// How to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Version 3 when not said, as LLVM 22.
    pub version: CompressedBundleVersion,
    /// Zstd when not said, as LLVM.
    pub method: Method,
    /// What the method calls so, brought into its range; when not said 3 for zstd and 6 for zlib,
    /// as LLVM.
    pub level: Option<i32>,
    /// How many threads zstd compresses with besides the calling one; one when not said. The
    /// bytes are the same for any number. Zlib has none.
    pub threads: NonZeroU32,
}

impl Default for Compression {
    fn default() -> Self {
        Self {
            version: CompressedBundleVersion::default(),
            method: Method::default(),
            level: None,
            threads: NonZeroU32::MIN,
        }
    }
}

/// What has been compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedHeader {
    /// What belongs before the compressed data.
    pub header: Vec<u8>,
    /// Of all, the header included.
    pub size: u64,
    /// The first bytes of the MD5 digest of the bundle, as in the header.
    pub hash: [u8; 8],
}

/// Compresses and hashes the bundle that is written to it, for those who have it in pieces.
///
/// The compressed data goes to `W` as it comes. What is in memory is zstd's window, up to 128 MiB
/// for levels below 20, and what its threads are at; never the bundle.
///
/// ```
/// # #[cfg(feature = "zstd")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::Write;
/// use offload_formats::format::compressed_bundle::{Compression, Compressor};
///
/// let mut compressor = Compressor::new(Compression::default(), 11, Vec::new())?;
/// compressor.write_all(b"a bundle in")?;
/// let (data, compressed) = compressor.finish()?;
/// let file = [compressed.header, data].concat();
/// assert_eq!(file.len() as u64, compressed.size);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "zstd"))]
/// # fn main() {}
/// ```
pub struct Compressor<W: Write> {
    encoder: Encoder<Counted<W>>,
    hash: Md5,
    version: CompressedBundleVersion,
    method: Method,
    /// As announced.
    size: u64,
    written: u64,
}

impl<W: Write> Compressor<W> {
    /// For a bundle of `size` bytes, whose compressed data, without header, goes to `out`.
    ///
    /// With zstd and up to 8 MiB this is what LLVM writes when it uses the same version of that
    /// library. Larger bundles are compressed in parts, by one thread or more.
    ///
    /// # Errors
    ///
    /// When the method is not built in, or the size is too large for the version.
    pub fn new(how: Compression, size: u64, out: W) -> Result<Self, CompressedBundleWriteError> {
        let Compression {
            version, method, ..
        } = how;
        // The rest of the header has room when this has.
        header(version, method, 0, size, [0; 8])?;
        let out = Counted { out, count: 0 };
        let encoder = Encoder::new(method, how.level, how.threads, size, out).map_err(failed)?;
        Ok(Self {
            encoder: encoder.ok_or(CompressedBundleWriteError::NotBuilt { method })?,
            hash: Md5::new(),
            version,
            method,
            size,
            written: 0,
        })
    }

    /// Writes what is left of the compressed data, and gives the header.
    ///
    /// # Errors
    ///
    /// When another size was written than announced, the output fails, or the compressed size is
    /// too large for the version.
    pub fn finish(self) -> Result<(W, CompressedHeader), CompressedBundleWriteError> {
        let (expected, found) = (self.size, self.written);
        if found != expected {
            return Err(CompressedBundleWriteError::Size { expected, found });
        }
        let Counted { out, count } = self.encoder.finish().map_err(failed)?;
        let size = count.saturating_add(self.version.header_size());
        let hash = head_of(self.hash);
        let header = header(self.version, self.method, size, self.size, hash)?;
        Ok((out, CompressedHeader { header, size, hash }))
    }
}

/// What is not of the size that was announced is an error; so is what the output or the library
/// does not take.
impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (expected, found) = (self.size, self.written.saturating_add(bytes.len() as u64));
        if found > expected {
            return Err(io::Error::other(CompressedBundleWriteError::Size {
                expected,
                found,
            }));
        }
        let count = self.encoder.write(bytes)?;
        // While zstd's threads compress what came before.
        self.hash.update(bytes.get(..count).unwrap_or(bytes));
        self.written = self.written.saturating_add(count as u64);
        Ok(count)
    }

    /// Does nothing: the bytes shall not depend on when they came.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts what is written.
struct Counted<W> {
    out: W,
    count: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.count = self.count.saturating_add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Compresses a bundle, binary or text, of `size` bytes, to where `out` is; then `out` is at the
/// end of it.
///
/// # Errors
///
/// As [`Compressor`], and when `bundle` fails or is of another size.
pub fn compress_to(
    how: Compression,
    size: u64,
    mut bundle: impl Read,
    out: &mut (impl Write + Seek),
) -> Result<CompressedHeader, CompressedBundleWriteError> {
    let start = out.stream_position().map_err(failed)?;
    let room = header(how.version, how.method, 0, size, [0; 8])?;
    out.write_all(&room).map_err(failed)?;
    let mut compressor = Compressor::new(how, size, &mut *out)?;
    let mut buffer = vec![0; codec::BUFFER];
    loop {
        let count = match bundle.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
            Err(problem) => {
                let message = problem.to_string();
                return Err(CompressedBundleWriteError::Input { message });
            }
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        compressor.write_all(bytes).map_err(failed)?;
    }
    let (_, compressed) = compressor.finish()?;
    let end = out.stream_position().map_err(failed)?;
    out.seek(SeekFrom::Start(start)).map_err(failed)?;
    out.write_all(&compressed.header).map_err(failed)?;
    out.seek(SeekFrom::Start(end)).map_err(failed)?;
    Ok(compressed)
}

/// The same for those who have all in memory.
///
/// # Errors
///
/// When the method is not built in, or a size is too large for the version.
pub fn compress(bundle: &[u8], how: Compression) -> Result<Vec<u8>, CompressedBundleWriteError> {
    let mut out = io::Cursor::new(Vec::new());
    compress_to(how, bundle.len() as u64, bundle, &mut out)?;
    Ok(out.into_inner())
}

/// Which of the two that a compressor deals with failed.
fn failed(problem: io::Error) -> CompressedBundleWriteError {
    let message = problem.to_string();
    match problem.downcast::<CompressedBundleWriteError>() {
        Ok(own) => own,
        // What the libraries say has no number of the system and no kind.
        Err(problem) if problem.kind() == io::ErrorKind::Other => {
            CompressedBundleWriteError::Compressor { message }
        }
        Err(_) => CompressedBundleWriteError::Output { message },
    }
}
