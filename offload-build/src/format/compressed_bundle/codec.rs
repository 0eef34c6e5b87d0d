//! The compression libraries, each behind its cargo feature.

use std::convert::Infallible;
use std::io::{self, BufRead, Read, Write};

use super::{Error, Method};

/// How many bytes are decompressed at once: a block of zstd.
pub(super) const BUFFER: usize = 0x2_0000;

/// What compresses to `W`.
pub(super) enum Encoder<W: Write> {
    #[allow(dead_code, reason = "the only variant when all methods are off")]
    None(Infallible, W),
    #[cfg(feature = "zlib")]
    Zlib(flate2::write::ZlibEncoder<W>),
    #[cfg(feature = "zstd")]
    Zstd(with_zstd::Encoder<W>),
}

impl<W: Write> Encoder<W> {
    /// For `size` bytes; `None` when the method is not built in.
    pub(super) fn new(how: super::Compression, size: u64, out: W) -> io::Result<Option<Self>> {
        match how.method {
            #[cfg(feature = "zlib")]
            Method::Zlib => {
                let level = u32::try_from(how.level.unwrap_or(6)).unwrap_or(0).min(9);
                let level = flate2::Compression::new(level);
                Ok(Some(Self::Zlib(flate2::write::ZlibEncoder::new(
                    out, level,
                ))))
            }
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(Some(Self::Zstd(with_zstd::Encoder::new(how, size, out)?))),
            #[allow(unreachable_patterns, reason = "when all methods are built in")]
            _ => {
                let _ = (size, out);
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

/// What decompresses from `B`, of which it consumes what belongs to the data and no more.
pub(super) enum Decoder<B> {
    #[allow(dead_code, reason = "the only variant when all methods are off")]
    None(Infallible, B),
    #[cfg(feature = "zlib")]
    Zlib(flate2::bufread::ZlibDecoder<B>),
    #[cfg(feature = "zstd")]
    Zstd(with_zstd::Decoder<B>),
}

impl<B: BufRead> Decoder<B> {
    /// For data of which this size is claimed.
    pub(super) fn new(method: Method, claimed: u64, source: B) -> Result<Self, Error> {
        match method {
            #[cfg(feature = "zlib")]
            Method::Zlib => Ok(Self::Zlib(flate2::bufread::ZlibDecoder::new(source))),
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(Self::Zstd(with_zstd::Decoder::new(claimed, source)?)),
            #[allow(unreachable_patterns, reason = "when all methods are built in")]
            _ => {
                let _ = (claimed, source);
                Err(Error::NotBuilt { method })
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

#[cfg(feature = "zstd")]
mod with_zstd {
    use std::io::{self, BufRead, Write};

    use zstd::stream::raw::{self, CParameter, DParameter, Operation};
    use zstd::stream::{write, zio};

    use super::super::{Compression, Error};

    /// What a thread compresses at a time, at levels that would take less. Parts do not know each
    /// other's statistics: of 512 MiB of libraries, parts of zstd's own 2 MiB are 1 % larger than
    /// what LLVM writes, these 0.3 %.
    const PART: u32 = 8 << 20;
    /// From here on zstd takes as much or more.
    const LEVEL_OF_LARGE_PARTS: i32 = 9;

    pub(in super::super) enum Encoder<W: Write> {
        /// No more than one part: compressed at once, as LLVM does, whose bytes they are.
        Small(Vec<u8>, i32, W),
        /// Compressed by other threads while the next bytes come.
        Large(write::Encoder<'static, W>),
    }

    impl<W: Write> Encoder<W> {
        pub(super) fn new(how: Compression, size: u64, out: W) -> io::Result<Self> {
            let range = zstd::compression_level_range();
            let level = how.level.unwrap_or(3).clamp(*range.start(), *range.end());
            if size <= PART.into() {
                return Ok(Self::Small(Vec::new(), level, out));
            }
            let mut encoder = raw::Encoder::new(level)?;
            encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
            // One worker or many make the same jobs of the same bytes; none would make others.
            encoder.set_parameter(CParameter::NbWorkers(how.threads.get()))?;
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

    pub(in super::super) struct Decoder<B> {
        pub(super) source: B,
        decoder: raw::Decoder<'static>,
        /// A frame has begun, or none has been seen.
        open: bool,
    }

    impl<B: BufRead> Decoder<B> {
        pub(super) fn new(claimed: u64, source: B) -> Result<Self, Error> {
            let failed = |problem: io::Error| Error::Data {
                message: problem.to_string(),
            };
            let mut decoder = raw::Decoder::new().map_err(failed)?;
            // No window is larger than what is claimed, but LLVM's frames have at least this one;
            // it is address space until data comes. The library allows up to 2 GiB.
            let window = u64::BITS - claimed.leading_zeros();
            decoder
                .set_parameter(DParameter::WindowLogMax(window.clamp(27, 31)))
                .map_err(failed)?;
            Ok(Self {
                source,
                decoder,
                open: true,
            })
        }

        /// Bytes of one frame after the other, until the source ends.
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
