//! Files, with the parts of them that were read.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::{ReadAt, place_of};

/// A file, or anything else that reads at offsets, with the parts of it that were read.
///
/// A part stays in memory until the cache is dropped, unless it was read by [`ReadAt::read_once`].
///
/// Not generic: parsers are compiled once for the caches of all sources.
pub struct ReadCache {
    /// Size of the source; determined once.
    size: OnceCell<u64>,
    /// Index in `parts` of each part that was read.
    known: RefCell<HashMap<Request, usize>>,
    parts: Parts,
    source: Box<RefCell<dyn Source>>,
}

/// A source of bytes for a [`ReadCache`].
pub trait Source {
    /// Returns how many bytes there are, or `None` if that cannot be read.
    fn size(&mut self) -> Option<u64>;

    /// Fills `buffer` with the bytes from `offset` on; `None` if there are fewer or reading fails.
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> Option<()>;
}

impl<S: Read + Seek> Source for S {
    fn size(&mut self) -> Option<u64> {
        self.seek(SeekFrom::End(0)).ok()
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> Option<()> {
        self.seek(SeekFrom::Start(offset)).ok()?;
        self.read_exact(buffer).ok()
    }
}

impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").finish_non_exhaustive()
    }
}

/// Request of a reader, under which a cache keeps the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Request {
    Bytes { offset: u64, size: u64 },
    Until { offset: u64, delimiter: u8 },
}

/// Largest text before a delimiter: a reader that looks for the end of a name does not keep the rest of a file.
const LONGEST_TEXT: u64 = 4096;

/// Size of the first read for a text, which most names fit in.
const FIRST_READ: u64 = 256;

impl ReadCache {
    /// Creates an empty cache.
    pub fn new(source: impl Source + 'static) -> Self {
        Self {
            size: OnceCell::new(),
            known: RefCell::default(),
            parts: Parts::default(),
            source: Box::new(RefCell::new(source)),
        }
    }

    /// Returns a part that was read before, or else reads and keeps it.
    fn part(&self, request: Request, read: impl FnOnce() -> Option<Vec<u8>>) -> Option<&[u8]> {
        if let Some(&index) = self.known.borrow().get(&request) {
            return self.parts.get(index);
        }
        let bytes = read()?;
        let mut known = self.known.borrow_mut();
        let index = known.len();
        known.insert(request, index);
        drop(known);
        self.parts.keep(index, bytes)
    }

    /// Appends `size` bytes from `offset` on, of which the source has all.
    fn append(&self, bytes: &mut Vec<u8>, offset: u64, size: u64) -> Option<()> {
        let (start, size) = (bytes.len(), usize::try_from(size).ok()?);
        bytes.try_reserve_exact(size).ok()?;
        bytes.resize(start.checked_add(size)?, 0);
        let buffer = bytes.get_mut(start..)?;
        self.source.borrow_mut().read_exact_at(buffer, offset)
    }

    /// Reads the text at the start of `range`, which the source has.
    fn text(&self, range: Range<u64>, delimiter: u8) -> Option<Vec<u8>> {
        let end = range.end.min(range.start.saturating_add(LONGEST_TEXT));
        let (mut bytes, mut position) = (Vec::new(), range.start);
        while position < end {
            let (checked, size) = (bytes.len(), FIRST_READ.min(end - position));
            self.append(&mut bytes, position, size)?;
            if let Some(length) = place_of(delimiter, bytes.get(checked..)?) {
                bytes.truncate(checked + length);
                return Some(bytes);
            }
            position += size;
        }
        None
    }
}

