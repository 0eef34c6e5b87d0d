//! Unpacks a frame whose uncompressed size is known from elsewhere.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use crate::format::bytes::{Cursor, ReadAt};
use crate::format::codec::{BUFFER, Decoder, Method, OnceStream, not_built, read_part};
use crate::format::unpacked::{Scratch, Unpacked};

/// Unpacks the frames in a range of `data`, which have `size` bytes uncompressed, into `scratch`.
///
/// # Errors
///
/// Fails if `size` exceeds `limit`, if a frame is damaged or the content has another size, if `scratch` fails, or if zstd is
/// not built in.
pub fn unpack<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    size: u64,
    limit: u64,
    scratch: &Scratch,
) -> Result<Unpacked, ZstdFrameError> {
    if size > limit {
        return Err(ZstdFrameError::Limit { size, limit });
    }
    scratch.keep(size, |out| unpack_to(data, range, size, out))
}

fn unpack_to<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    size: u64,
    out: &mut impl Write,
) -> Result<(), ZstdFrameError> {
    let damaged = |problem: io::Error| ZstdFrameError::Data {
        message: problem.to_string(),
    };
    let stream = OnceStream::new(Cursor::new(data, range));
    let decoder = Decoder::new(Method::Zstd, stream).map_err(damaged)?;
    let mut decoder = decoder.ok_or(ZstdFrameError::NotBuilt)?;
    let (mut found, mut buffer) = (0_u64, vec![0; BUFFER]);
    loop {
        let bytes = read_part(&mut decoder, &mut buffer).map_err(damaged)?;
        found = found.saturating_add(bytes.len() as u64);
        match bytes {
            _ if found > size => return Err(ZstdFrameError::Longer { size }),
            [] if found < size => return Err(ZstdFrameError::Shorter { size, found }),
            [] => return Ok(()),
            bytes => out.write_all(bytes)?,
        }
    }
}

/// An error while unpacking a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZstdFrameError {
    /// The expected size exceeds the caller's limit.
    Limit {
        /// Expected size in bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The frame is damaged.
    Data {
        /// Error of the library.
        message: String,
    },
    /// The content is larger than expected.
    Longer {
        /// Expected size in bytes.
        size: u64,
    },
    /// The content is smaller than expected.
    Shorter {
        /// Expected size in bytes.
        size: u64,
        /// Size of the content.
        found: u64,
    },
    /// The output cannot be written.
    Output {
        /// Kind of the system's error.
        kind: io::ErrorKind,
    },
    /// The cargo feature of zstd is off.
    NotBuilt,
}

impl fmt::Display for ZstdFrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { size, limit } => write!(
                f,
                "uncompressed size {size:#x} is more than the allowed {limit:#x}"
            ),
            Self::Data { message } => write!(f, "the zstd frame is damaged: {message}"),
            Self::Longer { size } => {
                write!(f, "expected {size:#x} bytes in the zstd frame, found more")
            }
            Self::Shorter { size, found } => write!(
                f,
                "expected {size:#x} bytes in the zstd frame, found {found:#x}"
            ),
            Self::Output { kind } => write!(f, "cannot write the content: {kind}"),
            Self::NotBuilt => not_built(Method::Zstd, f),
        }
    }
}

impl std::error::Error for ZstdFrameError {}

/// A failed write of the content.
impl From<io::Error> for ZstdFrameError {
    fn from(problem: io::Error) -> Self {
        let kind = problem.kind();
        Self::Output { kind }
    }
}
