//! Reads numbers from bytes: the only bounds check and the only byte order of the formats.
//!
//! [`ReadAt`] reads from a slice, or from a file, which is read only as far as needed. Offsets are
//! relative to the start of that slice or file, even for nested formats. So a range can be copied
//! from file to file. Integers are little-endian.
//!
//! No field of a file sizes an allocation, and fields are added with overflow checks.

use std::fmt;
use std::io::BufRead;
use std::marker::PhantomData;
use std::ops::Range;

mod read_cache;
mod source_error;

pub use read_cache::{ReadCache, Source};
pub use source_error::SourceError;

/// A range that exceeds its container, or could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfBounds {
    /// Name of the field, such as `image`.
    pub what: &'static str,
    /// Start of the range, from the start of the file.
    pub offset: u64,
    /// Size of the range in bytes.
    pub size: u64,
    /// End of the container, from the start of the file.
    pub end: u64,
}

impl OutOfBounds {
    /// Returns the error for the range of `what` in a container that ends at `end`.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(what: &'static str, offset: u64, size: u64, end: u64) -> Self {
        Self {
            what,
            offset,
            size,
            end,
        }
    }

    /// Returns the range of `what` if it ends at or before `end`.
    ///
    /// # Errors
    ///
    /// Fails if the range exceeds `end`, or its end overflows.
    #[doc(hidden)]
    pub fn check(what: &'static str, offset: u64, size: u64, end: u64) -> Result<Range<u64>, Self> {
        match offset.checked_add(size) {
            Some(past) if past <= end => Ok(offset..past),
            _ => Err(Self::new(what, offset, size, end)),
        }
    }
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            offset,
            size,
            end,
        } = self;
        write!(
            f,
            "{what} at offset {offset:#x} with size {size:#x} runs past the end at {end:#x}"
        )
    }
}

impl std::error::Error for OutOfBounds {}

/// Bytes that are read in parts: a slice, or a file, which is read only as far as needed.
///
/// Implement it for a reference to a type that keeps the bytes it has read, because they live as
/// long as the reference. [`ReadCache`] implements it for anything that reads and seeks.
///
/// ```
/// # use offload_formats_core as offload_formats;
/// use offload_formats::format::bytes::ReadAt;
///
/// let bytes: &[u8] = b"\x10\xff\x10\xad rest";
/// assert_eq!(bytes.read_at(5, 4), Some(&b"rest"[..]));
/// assert_eq!(bytes.read_at(5, 5), None);
/// assert_eq!(bytes.read_until(0..9, b' '), Some(&b"\x10\xff\x10\xad"[..]));
/// ```
pub trait ReadAt<'d>: Copy {
    /// Returns how many bytes there are, or `None` if that cannot be read.
    fn size(self) -> Option<u64>;

    /// Returns the first failed read, if any: other methods return `None` for it, as for bytes that do not exist. Bytes in
    /// memory have none.
    fn first_error(self) -> Option<SourceError>;

    /// Returns `size` bytes from `offset` on, or `None` if there are fewer or reading fails.
    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]>;

    /// Returns the bytes before the first `delimiter` in `range`, or `None` if it has none or reading fails.
    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]>;

    /// Fills `buffer` with the bytes from `offset` on; `None` if there are fewer or reading fails. For bytes that are
    /// read once: a cache does not keep them.
    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        buffer.copy_from_slice(self.read_at(offset, buffer.len() as u64)?);
        Some(())
    }
}

/// Returns `result`, or the error of `data` if a read failed: a parser cannot tell a failed read from a damaged file, or
/// from one without images.
///
/// # Errors
///
/// Fails if a read failed, or with the error of `result`.
#[doc(hidden)]
pub fn unless_unread<'d, R: ReadAt<'d>, T, E>(
    data: R,
    result: Result<T, E>,
    wrap: impl FnOnce(SourceError) -> E,
) -> Result<T, E> {
    data.first_error()
        .map_or(result, |problem| Err(wrap(problem)))
}

impl<'d> ReadAt<'d> for &'d [u8] {
    fn size(self) -> Option<u64> {
        Some(self.len() as u64)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.get(start..)?.get(..usize::try_from(size).ok()?)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        let (start, end) = (range.start.try_into().ok()?, range.end.try_into().ok()?);
        let bytes = self.get::<Range<usize>>(start..end)?;
        bytes.get(..place_of(delimiter, bytes)?)
    }
}

