//! The records of sections `.nv.info`.

use std::ops::Range;

use crate::format::bytes::{Cursor, OutOfBounds, ReadAt, SourceError, record};

const NO_VALUE: u8 = 1;
const BYTE: u8 = 2;
const HALF: u8 = 3;
const SIZED: u8 = 4;

record! {
    pub(crate) struct RecordHeader, "record", 4 bytes {
        0x0 format: [u8; 1],
        0x1 attribute: [u8; 1],
        0x2 value: u16,
    }
}

/// A record whose value is inside its section.
pub(super) struct InfoRecord<'d> {
    format: u8,
    pub(super) attribute: u8,
    half: u16,
    value: Cursor<'d, InfoSection<'d>>,
}

impl<'d> InfoRecord<'d> {
    /// Returns the value of two bytes.
    pub(super) fn half(&self) -> Result<u16, String> {
        self.expect(HALF).map(|()| self.half)
    }

    /// Returns the value of one byte.
    pub(super) fn byte(&self) -> Result<u8, String> {
        self.expect(BYTE).map(|()| self.half.to_le_bytes()[0])
    }

    /// Reads the value after the record. Fails if it has another size.
    pub(super) fn sized<T>(
        &self,
        read: fn(&mut Cursor<'d, InfoSection<'d>>) -> Result<T, OutOfBounds>,
    ) -> Result<T, String> {
        self.expect(SIZED)?;
        let mut cursor = self.value;
        let value = read(&mut cursor).map_err(|problem| problem.to_string())?;
        match cursor.end().checked_sub(cursor.position()) {
            Some(0) => Ok(value),
            _ => Err(format!(
                "attribute {:#x}: expected {:#x} bytes, found {:#x}",
                self.attribute,
                cursor.position() - self.value.position(),
                self.value.end() - self.value.position(),
            )),
        }
    }

    fn expect(&self, expected: u8) -> Result<(), String> {
        let Self {
            format, attribute, ..
        } = self;
        if *format == expected {
            return Ok(());
        }
        Err(format!(
            "attribute {attribute:#x}: expected format {expected}, found {format}"
        ))
    }
}

/// Reads the records of sections.
pub(super) struct Records<R> {
    data: R,
    /// End of the file.
    end: u64,
    /// Bytes that may still be read: sections do not overlap, so together they are not larger than the file.
    left: u64,
}

impl<'d, R: ReadAt<'d>> Records<R> {
    /// Creates a reader of sections in the ELF file at `range`.
    pub(super) fn new(data: R, range: Range<u64>) -> Self {
        Self {
            data,
            end: range.end,
            left: range.end.saturating_sub(range.start),
        }
    }

    /// Calls `take` for each record of a section in order. `range` is the section's offset in the data and its size.
    pub(super) fn each(
        &mut self,
        range: Option<(u64, u64)>,
        mut take: impl FnMut(&InfoRecord<'d>) -> Result<(), String>,
    ) -> Result<(), String> {
        let text = |problem: OutOfBounds| problem.to_string();
        let (offset, size) =
            range.ok_or("expected content, found a section without bytes in the file")?;
        let range = OutOfBounds::check("section", offset, size, self.end).map_err(text)?;
        let left = self.left.checked_sub(size);
        self.left = left.ok_or("the section overlaps another one")?;
        let bytes = Cursor::new(self.data, range.clone()).read(size, "section");
        let section = InfoSection {
            bytes: bytes.map_err(text)?,
            start: offset,
        };
        let mut cursor = Cursor::new(section, range);
        while cursor.position() < cursor.end() {
            let at = cursor.position();
            let wrong = |problem| format!("record at offset {at:#x}: {problem}");
            let record = Self::next(&mut cursor).map_err(wrong)?;
            take(&record).map_err(wrong)?;
        }
        Ok(())
    }

    fn next(cursor: &mut Cursor<'d, InfoSection<'d>>) -> Result<InfoRecord<'d>, String> {
        let text = |problem: OutOfBounds| problem.to_string();
        let header = RecordHeader::read(cursor).map_err(text)?;
        let RecordHeader {
            format: [format],
            attribute: [attribute],
            value: half,
        } = header;
        let size = match format {
            NO_VALUE | BYTE | HALF => 0,
            SIZED => half,
            _ => return Err(format!("format {format} is not supported (1 to 4 are)")),
        };
        let start = cursor.position();
        cursor.read(size.into(), "value").map_err(text)?;
        let value = cursor.at(start).within(start..cursor.position());
        Ok(InfoRecord {
            format,
            attribute,
            half,
            value,
        })
    }
}

/// The bytes of a section, which are read at once, by their offsets in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct InfoSection<'d> {
    bytes: &'d [u8],
    start: u64,
}

impl<'d> ReadAt<'d> for InfoSection<'d> {
    fn size(self) -> Option<u64> {
        self.start.checked_add(self.bytes.len() as u64)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        self.bytes.read_at(offset.checked_sub(self.start)?, size)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        let (start, end) = (range.start, range.end);
        let range = start.checked_sub(self.start)?..end.checked_sub(self.start)?;
        self.bytes.read_until(range, delimiter)
    }
}