impl<'d> ReadAt<'d> for &'d ReadCache {
    fn size(self) -> Option<u64> {
        if let Some(size) = self.size.get() {
            return Some(*size);
        }
        let size = self.source.borrow_mut().size()?;
        Some(*self.size.get_or_init(|| size))
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        if size == 0 {
            return Some(&[]);
        }
        // Before memory is reserved for a size that a file may claim.
        if offset.checked_add(size)? > self.size()? {
            return None;
        }
        self.part(Request::Bytes { offset, size }, || {
            let mut bytes = Vec::new();
            self.append(&mut bytes, offset, size)?;
            Some(bytes)
        })
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        let Range { start, end } = range;
        let size = end.checked_sub(start)?;
        if end > self.size()? {
            return None;
        }
        let request = Request::Until {
            offset: start,
            delimiter,
        };
        let text = self.part(request, || self.text(range, delimiter))?;
        // A longer range may have been searched before.
        ((text.len() as u64) < size).then_some(text)
    }

    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        self.source.borrow_mut().read_exact_at(buffer, offset)
    }
}

/// Parts of a file in the order in which they were read. References to earlier parts stay valid: nothing moves.
///
/// Cells that are written once make the type safe to share, without `unsafe` code. They stand in rows, each of which is
/// twice as long as the one before it.
#[derive(Default)]
struct Parts {
    rows: Box<[OnceCell<PartRow>; 32]>,
}

type PartRow = Box<[OnceCell<Box<[u8]>>]>;

impl Parts {
    /// Returns the row of a part and the place in it.
    fn place(index: usize) -> Option<(usize, usize)> {
        let number = index.checked_add(1)?;
        let row = number.ilog2();
        Some((usize::try_from(row).ok()?, number - (1 << row)))
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let (row, place) = Self::place(index)?;
        let part = self.rows.get(row)?.get()?.get(place)?;
        part.get().map(|bytes| &**bytes)
    }