/// Returns the index of the first `delimiter`. The standard library searches several bytes at once.
fn place_of(delimiter: u8, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let place = rest.skip_until(delimiter).ok()?.checked_sub(1)?;
    (bytes.get(place) == Some(&delimiter)).then_some(place)
}

/// A position in a range of some data, from which fields are read in order.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'d, R> {
    data: R,
    position: u64,
    end: u64,
    lifetime: PhantomData<&'d [u8]>,
}

impl<'d, R: ReadAt<'d>> Cursor<'d, R> {
    /// Creates a cursor at the start of `range`, which is cut to the size of `data`.
    pub fn new(data: R, range: Range<u64>) -> Self {
        let size = data.size().unwrap_or(0);
        Self {
            data,
            position: range.start,
            end: range.end.min(size),
            lifetime: PhantomData,
        }
    }

    /// Returns the offset of the next read.
    #[doc(hidden)]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the end of the range, which no read exceeds.
    #[doc(hidden)]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns a cursor at another position of the same range.
    #[must_use]
    #[doc(hidden)]
    pub fn at(&self, position: u64) -> Self {
        Self { position, ..*self }
    }

    /// Returns a cursor at the start of `range`, which is cut to the end of this cursor's range.
    #[must_use]
    #[doc(hidden)]
    pub fn within(&self, range: Range<u64>) -> Self {
        Self {
            position: range.start,
            end: range.end.min(self.end),
            ..*self
        }
    }

    /// Fills `buffer` with the next bytes, which are read once.
    ///
    /// # Errors
    ///
    /// If fewer bytes are left.
    pub(crate) fn read_once(
        &mut self,
        buffer: &mut [u8],
        what: &'static str,
    ) -> Result<(), OutOfBounds> {
        let size = buffer.len() as u64;
        let range = OutOfBounds::check(what, self.position, size, self.end)?;
        let read = self.data.read_once(buffer, range.start);
        read.ok_or(OutOfBounds {
            what,
            offset: range.start,
            size,
            end: self.end,
        })?;
        self.position = range.end;
        Ok(())
    }

    /// Returns the offset of the first byte that is not zero, or the end. Reads `first` bytes, then larger parts, which no
    /// cache keeps. A part that cannot be read counts as such a byte.
    pub(crate) fn after_zeros(mut self, first: u64) -> u64 {
        /// Sizes of the first part and of the largest.
        const PARTS: (usize, usize) = (0x1000, 0x1_0000);
        let other = |bytes: &[u8]| bytes.iter().position(|byte| *byte != 0);
        let start = self.position;
        // What follows the zeros is read again.
        let mut found = match self.read(first.min(self.end.saturating_sub(start)), "padding") {
            Ok(bytes) => other(bytes),
            Err(_) => return start,
        };
        let (mut start, mut buffer) = (start, Vec::new());
        while found.is_none() && self.position < self.end {
            start = self.position;
            let left = usize::try_from(self.end - start).unwrap_or(usize::MAX);
            let size = (buffer.len() * 2).clamp(PARTS.0, PARTS.1);
            buffer.resize(size.min(left), 0);
            if self.read_once(&mut buffer, "padding").is_err() {
                return start;
            }
            found = other(&buffer);
        }
        found.map_or(self.position, |other| start + other as u64)
    }

    /// Reads the next `size` bytes.
    ///
    /// # Errors
    ///
    /// Fails if fewer bytes are left.
    pub fn read(&mut self, size: u64, what: &'static str) -> Result<&'d [u8], OutOfBounds> {
        let range = OutOfBounds::check(what, self.position, size, self.end)?;
        let end = self.end;
        let bytes = self.data.read_at(range.start, size);
        let bytes = bytes.ok_or(OutOfBounds {
            what,
            offset: range.start,
            size,
            end,
        })?;
        self.position = range.end;
        Ok(bytes)
    }
}

/// The type of a field.
#[doc(hidden)]
pub trait Field: Sized {
    /// Size in bytes.
    const LEN: usize;
    /// Decodes exactly `LEN` bytes.
    fn decode(bytes: &[u8]) -> Option<Self>;
    fn write(&self, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($ty:ty)+) => {$(
        impl Field for $ty {
            const LEN: usize = size_of::<$ty>();
            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$ty>::from_le_bytes)
            }
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )+};
}
integers!(u16 u32 u64);

