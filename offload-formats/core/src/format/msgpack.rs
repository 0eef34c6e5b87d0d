//! MessagePack: consecutive values, each with its type and size first.
//!
//! | first byte            | value                | after the first byte                           |
//! |-----------------------|----------------------|------------------------------------------------|
//! | `00`–`7f`, `e0`–`ff`  | integer              | nothing: it is the byte, signed                |
//! | `80`–`8f`             | map                  | as many pairs as the low 4 bits say            |
//! | `90`–`9f`             | array                | as many values as the low 4 bits say           |
//! | `a0`–`bf`             | str                  | as many bytes as the low 5 bits say            |
//! | `c0`; `c2`, `c3`      | nil; false, true     | nothing                                        |
//! | `c4`, `c5`, `c6`      | bin                  | size of 1, 2, 4 bytes; bytes                   |
//! | `c7`, `c8`, `c9`      | ext                  | size of 1, 2, 4 bytes; kind, a byte; bytes     |
//! | `ca`, `cb`            | float                | 4, 8 bytes                                     |
//! | `cc`, `cd`, `ce`, `cf`| integer              | 1, 2, 4, 8 bytes, not signed                   |
//! | `d0`, `d1`, `d2`, `d3`| integer              | 1, 2, 4, 8 bytes, signed                       |
//! | `d4` … `d8`           | ext                  | kind, a byte; 1, 2, 4, 8, 16 bytes             |
//! | `d9`, `da`, `db`      | str                  | size of 1, 2, 4 bytes; bytes                   |
//! | `dc`, `dd`            | array                | count of 2, 4 bytes; values                    |
//! | `de`, `df`            | map                  | count of 2, 4 bytes; pairs of key and value    |
//!
//! Numbers are big-endian. `c1` is not a value.
//!
//! Accepts any bytes: this does not panic, allocates nothing, and uses no stack for nested values.
//! A count never exceeds the number of bytes left, so the values can be iterated.
//!
//! Specification: <https://github.com/msgpack/msgpack/blob/master/spec.md>.

use std::fmt;

use super::bytes::{Cursor, OutOfBounds};

/// A value; of an array or a map only its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'d> {
    /// True or false.
    Bool(bool),
    /// A non-negative integer, in any form.
    Unsigned(u64),
    /// Text, perhaps not UTF-8.
    Str(&'d [u8]),
    /// An array with that number of values, which follow.
    Array(u64),
    /// A map with that number of pairs, which follow.
    Map(u64),
    /// A value of a type that no reader here expects: the type's name.
    Other(&'static str),
}

impl Value<'_> {
    /// Returns the name of its type.
    #[must_use]
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Unsigned(_) => "integer",
            Self::Str(_) => "str",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Other(noun) => noun,
        }
    }
}

/// A position among values. After an error, it stays unchanged.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct MsgpackReader<'d> {
    cursor: Cursor<'d, &'d [u8]>,
}

impl<'d> MsgpackReader<'d> {
    /// Creates a reader at the start of `data`, which offsets refer to.
    #[must_use]
    pub fn new(data: &'d [u8]) -> Self {
        let cursor = Cursor::new(data, 0..data.len() as u64);
        Self { cursor }
    }

