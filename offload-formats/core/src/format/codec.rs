//! The compression libraries, each with its cargo feature, and streams for them.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use super::bytes::{Cursor, ReadAt};

/// A compression method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A zlib stream; cargo feature `zlib`.
    Zlib,
    /// Zstandard frames; cargo feature `zstd`.
    #[default]
    Zstd,
}

impl Method {
    /// All methods.
    pub(super) const ALL: [Self; 2] = [Self::Zlib, Self::Zstd];

    /// Returns the method with that number in compressed bundles.
    #[must_use]
    pub(crate) fn from_raw(raw: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.raw() == raw)
    }

    /// Returns its number in compressed bundles.
    #[must_use]
    pub fn raw(self) -> u16 {
        match self {
            Self::Zlib => 0,
            Self::Zstd => 1,
        }
    }

    /// Returns its name, such as `zstd`; its cargo feature has the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the levels that the method has, from the fastest to the smallest output.
    #[must_use]
    pub fn levels(self) -> RangeInclusive<i32> {
        match self {
            Self::Zlib => 1..=9,
            Self::Zstd => 1..=22,
        }
    }

    /// Returns whether this crate was built with the method's cargo feature.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        match self {
            Self::Zlib => cfg!(feature = "zlib"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Writes the error for a method that is not built in.
pub(super) fn not_built(method: Method, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "{method} is not built in (the cargo feature `{method}` of `offload-build` is off) [OFF507]"
    )
}

/// Number of bytes that are decompressed at once: a block of zstd.
pub(super) const BUFFER: usize = 0x2_0000;

/// Compresses to `W`.
pub(super) enum Encoder<W: Write> {
    #[allow(dead_code, reason = "the only variant when all methods are off")]
    None(Infallible, W),
    #[cfg(feature = "zlib")]
    Zlib(flate2::write::ZlibEncoder<W>),
    #[cfg(feature = "zstd")]
    Zstd(with_zstd::ZstdEncoder<W>),
}

impl<W: Write> Encoder<W> {
    /// Creates an encoder for `size` bytes; `None` if the method is not built in.
    pub(super) fn new(
        method: Method,
        level: Option<i32>,
        threads: NonZeroU32,
        size: u64,
        out: W,
    ) -> io::Result<Option<Self>> {
        match method {
            #[cfg(feature = "zlib")]
            Method::Zlib => {
                let level = level.unwrap_or(6).clamp(0, 9).unsigned_abs();
                let level = flate2::Compression::new(level);
                Ok(Some(Self::Zlib(flate2::write::ZlibEncoder::new(
                    out, level,
                ))))
            }
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(Some(Self::Zstd(with_zstd::ZstdEncoder::new(
                level, threads, size, out,
            )?))),
            #[allow(unreachable_patterns, reason = "when all methods are built in")]
            _ => {
                let _ = (level, threads, size, out);
                Ok(None)
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(_, out) => out.write(bytes),
            #[cfg(feature = "zlib")]
            Self::Zlib(encoder) => encoder.write(bytes),
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes)?;
            let left = bytes.get(count..);
            bytes = left.expect("the encoder takes no more than it is given");
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::None(_, out) => Ok(out),
            #[cfg(feature = "zlib")]
            Self::Zlib(encoder) => encoder.finish(),
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Decompresses from `B`, and consumes no byte after the compressed data.
pub(super) enum Decoder<B> {
    #[allow(dead_code, reason = "the only variant when all methods are off")]
    None(Infallible, B),
    #[cfg(feature = "zlib")]
    Zlib(flate2::bufread::ZlibDecoder<B>),
    #[cfg(feature = "zstd")]
    Zstd(with_zstd::ZstdDecoder<B>),
}

impl<B: BufRead> Decoder<B> {
    /// Creates a decoder; `None` if the method is not built in.
    pub(super) fn new(method: Method, source: B) -> io::Result<Option<Self>> {
        match method {
            #[cfg(feature = "zlib")]
            Method::Zlib => Ok(Some(Self::Zlib(flate2::bufread::ZlibDecoder::new(source)))),
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(Some(Self::Zstd(with_zstd::ZstdDecoder::new(source)?))),
            #[allow(unreachable_patterns, reason = "when all methods are built in")]
            _ => {
                let _ = source;
                Ok(None)
            }
        }
    }

    pub(super) fn into_source(self) -> B {
        match self {
            Self::None(_, source) => source,
            #[cfg(feature = "zlib")]
            Self::Zlib(decoder) => decoder.into_inner(),
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.source,
        }
    }
}

impl<B: BufRead> Read for Decoder<B> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::None(_, source) => source.read(room),
            #[cfg(feature = "zlib")]
            Self::Zlib(decoder) => decoder.read(room),
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.read(room),
        }
    }
}

/// Reads from `source` until it returns bytes, and returns them: none at its end.
///
/// # Errors
///
/// Fails if `source` fails, or claims to have read more bytes than it was asked for.
pub(super) fn read_part<'b>(
    source: &mut (impl Read + ?Sized),
    buffer: &'b mut [u8],
) -> io::Result<&'b [u8]> {
    loop {
        match source.read(buffer) {
            Ok(count) => return filled(buffer, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the part of `buffer` that a caller's reader claims to have filled.
///
/// # Errors
///
/// Fails if the claim is larger than the buffer.
pub(super) fn filled(buffer: &[u8], count: usize) -> io::Result<&[u8]> {
    let size = buffer.len();
    let part = buffer.get(..count);
    part.ok_or_else(|| {
        io::Error::other(format!(
            "expected up to {size:#x} bytes from one read, found {count:#x}"
        ))
    })
}

/// A stream that ends at a given offset.
pub(super) struct BoundedStream<B> {
    pub(super) source: B,
    /// Offset of the next byte.
    pub(super) position: u64,
    pub(super) end: u64,
}

impl<B: BufRead> BufRead for BoundedStream<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = self.end.saturating_sub(self.position);
        if left == 0 {
            return Ok(&[]);
        }
        let bytes = self.source.fill_buf()?;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        Ok(bytes.get(..left).unwrap_or(bytes))
    }

    fn consume(&mut self, count: usize) {
        self.position = self.position.saturating_add(count as u64);
        self.source.consume(count);
    }
}

impl<B: BufRead> Read for BoundedStream<B> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let count = Read::read(&mut bytes, room)?;
        self.consume(count);
        Ok(count)
    }
}

