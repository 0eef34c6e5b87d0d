//! The compression libraries, each behind its cargo feature.

use std::io::{self, Read};

use object::ReadRef;

use super::{CompressedBundle, Compression, Error, Method, WriteError};
use crate::format::bytes::Cursor;

/// How many bytes are read, and written, at once.
pub(super) const BUFFER: usize = 0x1_0000;

/// A range of the file as a stream.
struct Stream<'d, R>(Cursor<'d, R>);

impl<'d, R: ReadRef<'d>> Read for Stream<'d, R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let left = self.0.end().saturating_sub(self.0.position());
        let size = left.min(room.len() as u64);
        let bytes = self
            .0
            .read(size, "compressed data")
            .map_err(io::Error::other)?;
        room.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Ok(bytes.len())
    }
}

/// The uncompressed data as a stream.
pub(super) fn decoder<'d, R: ReadRef<'d> + 'd>(
    bundle: &CompressedBundle,
    data: R,
) -> Result<Box<dyn Read + 'd>, Error> {
    let stream = Stream(Cursor::new(data, bundle.data.clone()));
    match bundle.method {
        Method::Zlib => zlib_decoder(stream),
        Method::Zstd => zstd_decoder(stream, bundle.uncompressed_size),
    }
}

pub(super) fn compress(bundle: &[u8], how: Compression) -> Result<Vec<u8>, WriteError> {
    match how.method {
        Method::Zlib => zlib_compress(bundle, how.level),
        Method::Zstd => zstd_compress(bundle, how.level),
    }
}

#[cfg(feature = "zlib")]
fn zlib_decoder<'d>(stream: impl Read + 'd) -> Result<Box<dyn Read + 'd>, Error> {
    Ok(Box::new(flate2::read::ZlibDecoder::new(stream)))
}

#[cfg(feature = "zlib")]
fn zlib_compress(bundle: &[u8], level: Option<i32>) -> Result<Vec<u8>, WriteError> {
    let level = u32::try_from(level.unwrap_or(6)).unwrap_or(0).min(9);
    let mut data = Vec::new();
    let mut encoder = flate2::read::ZlibEncoder::new(bundle, flate2::Compression::new(level));
    match encoder.read_to_end(&mut data) {
        Ok(_) => Ok(data),
        Err(problem) => Err(WriteError::Compressor {
            message: problem.to_string(),
        }),
    }
}

#[cfg(feature = "zstd")]
fn zstd_decoder<'d>(stream: impl Read + 'd, claimed: u64) -> Result<Box<dyn Read + 'd>, Error> {
    let failed = |problem: io::Error| Error::Data {
        message: problem.to_string(),
    };
    // No window is larger than what is claimed, but LLVM's frames have at least this one; it is
    // address space until data comes. The library allows up to 2 GiB.
    let window = u64::BITS - claimed.leading_zeros();
    let mut decoder = zstd::stream::read::Decoder::new(stream).map_err(failed)?;
    decoder
        .window_log_max(window.clamp(27, 31))
        .map_err(failed)?;
    Ok(Box::new(decoder))
}

#[cfg(feature = "zstd")]
fn zstd_compress(bundle: &[u8], level: Option<i32>) -> Result<Vec<u8>, WriteError> {
    let failed = |problem: io::Error| WriteError::Compressor {
        message: problem.to_string(),
    };
    let range = zstd::compression_level_range();
    let level = level.unwrap_or(3).clamp(*range.start(), *range.end());
    let mut compressor = zstd::bulk::Compressor::new(level).map_err(failed)?;
    compressor.long_distance_matching(true).map_err(failed)?;
    compressor.compress(bundle).map_err(failed)
}

#[cfg(not(feature = "zlib"))]
fn zlib_decoder<'d>(_: impl Read + 'd) -> Result<Box<dyn Read + 'd>, Error> {
    let method = Method::Zlib;
    Err(Error::NotBuilt { method })
}

#[cfg(not(feature = "zlib"))]
fn zlib_compress(_: &[u8], _: Option<i32>) -> Result<Vec<u8>, WriteError> {
    let method = Method::Zlib;
    Err(WriteError::NotBuilt { method })
}

#[cfg(not(feature = "zstd"))]
fn zstd_decoder<'d>(_: impl Read + 'd, _: u64) -> Result<Box<dyn Read + 'd>, Error> {
    let method = Method::Zstd;
    Err(Error::NotBuilt { method })
}

#[cfg(not(feature = "zstd"))]
fn zstd_compress(_: &[u8], _: Option<i32>) -> Result<Vec<u8>, WriteError> {
    let method = Method::Zstd;
    Err(WriteError::NotBuilt { method })
}
