//! The content of a member, unpacked and checked, and new content, deflated.

use std::io::{self, BufRead, Read, Write};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{ZipMember, ZipMethod};
use crate::format::codec;

/// The unpacked content of a member as a stream, which fails at its end if size or CRC-32 differ from the directory's.
/// It gives at most one byte more than the directory's size.
#[derive(Debug)]
pub struct ZipContent<B> {
    source: ZipSource<B>,
    crc: Crc,
    expected: u32,
    size: u64,
    /// Number of bytes that were read.
    done: u64,
}

#[derive(Debug)]
enum ZipSource<B> {
    Stored(B),
    Deflated(DeflateDecoder<B>),
}

impl ZipMember {
    /// Unpacks the content; `stored` has the bytes of [`Self::content`].
    ///
    /// # Errors
    ///
    /// Fails if the member is encrypted, or its compression is not supported.
    pub fn unpack<B: BufRead>(&self, stored: B) -> io::Result<ZipContent<B>> {
        if self.is_encrypted {
            return Err(io::Error::other("encrypted members are not supported"));
        }
        let source = match self.method {
            ZipMethod::Stored => ZipSource::Stored(stored),
            ZipMethod::Deflated => ZipSource::Deflated(DeflateDecoder::new(stored)),
            ZipMethod::Other(number) => {
                let text = format!("compression method {number} is not supported");
                return Err(io::Error::other(text));
            }
        };
        Ok(ZipContent {
            source,
            crc: Crc::new(),
            expected: self.crc,
            size: self.size,
            done: 0,
        })
    }
}

impl<B: BufRead> Read for ZipContent<B> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            ZipSource::Stored(source) => source.read(room),
            ZipSource::Deflated(decoder) => decoder.read(room),
        }?;
        self.crc.update(codec::filled(room, count)?);
        self.done = self.done.saturating_add(count as u64);
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        let size = self.size;
        if self.done > size || (count == 0 && !room.is_empty() && self.done < size) {
            let (done, more) = (self.done, if self.done > size { " or more" } else { "" });
            return wrong(format!(
                "the content has {done:#x} bytes{more}, expected {size:#x}"
            ));
        }
        if count == 0 && !room.is_empty() && self.crc.sum() != self.expected {
            let (found, expected) = (self.crc.sum(), self.expected);
            return wrong(format!(
                "the content has CRC-32 {found:#010x}, expected {expected:#010x}"
            ));
        }
        Ok(count)
    }
}

/// Sizes and CRC-32 of content that was written by [`deflate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedContent {
    /// CRC-32 of the unpacked content.
    pub crc: u32,
    /// Size of the unpacked content in bytes.
    pub size: u64,
}

/// Deflates a member's new content, or stores it.
///
/// # Errors
///
/// Fails if reading or writing fails.
pub fn deflate(
    mut content: impl Read,
    method: ZipMethod,
    out: &mut impl Write,
) -> io::Result<PackedContent> {
    let (mut crc, mut size) = (Crc::new(), 0_u64);
    let mut buffer = vec![0; 1 << 17];
    let mut copy = |out: &mut dyn Write| -> io::Result<()> {
        loop {
            let bytes = codec::read_part(&mut content, &mut buffer)?;
            if bytes.is_empty() {
                return Ok(());
            }
            crc.update(bytes);
            size = size.saturating_add(bytes.len() as u64);
            out.write_all(bytes)?;
        }
    };
    match method {
        ZipMethod::Stored => copy(out)?,
        // The level of Python's `zipfile` and of `zip`.
        _ => {
            let mut encoder = DeflateEncoder::new(out, flate2::Compression::new(6));
            copy(&mut encoder)?;
            encoder.finish()?;
        }
    }
    Ok(PackedContent {
        crc: crc.sum(),
        size,
    })
}