impl<const N: usize> Field for [u8; N] {
    const LEN: usize = N;
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// Reads one field.
#[doc(hidden)]
pub fn field<'d, T: Field, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
    what: &'static str,
) -> Result<T, OutOfBounds> {
    let offset = cursor.position;
    let bytes = cursor.read(T::LEN as u64, what)?;
    let (size, end) = (T::LEN as u64, cursor.end);
    T::decode(bytes).ok_or(OutOfBounds {
        what,
        offset,
        size,
        end,
    })
}

/// Defines a record from its list of fields: the struct, its reader and writer, and the names in
/// errors. Each field's offset is checked at compile time.
#[doc(hidden)]
#[macro_export]
macro_rules! record {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident, $noun:literal, $len:literal bytes {
        $($offset:literal $field:ident: $ty:ty,)+
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $name { $($vis $field: $ty,)+ }

        #[allow(dead_code, reason = "not every record is both read and written")]
        impl $name {
            $vis const LEN: u64 = $len;

            $vis fn read<'d, R: $crate::format::bytes::ReadAt<'d>>(
                cursor: &mut $crate::format::bytes::Cursor<'d, R>,
            ) -> Result<Self, $crate::format::bytes::OutOfBounds> {
                // Reads the whole record at once. If that fails, reads each field to find the one
                // that is cut.
                let mut ahead = *cursor;
                if let Ok(bytes) = ahead.read(Self::LEN, $noun) {
                    let mut bytes = $crate::format::bytes::Cursor::new(bytes, 0..Self::LEN);
                    if let Ok(record) = Self::read_fields(&mut bytes) {
                        *cursor = ahead;
                        return Ok(record);
                    }
                }
                Self::read_fields(cursor)
            }

            fn read_fields<'d, R: $crate::format::bytes::ReadAt<'d>>(
                cursor: &mut $crate::format::bytes::Cursor<'d, R>,
            ) -> Result<Self, $crate::format::bytes::OutOfBounds> {
                Ok(Self { $($field: $crate::format::bytes::field(
                    cursor,
                    concat!(stringify!($field), " of ", $noun),
                )?,)+ })
            }

            $vis fn write(&self, out: &mut Vec<u8>) {
                $($crate::format::bytes::Field::write(&self.$field, out);)+
            }
        }

        const _: () = {
            let mut end = 0;
            $(
                assert!(end == $offset);
                end += <$ty as $crate::format::bytes::Field>::LEN;
            )+
            assert!(end as u64 == $name::LEN);
        };
    };
}
#[doc(hidden)]
pub use record;

/// A power of two that offsets are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(hidden)]
pub struct Alignment(u64);

impl Alignment {
    /// Alignment of offload binaries and their images.
    pub const EIGHT: Self = Self(8);

