//! Compresses offload binaries of version 3.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU32;

use super::binary::OffloadBinary;
use super::error::OffloadBinaryWriteError;
use super::layout::{BinaryHeader, HeaderEnd, MAGIC, OffloadBinaryVersion};
use crate::format::bytes::{Alignment, Cursor};
use crate::format::codec::{BUFFER, Encoder, Method, read_part};

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
    let size = binary.len() as u64;
    let mut out = io::Cursor::new(Vec::new());
    known_level(method, level)?;
    if OffloadBinary::parse(binary, 0, size).is_err() {
        return Err(OffloadBinaryWriteError::NotVersion3);
    }
    compress_to(binary, size, method, level, &mut out)?;
    Ok(out.into_inner())
}

/// Compresses an offload binary of `size` bytes, like [`compress`], to `out` at its current position. It never holds the
/// offload binary, whose entries are not checked. Memory is limited to the method's buffers.
///
/// # Errors
///
/// Those of [`compress`], and if `binary` or `out` fails.
pub fn compress_to(
    mut binary: impl Read,
    size: u64,
    method: Method,
    level: Option<i32>,
    out: &mut (impl Write + Seek),
) -> Result<(), OffloadBinaryWriteError> {
    let level = known_level(method, level)?;
    let head_size = OffloadBinaryVersion::V3.header_size();
    let mut head = Vec::new();
    let read = binary.by_ref().take(head_size).read_to_end(&mut head);
    read.map_err(unread)?;
    let header = uncompressed_header(&head, size);
    let header = header.ok_or(OffloadBinaryWriteError::NotVersion3)?;
    let start = out.stream_position().map_err(failed)?;
    out.write_all(&head).map_err(failed)?;
    let mut encoder = Encoder::new(
        method,
        Some(level),
        NonZeroU32::MIN,
        size.saturating_sub(head_size),
        &mut *out,
    )
    .map_err(failed)?
    .ok_or(OffloadBinaryWriteError::NotBuilt { method })?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let part = read_part(&mut binary, &mut buffer).map_err(unread)?;
        if part.is_empty() {
            break;
        }
        encoder.write_all(part).map_err(failed)?;
    }
    encoder.finish().map_err(failed)?;
    let end = out.stream_position().map_err(failed)?;
    let compressed_size = end.saturating_sub(start);
    let padding = Alignment::EIGHT.padding(compressed_size);
    io::copy(&mut io::repeat(0).take(padding), out).map_err(failed)?;
    head.clear();
    BinaryHeader {
        size: compressed_size,
        ..header
    }
    .write(&mut head);
    HeaderEnd {
        inflated_size: size,
    }
    .write(&mut head);
    out.seek(SeekFrom::Start(start)).map_err(failed)?;
    out.write_all(&head).map_err(failed)?;
    let end = end.saturating_add(padding);
    out.seek(SeekFrom::Start(end)).map_err(failed)?;
    Ok(())
}

/// Returns the level, or LLVM's default.
fn known_level(method: Method, level: Option<i32>) -> Result<i32, OffloadBinaryWriteError> {
    // LLVM's range of levels and its default.
    let (least, most, default) = match method {
        Method::Zlib => (0, 9, 6),
        Method::Zstd => (-5, 22, 5),
    };
    let level = level.unwrap_or(default);
    match (least..=most).contains(&level) {
        true => Ok(level),
        false => Err(OffloadBinaryWriteError::Level {
            method,
            level,
            least,
            most,
        }),
    }
}

/// Reads the header of an uncompressed offload binary of version 3 and that size; its entries follow the header.
fn uncompressed_header(head: &[u8], size: u64) -> Option<BinaryHeader> {
    let mut cursor = Cursor::new(head, 0..head.len() as u64);
    let header = BinaryHeader::read(&mut cursor).ok()?;
    let end = HeaderEnd::read(&mut cursor).ok()?;
    let version = OffloadBinaryVersion::V3;
    let expected = (MAGIC, version.raw(), size, version.header_size(), 0);
    let found = (
        header.magic,
        header.version,
        header.size,
        header.entries_offset,
        end.inflated_size,
    );
    (found == expected).then_some(header)
}

fn unread(problem: io::Error) -> OffloadBinaryWriteError {
    let message = problem.to_string();
    OffloadBinaryWriteError::Input { message }
}

/// Tells whether the output or the library failed.
fn failed(problem: io::Error) -> OffloadBinaryWriteError {
    let message = problem.to_string();
    match problem.kind() {
        // Errors of the libraries have neither a system error number nor a kind.
        io::ErrorKind::Other => OffloadBinaryWriteError::Compressor { message },
        _ => OffloadBinaryWriteError::Output { message },
    }
}