    /// Returns the offset of the next value.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.cursor.position()
    }

    /// Reads a value; of an array or a map only its head.
    ///
    /// # Errors
    ///
    /// Fails if the value is incomplete, or its first byte is `c1`.
    pub(crate) fn value(&mut self) -> Result<Value<'d>, MsgpackError> {
        let mut cursor = self.cursor;
        let value = value(&mut cursor)?;
        self.cursor = cursor;
        Ok(value)
    }

    /// Skips a value with all nested values.
    ///
    /// # Errors
    ///
    /// Fails if a value is incomplete, or its first byte is `c1`.
    pub fn skip(&mut self) -> Result<(), MsgpackError> {
        let mut ahead = *self;
        // Number of values to skip, at any depth.
        let mut count = 1_u64;
        while count > 0 {
            let inner = match ahead.value()? {
                Value::Array(values) => values,
                Value::Map(pairs) => pairs.saturating_mul(2),
                _ => 0,
            };
            // Each value takes at least a byte, so the count cannot overflow.
            count = (count - 1).saturating_add(inner);
        }
        *self = ahead;
        Ok(())
    }

    /// Reads an array; `item` reads one value at a time.
    ///
    /// # Errors
    ///
    /// Fails if the value is not an array, and those of `item`.
    pub fn array<E: From<MsgpackError>>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.expect("an array", |value| match value {
            Value::Array(count) => Some(count),
            _ => None,
        })?;
        (0..count).try_for_each(|_| item(self))
    }

    /// Reads a map; `entry` receives each key that is a str, and reads its value. Skips other keys
    /// with their values.
    ///
    /// # Errors
    ///
    /// Fails if the value is not a map, and those of `entry`.
    pub fn map<E: From<MsgpackError>>(
        &mut self,
        mut entry: impl FnMut(&'d [u8], &mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.expect("a map", |value| match value {
            Value::Map(count) => Some(count),
            _ => None,
        })?;
        for _ in 0..count {
            let mut ahead = *self;
            if let Value::Str(key) = ahead.value()? {
                *self = ahead;
                entry(key, self)?;
            } else {
                self.skip()?;
                self.skip()?;
            }
        }
        Ok(())
    }

    /// Reads a str, which must be UTF-8.
    ///
    /// # Errors
    ///
    /// Fails if the value is something else.
    pub fn text(&mut self) -> Result<&'d str, MsgpackError> {
        self.expect("a str of UTF-8", |value| match value {
            Value::Str(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        })
    }

    /// Reads a non-negative integer of 32 bits.
    ///
    /// # Errors
    ///
    /// Fails if the value is something else.
    pub fn number(&mut self) -> Result<u32, MsgpackError> {
        self.expect("an integer from 0 to 0xffffffff", |value| match value {
            Value::Unsigned(number) => number.try_into().ok(),
            _ => None,
        })
    }

    /// Reads a boolean.
    ///
    /// # Errors
    ///
    /// Fails if the value is something else.
    pub fn boolean(&mut self) -> Result<bool, MsgpackError> {
        self.expect("a boolean", |value| match value {
            Value::Bool(value) => Some(value),
            _ => None,
        })
    }

    fn expect<T>(
        &mut self,
        expected: &'static str,
        take: impl Fn(Value<'d>) -> Option<T>,
    ) -> Result<T, MsgpackError> {
        let mut ahead = *self;
        let value = ahead.value()?;
        let taken = take(value).ok_or(MsgpackError::Unexpected {
            offset: self.offset(),
            found: value.noun(),
            expected,
        })?;
        *self = ahead;
        Ok(taken)
    }
}

/// An error in MessagePack data. Offsets are from the start of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MsgpackError {
    /// A value is incomplete.
    OutOfBounds(OutOfBounds),
    /// An invalid first byte, `c1`.
    NoValue {
        /// Offset of the byte.
        offset: u64,
    },
    /// A value of another type, or one that does not fit.
    Unexpected {
        /// Offset of the value.
        offset: u64,
        /// Name of the found type.
        found: &'static str,
        /// Expected value.
        expected: &'static str,
    },
}

impl From<OutOfBounds> for MsgpackError {
    fn from(problem: OutOfBounds) -> Self {
        Self::OutOfBounds(problem)
    }
}

impl fmt::Display for MsgpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds(problem) => problem.fmt(f),
            Self::NoValue { offset } => write!(
                f,
                "expected a value at offset {offset:#x}, found the byte 0xc1"
            ),
            Self::Unexpected {
                offset,
                found,
                expected,
            } => write!(
                f,
                "expected {expected} at offset {offset:#x}, found {found}"
            ),
        }
    }
}

impl std::error::Error for MsgpackError {}

type SliceCursor<'d> = Cursor<'d, &'d [u8]>;

