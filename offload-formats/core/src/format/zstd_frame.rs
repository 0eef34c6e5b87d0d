//! Zstd frames. Finds their ends without decompressing: each block records its size.
//!
//! Specification: <https://datatracker.ietf.org/doc/html/rfc8878#section-3.1>.

#[cfg(feature = "tools")]
mod unpack;

#[cfg(feature = "tools")]
use std::ops::Range;

use crate::format::bytes::{Cursor, OutOfBounds, ReadAt, field};

#[cfg(feature = "tools")]
pub use unpack::{ZstdFrameError, unpack};

const FRAME: u32 = 0xfd2f_b528;
/// Magic of a frame without content; its last hexadecimal digit may be any.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Tells whether a range starts with the magic of a frame that has content.
#[cfg(feature = "tools")]
pub fn starts<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> bool {
    field(&mut Cursor::new(data, range), "magic of frame") == Ok(FRAME)
}

/// Returns the end of the frame that a range starts with; `None` if there is no complete one.
#[cfg(feature = "tools")]
pub fn first_end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let mut cursor = Cursor::new(data, range);
    let is_complete = frame(&mut cursor).ok()?;
    is_complete.then(|| cursor.position())
}

/// Returns the end of the consecutive frames at the cursor, if there is one and all are complete.
pub(super) fn end<'d, R: ReadAt<'d>>(mut cursor: Cursor<'d, R>) -> Option<u64> {
    let mut end = None;
    while frame(&mut cursor).ok()? {
        end = Some(cursor.position());
    }
    end
}

/// Skips a frame; returns false if there is none.
fn frame<'d, R: ReadAt<'d>>(cursor: &mut Cursor<'d, R>) -> Result<bool, OutOfBounds> {
    let Ok(magic) = field::<u32, _>(cursor, "magic of frame") else {
        return Ok(false);
    };
    if magic & !0xf == SKIPPABLE {
        let size: u32 = field(cursor, "size of skippable frame")?;
        skip(cursor, size.into())?;
        return Ok(true);
    }
    if magic != FRAME {
        return Ok(false);
    }
    let [descriptor]: [u8; 1] = field(cursor, "descriptor of frame")?;
    let single_segment = descriptor & 0x20 != 0;
    let has_checksum = descriptor & 0x04 != 0;
    let window = u64::from(!single_segment);
    let dictionary = match descriptor & 3 {
        3 => 4,
        size => size.into(),
    };
    let content_size = match descriptor >> 6 {
        0 => u64::from(single_segment),
        log => 1 << log,
    };
    skip(cursor, window + dictionary + content_size)?;
    loop {
        let mut header = [0; 3];
        // Blocks may be many and small: a cache would keep each header.
        cursor.read_once(&mut header, "header of block")?;
        let [low, middle, high] = header;
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let size = match header >> 1 & 3 {
            // A single byte, which is repeated.
            1 => 1,
            _ => header >> 3,
        };
        skip(cursor, size.into())?;
        if header & 1 != 0 {
            break;
        }
    }
    skip(cursor, if has_checksum { 4 } else { 0 })?;
    Ok(true)
}

fn skip<'d, R: ReadAt<'d>>(cursor: &mut Cursor<'d, R>, size: u64) -> Result<(), OutOfBounds> {
    let range = OutOfBounds::check("frame", cursor.position(), size, cursor.end())?;
    *cursor = cursor.at(range.end);
    Ok(())
}

#[cfg(all(test, feature = "tools"))]
mod tests;