/// A range of some data as a stream that asks for each byte once.
pub struct OnceStream<'d, R> {
    cursor: Cursor<'d, R>,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that were consumed.
    consumed: usize,
}

impl<'d, R: ReadAt<'d>> OnceStream<'d, R> {
    /// Streams from the cursor's position.
    pub fn new(cursor: Cursor<'d, R>) -> Self {
        Self {
            cursor,
            buffer: Vec::new(),
            consumed: 0,
        }
    }
}

impl<'d, R: ReadAt<'d>> BufRead for OnceStream<'d, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed >= self.buffer.len() {
            let left = self.cursor.end().saturating_sub(self.cursor.position());
            let size = usize::try_from(left).map_or(BUFFER, |left| left.min(BUFFER));
            self.buffer.resize(size, 0);
            self.consumed = 0;
            let read = self.cursor.read_once(&mut self.buffer, "compressed data");
            read.map_err(|problem| {
                self.buffer.clear();
                io::Error::other(problem)
            })?;
        }
        Ok(self.buffer.get(self.consumed..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_add(count);
    }
}

impl<'d, R: ReadAt<'d>> Read for OnceStream<'d, R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let count = Read::read(&mut bytes, room)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(feature = "zstd")]
mod with_zstd {
    use std::io::{self, BufRead, Write};
    use std::num::NonZeroU32;

    use zstd::stream::raw::{self, CParameter, DParameter, Operation};
    use zstd::stream::{write, zio};

    /// Size of the part that a thread compresses at a time, at levels whose default is smaller.
    /// Parts do not share statistics. For 512 MiB of libraries the output is 1 % larger than LLVM's
    /// with zstd's default of 2 MiB, and 0.3 % with this size.
    const PART: u32 = 8 << 20;
    /// From this level on zstd's default is as large or larger.
    const LEVEL_OF_LARGE_PARTS: i32 = 9;

    pub(in crate::format) enum ZstdEncoder<W: Write> {
        /// At most one part, compressed at once: the same bytes as LLVM's.
        Small(Vec<u8>, i32, W),
        /// Compressed by other threads while the next bytes arrive.
        Large(write::Encoder<'static, W>),
    }

    impl<W: Write> ZstdEncoder<W> {
        pub(super) fn new(
            level: Option<i32>,
            threads: NonZeroU32,
            size: u64,
            out: W,
        ) -> io::Result<Self> {
            let range = zstd::compression_level_range();
            let level = level.unwrap_or(3).clamp(*range.start(), *range.end());
            if size <= PART.into() {
                return Ok(Self::Small(Vec::new(), level, out));
            }
            let mut encoder = raw::Encoder::new(level)?;
            encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
            // The output is the same for any number of workers except 0.
            encoder.set_parameter(CParameter::NbWorkers(threads.get()))?;
            if level < LEVEL_OF_LARGE_PARTS {
                encoder.set_parameter(CParameter::JobSize(PART))?;
            }
            encoder.set_pledged_src_size(Some(size))?;
            let writer = zio::Writer::new_with_capacity(out, encoder, super::BUFFER);
            Ok(Self::Large(write::Encoder::with_writer(writer)))
        }

        pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self {
                Self::Small(buffer, ..) => buffer.write(bytes),
                Self::Large(encoder) => encoder.write(bytes),
            }
        }

        pub(super) fn finish(self) -> io::Result<W> {
            match self {
                Self::Small(bytes, level, mut out) => {
                    let mut compressor = zstd::bulk::Compressor::new(level)?;
                    compressor.long_distance_matching(true)?;
                    out.write_all(&compressor.compress(&bytes)?)?;
                    Ok(out)
                }
                Self::Large(encoder) => encoder.finish(),
            }
        }
    }

    pub(in crate::format) struct ZstdDecoder<B> {
        pub(super) source: B,
        decoder: raw::Decoder<'static>,
        /// True inside a frame, and before the first.
        open: bool,
    }

    impl<B: BufRead> ZstdDecoder<B> {
        pub(super) fn new(source: B) -> io::Result<Self> {
            let mut decoder = raw::Decoder::new()?;
            // 128 MiB, the largest window of LLVM's frames at any level. The format allows 2 GiB,
            // which would be allocated.
            decoder.set_parameter(DParameter::WindowLogMax(27))?;
            Ok(Self {
                source,
                decoder,
                open: true,
            })
        }

        /// Reads the bytes of consecutive frames, until the source ends.
        pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            loop {
                let bytes = self.source.fill_buf()?;
                if bytes.is_empty() && !self.open {
                    return Ok(0);
                }
                let status = self.decoder.run_on_buffers(bytes, room)?;
                self.open = status.remaining != 0;
                let idle = bytes.is_empty() && status.bytes_written == 0;
                self.source.consume(status.bytes_read);
                if status.bytes_written > 0 || room.is_empty() {
                    return Ok(status.bytes_written);
                }
                if idle && self.open {
                    let problem = "the last frame is incomplete";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
                }
            }
        }
    }
}