fn value<'d>(cursor: &mut SliceCursor<'d>) -> Result<Value<'d>, MsgpackError> {
    let offset = cursor.position();
    let first = unsigned(cursor, 1, "type of value")?;
    Ok(match first {
        0x00..=0x7f => Value::Unsigned(first),
        0x80..=0x8f => map(cursor, first & 0xf)?,
        0x90..=0x9f => array(cursor, first & 0xf)?,
        0xa0..=0xbf => Value::Str(cursor.read(first & 0x1f, "str")?),
        0xc0 => Value::Other("nil"),
        0xc2 => Value::Bool(false),
        0xc3 => Value::Bool(true),
        0xc4..=0xc6 => {
            let size = unsigned(cursor, 1 << (first - 0xc4), "size of bin")?;
            cursor.read(size, "bin")?;
            Value::Other("bin")
        }
        0xc7..=0xc9 => {
            let size = unsigned(cursor, 1 << (first - 0xc7), "size of ext")?;
            ext(cursor, size)?
        }
        0xca | 0xcb => {
            cursor.read(4 << (first - 0xca), "float")?;
            Value::Other("float")
        }
        0xcc..=0xcf => Value::Unsigned(unsigned(cursor, 1 << (first - 0xcc), "integer")?),
        0xd0..=0xd3 => {
            let width = 1 << (first - 0xd0);
            signed(unsigned(cursor, width, "integer")?, width)
        }
        0xd4..=0xd8 => ext(cursor, 1 << (first - 0xd4))?,
        0xd9..=0xdb => {
            let size = unsigned(cursor, 1 << (first - 0xd9), "size of str")?;
            Value::Str(cursor.read(size, "str")?)
        }
        0xdc | 0xdd => {
            let count = unsigned(cursor, 2 << (first - 0xdc), "count of array")?;
            array(cursor, count)?
        }
        0xde | 0xdf => {
            let count = unsigned(cursor, 2 << (first - 0xde), "count of map")?;
            map(cursor, count)?
        }
        0xe0..=0xff => signed(first, 1),
        // Only `c1` is left.
        _ => return Err(MsgpackError::NoValue { offset }),
    })
}

/// Reads an integer of `width` bytes, at most 8.
fn unsigned(
    cursor: &mut SliceCursor<'_>,
    width: u64,
    what: &'static str,
) -> Result<u64, OutOfBounds> {
    let bytes = cursor.read(width, what)?;
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Returns the integer with the two's complement `bits` of `width` bytes, from 1 to 8.
fn signed(bits: u64, width: u64) -> Value<'static> {
    let above = 64 - 8 * width;
    // The arithmetic shift repeats the sign.
    let number = (bits << above) as i64 >> above;
    match u64::try_from(number) {
        Ok(number) => Value::Unsigned(number),
        Err(_) => Value::Other("negative integer"),
    }
}

