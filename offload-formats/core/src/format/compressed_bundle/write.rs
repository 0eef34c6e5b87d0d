//! Writes compressed bundles as a stream, without keeping the bundle.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU32;

use crate::md5::Md5;

use super::{CompressedBundleVersion, CompressedBundleWriteError, Method, head_of, header};
use crate::format::codec::{self, Encoder};

/// Compression settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Version of the format. Default: 3, as in LLVM 22.
    pub version: CompressedBundleVersion,
    /// Method. Default: zstd, as in LLVM.
    pub method: Method,
    /// Level of the method, clamped to its range. Default: 3 for zstd and 6 for zlib, as in LLVM.
    pub level: Option<i32>,
    /// Number of threads of zstd besides the calling one. Default: 1. The bytes are the same for
    /// any number. Ignored for zlib.
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

/// Header of a compressed bundle, with some of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedHeader {
    /// Bytes before the compressed data.
    pub header: Vec<u8>,
    /// Total size, including the header.
    pub size: u64,
    /// First bytes of the MD5 digest of the bundle, as in the header.
    pub hash: [u8; 8],
}

/// Compresses and hashes the bundle that is written to it, for callers that have it in pieces.
///
/// It writes the compressed data to `W` at once, and never holds the bundle.
pub(super) struct Compressor<W: Write> {
    encoder: Encoder<Counted<W>>,
    hash: Md5,
    version: CompressedBundleVersion,
    method: Method,
    /// Announced size of the bundle.
    size: u64,
    written: u64,
}

impl<W: Write> Compressor<W> {
    /// Creates a compressor for a bundle of `size` bytes. The compressed data, without header, goes
    /// to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the method is not built in, or the size is too large for the version.
    pub(crate) fn new(
        how: Compression,
        size: u64,
        out: W,
    ) -> Result<Self, CompressedBundleWriteError> {
        let Compression {
            version, method, ..
        } = how;
        // Reports an unsuitable size before anything is compressed.
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

    /// Writes the rest of the compressed data, and returns the header.
    ///
    /// # Errors
    ///
    /// Fails if the bundle's size differs from the announced one, the output fails, or the compressed
    /// size is too large for the version.
    pub(crate) fn finish(self) -> Result<(W, CompressedHeader), CompressedBundleWriteError> {
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

/// Fails if more bytes come than announced, or if the output or the library fails.
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
        // Meanwhile zstd's threads compress the bytes before.
        let taken = bytes.get(..count);
        let taken = taken.expect("the encoder takes no more than it is given");
        self.hash.update(taken);
        self.written = self.written.saturating_add(count as u64);
        Ok(count)
    }

    /// Does nothing, so that the output does not depend on the calls.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts the written bytes.
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

/// Compresses a bundle of `size` bytes, binary or text, to `out` at its current position.
/// Afterwards `out` is at the end of the compressed bundle.
///
/// Memory is limited to zstd's window (up to 128 MiB for levels below 20) and its threads' buffers;
/// it never holds the bundle. With zstd and up to 8 MiB the output equals LLVM's with the same
/// version of that library. Larger bundles are compressed in parts, by one thread or more.
///
/// # Errors
///
/// Fails if the method is not built in, a size is too large for the version, `bundle` or `out` fails, or
/// the bundle has another size.
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
        let bytes = codec::read_part(&mut bundle, &mut buffer).map_err(|problem| {
            let message = problem.to_string();
            CompressedBundleWriteError::Input { message }
        })?;
        if bytes.is_empty() {
            break;
        }
        compressor.write_all(bytes).map_err(failed)?;
    }
    let (_, compressed) = compressor.finish()?;
    let end = out.stream_position().map_err(failed)?;
    out.seek(SeekFrom::Start(start)).map_err(failed)?;
    out.write_all(&compressed.header).map_err(failed)?;
    out.seek(SeekFrom::Start(end)).map_err(failed)?;
    Ok(compressed)
}

/// Compresses a bundle in memory.
///
/// # Errors
///
/// Fails if the method is not built in, or a size is too large for the version.
pub fn compress(bundle: &[u8], how: Compression) -> Result<Vec<u8>, CompressedBundleWriteError> {
    let mut out = io::Cursor::new(Vec::new());
    compress_to(how, bundle.len() as u64, bundle, &mut out)?;
    Ok(out.into_inner())
}

/// Returns the error of the output, or else of the library.
fn failed(problem: io::Error) -> CompressedBundleWriteError {
    let message = problem.to_string();
    match problem.downcast::<CompressedBundleWriteError>() {
        Ok(own) => own,
        // Errors of the libraries have neither a system error number nor a kind.
        Err(problem) if problem.kind() == io::ErrorKind::Other => {
            CompressedBundleWriteError::Compressor { message }
        }
        Err(_) => CompressedBundleWriteError::Output { message },
    }
}
