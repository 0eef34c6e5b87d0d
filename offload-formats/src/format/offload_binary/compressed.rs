//! Compresses and inflates offload binaries of version 3.

use std::io::Read;
use std::num::NonZeroU32;

use super::binary::{CompressedBody, OffloadBinary};
use super::error::{InflateError, OffloadBinaryWriteError};
use super::layout::{BinaryHeader, HeaderEnd, MAGIC, OffloadBinaryVersion};
use crate::format::bytes::{Alignment, Cursor, ReadAt, field};
use crate::format::codec::{BUFFER, BoundedStream, Decoder, Encoder, Method, Slices};

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
    pub fn inflate<'d, R: ReadAt<'d>>(&self, data: R, limit: u64) -> Result<Vec<u8>, InflateError> {
        let claimed = match &self.compressed {
            Some(compressed) => compressed.inflated_size,
            None => self.size,
        };
        if claimed > limit {
            return Err(InflateError::Limit { claimed, limit });
        }
        let mut cursor = Cursor::new(data, self.range());
        let Some(compressed) = &self.compressed else {
            let bytes = cursor.read(self.size, "body");
            return bytes.map(<[u8]>::to_vec).map_err(InflateError::Outside);
        };
        let header = BinaryHeader::read(&mut cursor).map_err(InflateError::Outside)?;
        let mut bytes = Vec::new();
        BinaryHeader {
            size: claimed,
            ..header
        }
        .write(&mut bytes);
        HeaderEnd { inflated_size: 0 }.write(&mut bytes);
        let body = claimed.saturating_sub(bytes.len() as u64);
        compressed.inflate_body(data, body, &mut bytes)?;
        Ok(bytes)
    }
}

impl CompressedBody {
    /// Appends exactly `size` bytes to `out`.
    fn inflate_body<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        size: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), InflateError> {
        let method = self.method;
        let damaged = |problem: std::io::Error| InflateError::Data {
            message: problem.to_string(),
        };
        let source = BoundedStream {
            source: Slices::new(Cursor::new(data, self.data.clone())),
            position: self.data.start,
            end: self.data.end,
        };
        let decoder = Decoder::new(method, source).map_err(damaged)?;
        let mut decoder = decoder.ok_or(InflateError::NotBuilt { method })?;
        let (mut found, mut buffer) = (0_u64, vec![0; BUFFER]);
        let claimed = self.inflated_size;
        loop {
            let count = decoder.read(&mut buffer).map_err(damaged)?;
            if count == 0 {
                break;
            }
            found = found.saturating_add(count as u64);
            if found > size {
                return Err(InflateError::Longer { claimed });
            }
            let bytes = buffer.get(..count);
            out.extend_from_slice(bytes.expect("the decoder fills no more than the buffer"));
        }
        if found < size {
            let found = out.len() as u64;
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

/// Compresses an offload binary of version 3, and pads it to a multiple of 8. `level` is a level of
/// the method; `None` selects LLVM's default.
///
/// # Errors
///
/// Fails if `binary` is not exactly one uncompressed offload binary of version 3. Fails if the level is not
/// valid for the method, or the method is not built in or fails.
pub fn compress(
    binary: &[u8],
    method: Method,
    level: Option<i32>,
) -> Result<Vec<u8>, OffloadBinaryWriteError> {
    // LLVM's range of levels and its default.
    let (least, most, default) = match method {
        Method::Zlib => (0, 9, 6),
        Method::Zstd => (-5, 22, 5),
    };
    let level = level.unwrap_or(default);
    if !(least..=most).contains(&level) {
        return Err(OffloadBinaryWriteError::Level {
            method,
            level,
            least,
            most,
        });
    }
    let size = binary.len() as u64;
    let parsed = OffloadBinary::parse(binary, 0, size).ok();
    let plain = |parsed: &OffloadBinary| {
        (parsed.version, parsed.size, &parsed.compressed) == (OffloadBinaryVersion::V3, size, &None)
    };
    let Some(parsed) = parsed.filter(plain) else {
        return Err(OffloadBinaryWriteError::NotVersion3);
    };
    let body = binary.get(OffloadBinaryVersion::V3.header_size() as usize..);
    let body = body.expect("the parsed offload binary contains its header");
    let failed = |problem: std::io::Error| OffloadBinaryWriteError::Compressor {
        message: problem.to_string(),
    };
    let encoder = Encoder::new(
        method,
        Some(level),
        NonZeroU32::MIN,
        body.len() as u64,
        Vec::new(),
    );
    let mut encoder = encoder
        .map_err(failed)?
        .ok_or(OffloadBinaryWriteError::NotBuilt { method })?;
    let mut rest = body;
    while !rest.is_empty() {
        let count = encoder.write(rest).map_err(failed)?;
        let left = rest.get(count..);
        rest = left.expect("the encoder takes no more than it is given");
    }
    let data = encoder.finish().map_err(failed)?;

    let mut bytes = Vec::new();
    BinaryHeader {
        magic: MAGIC,
        version: parsed.version.raw(),
        size: OffloadBinaryVersion::V3
            .header_size()
            .saturating_add(data.len() as u64),
        entries_offset: OffloadBinaryVersion::V3.header_size(),
        entries: parsed.entries.len() as u64,
    }
    .write(&mut bytes);
    HeaderEnd {
        inflated_size: size,
    }
    .write(&mut bytes);
    bytes.extend_from_slice(&data);
    let padding = Alignment::EIGHT.padding(bytes.len() as u64);
    bytes.extend((0..padding).map(|_| 0));
    Ok(bytes)
}

#[cfg(test)]
mod tests;
