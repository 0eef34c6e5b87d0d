//! Inflates compressed offload binaries.

use std::io::{Read, Write};

use super::binary::{CompressedBody, OffloadBinary};
use super::error::InflateError;
use super::layout::{BinaryHeader, HeaderEnd};
use crate::format::bytes::{Cursor, ReadAt, field};
use crate::format::codec::{BUFFER, BoundedStream, Decoder, Method, OnceStream};
use crate::format::unpacked::{Scratch, Unpacked};

/// Magic of zstd frames; other data is zlib, which has none.
const ZSTD: [u8; 4] = *b"\x28\xb5\x2f\xfd";

impl CompressedBody {
    pub(super) fn with_method_of<'d, R: ReadAt<'d>>(self, data: R) -> Self {
        let found = field(&mut Cursor::new(data, self.data.clone()), "magic");
        let method = match found {
            Ok(ZSTD) => Method::Zstd,
            _ => Method::Zlib,
        };
        Self { method, ..self }
    }
}

impl OffloadBinary {
    /// Returns the whole offload binary as if it had never been compressed. Its offset is then 0,
    /// and [`Self::parse`] finds its entries. `data` is the file that it was parsed from. An
    /// uncompressed one is returned unchanged.
    ///
    /// Inflates no more than the inflated size in the header. Memory grows with the inflated data,
    /// not with the size in the header.
    ///
    /// # Errors
    ///
    /// Fails if the inflated size exceeds `limit`, or the method is not built in. Fails if the data is damaged,
    /// has another size, or is followed by other data.
    #[cfg(feature = "tools")]
    pub fn inflate<'d, R: ReadAt<'d>>(&self, data: R, limit: u64) -> Result<Vec<u8>, InflateError> {
        self.inflated_size(limit)?;
        let mut bytes = Vec::new();
        self.inflate_to(data, &mut bytes)?;
        Ok(bytes)
    }

    /// Inflates the offload binary, like [`Self::inflate`], into `scratch`.
    ///
    /// # Errors
    ///
    /// Those of [`Self::inflate`], and if `scratch` fails.
    pub fn unpack<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        limit: u64,
        scratch: &Scratch,
    ) -> Result<Unpacked, InflateError> {
        let claimed = self.inflated_size(limit)?;
        scratch.keep(claimed, |out| self.inflate_to(data, out))
    }

    /// Returns the inflated size in the header, if `limit` allows it.
    fn inflated_size(&self, limit: u64) -> Result<u64, InflateError> {
        let compressed = self.compressed.as_ref();
        let claimed = compressed.map_or(self.size, |compressed| compressed.inflated_size);
        match claimed {
            claimed if claimed > limit => Err(InflateError::Limit { claimed, limit }),
            claimed => Ok(claimed),
        }
    }

    fn inflate_to<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        out: &mut impl Write,
    ) -> Result<(), InflateError> {
        let mut cursor = Cursor::new(data, self.range());
        let Some(compressed) = &self.compressed else {
            let bytes = cursor.read(self.size, "body");
            let bytes = bytes.map_err(InflateError::Outside)?;
            return Ok(out.write_all(bytes)?);
        };
        let claimed = compressed.inflated_size;
        let header = BinaryHeader::read(&mut cursor).map_err(InflateError::Outside)?;
        let mut bytes = Vec::new();
        BinaryHeader {
            size: claimed,
            ..header
        }
        .write(&mut bytes);
        HeaderEnd { inflated_size: 0 }.write(&mut bytes);
        out.write_all(&bytes)?;
        compressed.inflate_body(data, bytes.len() as u64, out)
    }
}

impl CompressedBody {
    /// Writes what follows the `head` bytes of the header to `out`.
    fn inflate_body<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        head: u64,
        out: &mut impl Write,
    ) -> Result<(), InflateError> {
        let method = self.method;
        let damaged = |problem: std::io::Error| InflateError::Data {
            message: problem.to_string(),
        };
        let source = BoundedStream {
            source: OnceStream::new(Cursor::new(data, self.data.clone())),
            position: self.data.start,
            end: self.data.end,
        };
        let decoder = Decoder::new(method, source).map_err(damaged)?;
        let mut decoder = decoder.ok_or(InflateError::NotBuilt { method })?;
        let (mut found, mut buffer) = (head, vec![0; BUFFER]);
        let claimed = self.inflated_size;
        loop {
            let count = decoder.read(&mut buffer).map_err(damaged)?;
            if count == 0 {
                break;
            }
            found = found.saturating_add(count as u64);
            if found > claimed.max(head) {
                return Err(InflateError::Longer { claimed });
            }
            let bytes = buffer.get(..count);
            out.write_all(bytes.expect("the decoder fills no more than the buffer"))?;
        }
        if found < claimed {
            return Err(InflateError::Shorter { claimed, found });
        }
        match decoder.into_source().position {
            offset if offset < self.data.end => Err(InflateError::Trailing {
                offset,
                end: self.data.end,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