    /// Returns `value` as an alignment if it is a power of two.
    #[must_use]
    pub(crate) const fn new(value: u64) -> Option<Self> {
        if value.is_power_of_two() {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Returns the number of bytes from `offset` to the next multiple.
    #[must_use]
    pub const fn padding(self, offset: u64) -> u64 {
        // Two's complement: the distance up to a multiple of a power of two.
        offset.wrapping_neg() & (self.0 - 1)
    }

    /// Returns the first multiple at or after `offset`, if it fits into a `u64`.
    #[must_use]
    pub const fn align(self, offset: u64) -> Option<u64> {
        offset.checked_add(self.padding(offset))
    }
}

/// A range of some data, presented as the whole: for readers that do not support ranges.
#[derive(Clone, Copy, Debug)]
pub struct Window<R> {
    data: R,
    start: u64,
    size: u64,
}

impl<R> Window<R> {
    /// Creates a window on `range`, which is cut to the size of `data`.
    pub fn new<'d>(data: R, range: Range<u64>) -> Self
    where
        R: ReadAt<'d>,
    {
        let end = range.end.min(data.size().unwrap_or(0));
        Self {
            data,
            start: range.start,
            size: end.saturating_sub(range.start),
        }
    }

    fn place(&self, offset: u64, size: u64) -> Option<u64> {
        let range = OutOfBounds::check("", offset, size, self.size).ok()?;
        self.start.checked_add(range.start)
    }
}

impl<'d, R: ReadAt<'d>> ReadAt<'d> for Window<R> {
    fn size(self) -> Option<u64> {
        Some(self.size)
    }

    fn first_error(self) -> Option<SourceError> {
        self.data.first_error()
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        self.data.read_at(self.place(offset, size)?, size)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        let size = range.end.checked_sub(range.start)?;
        let start = self.place(range.start, size)?;
        self.data
            .read_until(start..start.saturating_add(size), delimiter)
    }

    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        let offset = self.place(offset, buffer.len() as u64)?;
        self.data.read_once(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        struct Sample, "sample", 16 bytes {
            0x0 tag: [u8; 2],
            0x2 small: u16,
            0x4 medium: u32,
            0x8 large: u64,
        }
    }

    const BYTES: &[u8] = b"xxAB\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0eyy";

    #[test]
    fn reads_fields_in_order_and_writes_them_back() {
        let mut cursor = Cursor::new(BYTES, 2..20);
        let sample = Sample::read(&mut cursor).unwrap();
        assert_eq!(sample.tag, *b"AB");
        assert_eq!((sample.small, sample.medium), (0x0201, 0x0605_0403));
        assert_eq!(sample.large, 0x0e0d_0c0b_0a09_0807);
        assert_eq!(cursor.position(), 18);
        let mut out = Vec::new();
        sample.write(&mut out);
        assert_eq!(out, BYTES[2..18]);
    }

    #[test]
    fn names_the_field_that_is_not_there() {
        let message = |range| {
            Sample::read(&mut Cursor::new(BYTES, range))
                .unwrap_err()
                .to_string()
        };
        let expected = "large of sample at offset 0xa with size 0x8 runs past the end at 0x11";
        assert_eq!(message(2..17), expected);
        let expected = "tag of sample at offset 0x13 with size 0x2 runs past the end at 0x14";
        assert_eq!(message(19..u64::MAX), expected);
        let expected = "tag of sample at offset 0x9 with size 0x2 runs past the end at 0x5";
        assert_eq!(message(Range { start: 9, end: 5 }), expected);
    }

    #[test]
    fn rejects_ranges_whose_end_no_u64_holds() {
        let error = OutOfBounds::check("image", 8, u64::MAX, u64::MAX).unwrap_err();
        let expected = "image at offset 0x8 with size 0xffffffffffffffff runs past the end at \
                        0xffffffffffffffff";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn pads_to_the_next_multiple() {
        let eight = Alignment::EIGHT;
        assert_eq!(
            [0, 1, 7, 8, 9].map(|offset| eight.padding(offset)),
            [0, 7, 1, 0, 7]
        );
        assert_eq!(eight.align(9), Some(16));
        assert_eq!(eight.align(u64::MAX), None);
        assert_eq!(
            (Alignment::new(4096).map(|page| page.0), Alignment::new(12)),
            (Some(4096), None)
        );
        assert_eq!(Alignment::new(0), None);
    }

    #[test]
    fn reads_nothing_outside_a_window() {
        let window = Window::new(BYTES, 2..6);
        assert_eq!(window.size(), Some(4));
        assert_eq!(window.read_at(1, 3), Some(&b"B\x01\x02"[..]));
        assert_eq!(window.read_at(1, 4), None);
        assert_eq!(window.read_at(u64::MAX, 1), None);
        assert_eq!(window.read_until(0..4, b'B'), Some(&b"A"[..]));
        assert_eq!(window.read_until(0..5, b'y'), None);
    }

    #[test]
    fn cuts_a_range_to_that_of_the_cursor() {
        let cursor = Cursor::new(BYTES, 2..6).within(3..99);
        assert_eq!((cursor.position(), cursor.end()), (3, 6));
        assert!(cursor.clone().read(4, "content").is_err());
    }

    #[test]
    fn reads_parts_of_slices() {
        for (range, delimiter, expected) in [
            (2..20, 1, Some(&b"AB"[..])),
            (2..5, 1, Some(b"AB")),
            (2..4, 1, None),
            (4..4, 1, None),
            (2..21, 1, None),
            (Range { start: 4, end: 2 }, 1, None),
            (18..20, b'y', Some(b"")),
            (19..20, b'x', None),
        ] {
            assert_eq!(BYTES.read_until(range.clone(), delimiter), expected);
        }
        assert_eq!(BYTES.read_at(18, 2), Some(&b"yy"[..]));
        assert_eq!(BYTES.read_at(20, 0), Some(&[][..]));
        for (offset, size) in [(18, 3), (21, 0), (u64::MAX, 1), (1, u64::MAX)] {
            assert_eq!(BYTES.read_at(offset, size), None);
        }
    }
}