fn ext(cursor: &mut SliceCursor<'_>, size: u64) -> Result<Value<'static>, OutOfBounds> {
    cursor.read(1, "kind of ext")?;
    cursor.read(size, "ext")?;
    Ok(Value::Other("ext"))
}

fn array(cursor: &SliceCursor<'_>, count: u64) -> Result<Value<'static>, OutOfBounds> {
    OutOfBounds::check("values of array", cursor.position(), count, cursor.end())?;
    Ok(Value::Array(count))
}

fn map(cursor: &SliceCursor<'_>, count: u64) -> Result<Value<'static>, OutOfBounds> {
    // `count` has at most 32 bits.
    OutOfBounds::check("pairs of map", cursor.position(), 2 * count, cursor.end())?;
    Ok(Value::Map(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each first byte with what follows it, by the tables of the specification.
    fn samples() -> Vec<(Vec<u8>, Value<'static>)> {
        const TEXT: &[u8] = &[b'x'; 0x10000];
        let mut samples = vec![
            (vec![0x00], Value::Unsigned(0)),
            (vec![0x7f], Value::Unsigned(127)),
            (vec![0xe0], Value::Other("negative integer")),
            (vec![0xff], Value::Other("negative integer")),
            (vec![0xc0], Value::Other("nil")),
            (vec![0xc2], Value::Bool(false)),
            (vec![0xc3], Value::Bool(true)),
            (vec![0xca, 0xc0, 0x20, 0, 0], Value::Other("float")),
            (
                vec![0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0],
                Value::Other("float"),
            ),
            (vec![0xcc, 0xff], Value::Unsigned(0xff)),
            (vec![0xcd, 1, 2], Value::Unsigned(0x102)),
            (vec![0xce, 0xff, 2, 3, 4], Value::Unsigned(0xff02_0304)),
            (
                vec![0xcf, 0xff, 2, 3, 4, 5, 6, 7, 8],
                Value::Unsigned(0xff02_0304_0506_0708),
            ),
            (vec![0xd0, 0x80], Value::Other("negative integer")),
            (vec![0xd0, 0x7f], Value::Unsigned(127)),
            (vec![0xd1, 0xff, 0], Value::Other("negative integer")),
            (vec![0xd2, 0x80, 0, 0, 0], Value::Other("negative integer")),
            (vec![0xd2, 0, 0, 1, 0], Value::Unsigned(256)),
            (
                vec![0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0],
                Value::Other("negative integer"),
            ),
            (
                vec![0xd3, 0x7f, 255, 255, 255, 255, 255, 255, 255],
                Value::Unsigned(i64::MAX as u64),
            ),
            (vec![0xa0], Value::Str(b"")),
            (vec![0x90], Value::Array(0)),
            (vec![0x92, 0xc0, 0xc0], Value::Array(2)),
            (vec![0xdc, 0, 1, 0xc0], Value::Array(1)),
            (vec![0xdd, 0, 0, 0, 1, 0xc0], Value::Array(1)),
            (vec![0x80], Value::Map(0)),
            (vec![0x81, 0xa1, b'k', 0xc0], Value::Map(1)),
            (vec![0xde, 0, 1, 0xc0, 0xc0], Value::Map(1)),
            (vec![0xdf, 0, 0, 0, 1, 0xc0, 0xc0], Value::Map(1)),
        ];
        let mut sized = |head: &[u8], size: usize, value: fn(&'static [u8]) -> Value<'static>| {
            let bytes = &TEXT[..size];
            samples.push(([head, bytes].concat(), value(bytes)));
        };
        sized(&[0xbf], 31, Value::Str);
        sized(&[0xd9, 0xff], 0xff, Value::Str);
        sized(&[0xda, 1, 0], 0x100, Value::Str);
        sized(&[0xdb, 0, 1, 0, 0], 0x10000, Value::Str);
        sized(&[0xc4, 0xff], 0xff, |_| Value::Other("bin"));
        sized(&[0xc5, 1, 0], 0x100, |_| Value::Other("bin"));
        sized(&[0xc6, 0, 1, 0, 0], 0x10000, |_| Value::Other("bin"));
        sized(&[0xc7, 0, 0xff], 0, |_| Value::Other("ext"));
        sized(&[0xc8, 1, 0, 7], 0x100, |_| Value::Other("ext"));
        sized(&[0xc9, 0, 1, 0, 0, 7], 0x10000, |_| Value::Other("ext"));
        for (first, size) in [(0xd4, 1), (0xd5, 2), (0xd6, 4), (0xd7, 8), (0xd8, 16)] {
            sized(&[first, 0x80], size, |_| Value::Other("ext"));
        }
        samples
    }

    #[test]
    fn reads_and_skips_values_of_every_type() {
        let mut all = vec![0xdc, 0, samples().len() as u8];
        let mut firsts = Vec::new();
        for (bytes, value) in samples() {
            assert_eq!(
                MsgpackReader::new(&bytes).value(),
                Ok(value),
                "{:x}",
                bytes[0]
            );
            let mut reader = MsgpackReader::new(&bytes);
            reader.skip().unwrap();
            assert_eq!(reader.offset(), bytes.len() as u64, "{:x}", bytes[0]);
            all.extend_from_slice(&bytes);
            firsts.push(bytes[0]);
        }
        // Every first byte of a type is in the list.
        assert!((0xc0..0xe0).all(|first| first == 0xc1 || firsts.contains(&first)));
        // And with others around it, each is passed.
        let mut reader = MsgpackReader::new(&all);
        reader.skip().unwrap();
        assert_eq!(reader.offset(), all.len() as u64);
        let mut count = 0;
        let mut reader = MsgpackReader::new(&all);
        let item = |reader: &mut MsgpackReader<'_>| {
            count += 1;
            reader.skip()
        };
        reader.array(item).unwrap();
        assert_eq!(count, samples().len());
        assert_eq!(reader.offset(), all.len() as u64);
    }

    #[test]
    fn rejects_every_truncation() {
        for (bytes, _) in samples() {
            // Of long texts, the last bytes.
            for len in (0..bytes.len()).filter(|len| *len < 40 || bytes.len() - len < 4) {
                let mut reader = MsgpackReader::new(&bytes[..len]);
                let error = reader.skip().unwrap_err();
                assert!(matches!(error, MsgpackError::OutOfBounds(_)), "{error}");
                assert_eq!(reader.offset(), 0);
            }
        }
    }

    #[test]
    fn names_what_is_not_there() {
        let message = |bytes: &[u8]| MsgpackReader::new(bytes).skip().unwrap_err().to_string();
        assert_eq!(
            message(b""),
            "type of value at offset 0x0 with size 0x1 runs past the end at 0x0"
        );
        assert_eq!(
            message(b"\x92\xc0\xdb\xff\xff\xff\xffabc"),
            "str at offset 0x7 with size 0xffffffff runs past the end at 0xa"
        );
        assert_eq!(
            message(b"\xc6\xff\xff"),
            "size of bin at offset 0x1 with size 0x4 runs past the end at 0x3"
        );
        assert_eq!(
            message(b"\xdd\xff\xff\xff\xff\xc0"),
            "values of array at offset 0x5 with size 0xffffffff runs past the end at 0x6"
        );
        assert_eq!(
            message(b"\xdf\xff\xff\xff\xff\xc0"),
            "pairs of map at offset 0x5 with size 0x1fffffffe runs past the end at 0x6"
        );
        assert_eq!(
            message(b"\xc7\x02\x01a"),
            "ext at offset 0x3 with size 0x2 runs past the end at 0x4"
        );
        assert_eq!(
            message(b"\x91\xc1"),
            "expected a value at offset 0x1, found the byte 0xc1"
        );
    }

    #[test]
    fn skips_what_is_nested_without_a_stack() {
        // Arrays in arrays, a million deep: whole, cut, and with a wrong value in the depth.
        let mut bytes = vec![0x91; 1_000_000];
        let message = |bytes: &[u8]| MsgpackReader::new(bytes).skip().unwrap_err().to_string();
        assert_eq!(
            message(&bytes),
            "values of array at offset 0xf4240 with size 0x1 runs past the end at 0xf4240"
        );
        bytes.push(0xc1);
        assert_eq!(
            message(&bytes),
            "expected a value at offset 0xf4240, found the byte 0xc1"
        );
        bytes.pop();
        bytes.push(0xc0);
        let mut reader = MsgpackReader::new(&bytes);
        reader.skip().unwrap();
        assert_eq!(reader.offset(), 1_000_001);
    }

    #[test]
    fn ends_where_counts_multiply() {
        // Each claims all that is left: the counts add up to far more than there are bytes.
        let mut bytes = Vec::new();
        for left in (0..2000_u32).rev() {
            bytes.push(0xdd);
            bytes.extend_from_slice(&(left * 5).to_be_bytes());
        }
        assert!(matches!(
            MsgpackReader::new(&bytes).skip(),
            Err(MsgpackError::OutOfBounds(_))
        ));
    }

    #[test]
    fn reads_maps_with_keys_of_any_type() {
        let bytes = b"\x84\xa1a\x01\x92\xc0\xc3\x91\x07\xa1b\xa2hi\xc3\xc0";
        let mut found = Vec::new();
        let mut reader = MsgpackReader::new(bytes);
        let entry = |key: &[u8], reader: &mut MsgpackReader<'_>| {
            found.push((key.to_vec(), reader.value()?.noun()));
            Ok::<(), MsgpackError>(())
        };
        reader.map(entry).unwrap();
        assert_eq!(found, [(b"a".to_vec(), "integer"), (b"b".to_vec(), "str")]);
        assert_eq!(reader.offset(), bytes.len() as u64);
    }

    #[test]
    fn rejects_values_of_another_type() {
        let number = |bytes: &[u8]| {
            MsgpackReader::new(bytes)
                .number()
                .map_err(|error| error.to_string())
        };
        assert_eq!(number(b"\xce\xff\xff\xff\xff"), Ok(u32::MAX));
        assert_eq!(number(b"\xd3\0\0\0\0\0\0\0\x01"), Ok(1));
        for (bytes, found) in [
            (&b"\xcf\0\0\0\x01\0\0\0\0"[..], "integer"),
            (b"\xff", "negative integer"),
            (b"\xa1a", "str"),
            (b"\xca\0\0\0\0", "float"),
        ] {
            let expected =
                format!("expected an integer from 0 to 0xffffffff at offset 0x0, found {found}");
            assert_eq!(number(bytes), Err(expected));
        }
        let mut reader = MsgpackReader::new(b"\xa2\xff\xfe");
        assert_eq!(
            reader.text().unwrap_err().to_string(),
            "expected a str of UTF-8 at offset 0x0, found str"
        );
        // It is still there.
        assert_eq!(reader.value(), Ok(Value::Str(b"\xff\xfe")));
        let pass = |reader: &mut MsgpackReader<'_>| reader.skip();
        assert_eq!(
            MsgpackReader::new(b"\x80")
                .array(pass)
                .unwrap_err()
                .to_string(),
            "expected an array at offset 0x0, found map"
        );
        let pass = |_: &[u8], reader: &mut MsgpackReader<'_>| reader.skip();
        assert_eq!(
            MsgpackReader::new(b"\x90")
                .map(pass)
                .unwrap_err()
                .to_string(),
            "expected a map at offset 0x0, found array"
        );
    }
}
