//! Bytes in, numbers out: the only bounds check and the only byte order of the formats.
//!
//! Everything is read through [`ReadRef`]: from a slice, or from a file of which no more is read
//! than is asked for. Offsets are from the start of that slice or file, whatever lies in it, so
//! that a range can be copied from file to file. Integers are little-endian.
//!
//! No field of a file sizes an allocation, and no two of them are added unchecked.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use object::ReadRef;

/// Something does not lie where its format says, or could not be read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// What was to be read, such as `image`.
    pub what: &'static str,
    /// Where, from the start of the file.
    pub offset: u64,
    /// Of how many bytes.
    pub size: u64,
    /// What it must not run past, from the start of the file.
    pub end: u64,
}

impl OutOfBounds {
    /// The range of `what`, when it lies before `end`.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn check(what: &'static str, offset: u64, size: u64, end: u64) -> Result<Range<u64>, Self> {
        match offset.checked_add(size) {
            Some(past) if past <= end => Ok(offset..past),
            _ => Err(Self {
                what,
                offset,
                size,
                end,
            }),
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

/// A place in a range of some data, from which fields are read in order.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'d, R> {
    data: R,
    position: u64,
    end: u64,
    lifetime: PhantomData<&'d [u8]>,
}

impl<'d, R: ReadRef<'d>> Cursor<'d, R> {
    /// At the start of a range. Of the range only what lies inside `data` counts.
    pub fn new(data: R, range: Range<u64>) -> Self {
        let len = data.len().unwrap_or(0);
        Self {
            data,
            position: range.start,
            end: range.end.min(len),
            lifetime: PhantomData,
        }
    }

    /// Where the next read starts.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What no read runs past.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// A cursor at another place of the same range.
    #[must_use]
    pub fn at(&self, position: u64) -> Self {
        Self { position, ..*self }
    }

    /// The next `size` bytes.
    ///
    /// # Errors
    ///
    /// When there are fewer.
    pub fn read(&mut self, size: u64, what: &'static str) -> Result<&'d [u8], OutOfBounds> {
        let range = OutOfBounds::check(what, self.position, size, self.end)?;
        let end = self.end;
        let bytes = self.data.read_bytes_at(range.start, size);
        let bytes = bytes.map_err(|()| OutOfBounds {
            what,
            offset: range.start,
            size,
            end,
        })?;
        self.position = range.end;
        Ok(bytes)
    }
}

/// A type that a field can have.
pub(crate) trait Field: Sized {
    /// In bytes.
    const LEN: usize;
    /// `bytes` are `LEN` many.
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
pub(crate) fn field<'d, T: Field, R: ReadRef<'d>>(
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

/// A layout: from the list of its fields come the struct, reader, writer, names in errors, and a
/// check when compiling that each field is at its offset.
macro_rules! record {
    ($(#[$attribute:meta])* struct $name:ident, $noun:literal, $len:literal bytes {
        $($offset:literal $field:ident: $ty:ty,)+
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name { $(pub(crate) $field: $ty,)+ }

        #[allow(dead_code, reason = "not every record is both read and written")]
        impl $name {
            pub(crate) const LEN: u64 = $len;

            pub(crate) fn read<'d, R: object::ReadRef<'d>>(
                cursor: &mut $crate::format::bytes::Cursor<'d, R>,
            ) -> Result<Self, $crate::format::bytes::OutOfBounds> {
                // One read of the file for the record, and if that fails, which field it is.
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

            fn read_fields<'d, R: object::ReadRef<'d>>(
                cursor: &mut $crate::format::bytes::Cursor<'d, R>,
            ) -> Result<Self, $crate::format::bytes::OutOfBounds> {
                Ok(Self { $($field: $crate::format::bytes::field(
                    cursor,
                    concat!(stringify!($field), " of ", $noun),
                )?,)+ })
            }

            pub(crate) fn write(&self, out: &mut Vec<u8>) {
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
pub(crate) use record;

/// A power of two, at whose multiples something is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment(u64);

impl Alignment {
    /// What offload binaries and their images are aligned to.
    pub const EIGHT: Self = Self(8);

    /// `value`, when it is a power of two.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value.is_power_of_two() {
            Some(Self(value))
        } else {
            None
        }
    }

    /// In bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many bytes there are from `offset` to the next multiple.
    #[must_use]
    pub const fn padding(self, offset: u64) -> u64 {
        // Two's complement: the distance up to a multiple of a power of two.
        offset.wrapping_neg() & (self.0 - 1)
    }

    /// The first multiple that is `offset` or more, when a `u64` holds it.
    #[must_use]
    pub const fn align(self, offset: u64) -> Option<u64> {
        offset.checked_add(self.padding(offset))
    }
}

/// A range of some data, read as if it were all: for readers that know no ranges.
#[derive(Clone, Copy, Debug)]
pub struct Window<R> {
    data: R,
    start: u64,
    len: u64,
}

impl<R> Window<R> {
    /// Of the range only what lies inside `data` counts.
    pub fn new<'d>(data: R, range: Range<u64>) -> Self
    where
        R: ReadRef<'d>,
    {
        let end = range.end.min(data.len().unwrap_or(0));
        Self {
            data,
            start: range.start,
            len: end.saturating_sub(range.start),
        }
    }

    fn place(&self, offset: u64, size: u64) -> Result<u64, ()> {
        let range = OutOfBounds::check("", offset, size, self.len).map_err(|_| ())?;
        self.start.checked_add(range.start).ok_or(())
    }
}

impl<'d, R: ReadRef<'d>> ReadRef<'d> for Window<R> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        self.data.read_bytes_at(self.place(offset, size)?, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        let size = range.end.checked_sub(range.start).ok_or(())?;
        let start = self.place(range.start, size)?;
        self.data
            .read_bytes_at_until(start..start.saturating_add(size), delimiter)
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
            (Alignment::new(4096).map(Alignment::get), Alignment::new(12)),
            (Some(4096), None)
        );
        assert_eq!(Alignment::new(0), None);
    }

    #[test]
    fn reads_nothing_outside_a_window() {
        let window = Window::new(BYTES, 2..6);
        assert_eq!(window.len(), Ok(4));
        assert_eq!(window.read_bytes_at(1, 3), Ok(&b"B\x01\x02"[..]));
        assert_eq!(window.read_bytes_at(1, 4), Err(()));
        assert_eq!(window.read_bytes_at(u64::MAX, 1), Err(()));
        assert_eq!(window.read_bytes_at_until(0..4, b'B'), Ok(&b"A"[..]));
        assert_eq!(window.read_bytes_at_until(0..5, b'y'), Err(()));
    }
}