    /// Keeps the part with this index, which is the next one.
    fn keep(&self, index: usize, bytes: Vec<u8>) -> Option<&[u8]> {
        let (row, place) = Self::place(index)?;
        let parts = self.rows.get(row)?.get_or_init(|| {
            let cells = std::iter::repeat_with(OnceCell::new);
            cells.take(1 << row).collect()
        });
        Some(parts.get(place)?.get_or_init(|| bytes.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::Cursor;
    use super::*;

    /// A source that counts its reads, and the bytes that they asked for.
    #[derive(Clone, Default)]
    struct Counted {
        bytes: Vec<u8>,
        sizes: Rc<Cell<u64>>,
        reads: Rc<RefCell<Vec<(u64, usize)>>>,
    }

    impl Counted {
        fn new(bytes: &[u8]) -> Self {
            let bytes = bytes.to_vec();
            Self {
                bytes,
                ..Self::default()
            }
        }

        fn reads(&self) -> Vec<(u64, usize)> {
            self.reads.take()
        }
    }

    impl Source for Counted {
        fn size(&mut self) -> Option<u64> {
            self.sizes.set(self.sizes.get() + 1);
            Some(self.bytes.len() as u64)
        }

        fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> Option<()> {
            self.reads.borrow_mut().push((offset, buffer.len()));
            let start = usize::try_from(offset).ok()?;
            let part = self.bytes.get(start..)?.get(..buffer.len())?;
            buffer.copy_from_slice(part);
            Some(())
        }
    }

    #[test]
    fn reads_each_part_once() {
        let bytes: Vec<u8> = (0..200).collect();
        let source = Counted::new(&bytes);
        let cache = ReadCache::new(source.clone());
        // More parts than a few rows have. All of them live at the same time.
        let parts: Vec<&[u8]> = (0..100)
            .map(|offset| (&cache).read_at(offset, 7).unwrap())
            .collect();
        assert_eq!(source.reads().len(), 100);
        for (offset, part) in parts.iter().enumerate() {
            assert_eq!(*part, &bytes[offset..offset + 7]);
            let again = (&cache).read_at(offset as u64, 7).unwrap();
            assert!(std::ptr::eq(*part, again), "{offset}");
        }
        assert_eq!((&cache).size(), Some(200));
        assert_eq!((source.reads(), source.sizes.get()), (vec![], 1));
    }

    #[test]
    fn reads_nothing_outside_the_source() {
        let source = Counted::new(b"0123456789");
        let cache = &ReadCache::new(source.clone());
        for (offset, size) in [(0, 11), (10, 1), (0, u64::MAX), (u64::MAX, 1), (1, 1 << 60)] {
            assert_eq!(cache.read_at(offset, size), None, "{offset} {size}");
        }
        assert_eq!(cache.read_until(0..11, b'1'), None);
        assert_eq!(cache.read_until(Range { start: 5, end: 4 }, b'4'), None);
        assert_eq!(cache.read_at(10, 0), Some(&[][..]));
        assert_eq!(source.reads(), []);
        assert_eq!(cache.read_at(3, 7), Some(&b"3456789"[..]));
    }

    #[test]
    fn keeps_no_part_that_fails() {
        struct Failing(Counted, bool);
        impl Source for Failing {
            fn size(&mut self) -> Option<u64> {
                self.0.size()
            }
            fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> Option<()> {
                let fails = std::mem::take(&mut self.1);
                (!fails).then(|| self.0.read_exact_at(buffer, offset))?
            }
        }
        let cache = &ReadCache::new(Failing(Counted::new(b"0123456789"), true));
        assert_eq!(cache.read_at(0, 4), None);
        assert_eq!(cache.read_at(0, 4), Some(&b"0123"[..]));
    }

    #[test]
    fn reads_texts_in_steps() {
        let mut bytes = vec![b'a'; 5000];
        bytes[300] = 0;
        let source = Counted::new(&bytes);
        let cache = &ReadCache::new(source.clone());
        assert_eq!(cache.read_until(0..5000, 0), Some(&bytes[..300]));
        assert_eq!(source.reads(), [(0, 256), (256, 256)]);
        assert_eq!(cache.read_until(0..5000, 0), Some(&bytes[..300]));
        // The delimiter is part of the range.
        assert_eq!(cache.read_until(0..301, 0), Some(&bytes[..300]));
        assert_eq!(cache.read_until(0..300, 0), None);
        assert_eq!(source.reads(), []);
        // Reads stop at the end of the range, and at the longest text.
        assert_eq!(cache.read_until(290..300, 0), None);
        assert_eq!(source.reads(), [(290, 10)]);
        assert_eq!(cache.read_until(301..5000, 0), None);
        let sizes: usize = source.reads().iter().map(|(_, size)| size).sum();
        assert_eq!(sizes, 4096);
        assert_eq!(cache.read_until(4990..5000, b'a'), Some(&[][..]));
    }

    #[test]
    fn keeps_nothing_that_is_read_once() {
        let source = Counted::new(b"0123456789");
        let cache = &ReadCache::new(source.clone());
        let mut buffer = [0; 3];
        for _ in 0..2 {
            cache.read_once(&mut buffer, 2).unwrap();
            assert_eq!(&buffer, b"234");
        }
        assert_eq!(source.reads(), [(2, 3), (2, 3)]);
        assert_eq!(cache.read_once(&mut buffer, 8), None);
    }

    #[test]
    fn keeps_no_zeros_after_the_first_bytes() {
        let mut bytes = vec![0; 300_000];
        let cache = &ReadCache::new(Counted::new(&bytes));
        assert_eq!(Cursor::new(cache, 3..300_000).after_zeros(8), 300_000);
        assert_eq!(Cursor::new(cache, 3..200_001).after_zeros(8), 200_001);
        assert_eq!(cache.known.borrow().len(), 1);
        for place in [0, 7, 8, 4103, 4104, 12_296, 299_999] {
            bytes[place] = 1;
            let cache = &ReadCache::new(Counted::new(&bytes));
            let found = Cursor::new(cache, 0..300_000).after_zeros(8);
            assert_eq!(found, place as u64);
            bytes[place] = 0;
        }
    }
}
