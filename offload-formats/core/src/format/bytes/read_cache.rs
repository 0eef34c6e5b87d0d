//! Files, with the parts of them that were read.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::{ReadAt, SourceError, place_of};

/// A file, or anything else that reads at offsets, with the parts of it that were read.
///
/// A part stays in memory until the cache is dropped, unless it was read by [`ReadAt::read_once`].
///
/// A cache keeps the first error of its source. Searches such as `container::find` and `container::inventory` report it.
/// To the parsers of single formats, such as `Elf::parse`, a failed read is a range past the end of the file, and
/// `Magic::at` recognizes nothing: after them, call [`Self::take_error`].
///
/// ```
/// # use offload_formats_core as offload_formats;
/// use std::io;
/// use offload_formats::format::bytes::{ReadCache, Source};
/// use offload_formats::format::magic::Magic;
///
/// struct Broken;
/// impl Source for Broken {
///     fn size(&mut self) -> io::Result<u64> {
///         Ok(100)
///     }
///     fn read_exact_at(&mut self, _: &mut [u8], _: u64) -> io::Result<()> {
///         Err(io::ErrorKind::TimedOut.into())
///     }
/// }
/// let data = ReadCache::new(Broken);
/// let format = Magic::at(&data, 0..100);
/// let error = data.take_error().expect("a read failed");
/// assert_eq!((format, error.kind()), (Magic::Unknown, io::ErrorKind::TimedOut));
/// ```
///
/// Not generic: parsers are compiled once for the caches of all sources.
pub struct ReadCache {
    /// Size of the source; determined once.
    size: OnceCell<u64>,
    /// Index in `parts` of each part that was read.
    known: RefCell<HashMap<Request, usize>>,
    parts: Parts,
    /// First error of the source, with the offset of the read; without one, of the size.
    error: RefCell<Option<(Option<u64>, io::Error)>>,
    source: Box<RefCell<dyn Source + Send>>,
}

/// A source of bytes for a [`ReadCache`].
pub trait Source {
    /// Returns how many bytes there are.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be read.
    fn size(&mut self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails if there are fewer or reading fails.
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl<S: Read + Seek> Source for S {
    fn size(&mut self) -> io::Result<u64> {
        self.seek(SeekFrom::End(0))
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.read_exact(buffer)
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
    pub fn new(source: impl Source + Send + 'static) -> Self {
        Self {
            size: OnceCell::new(),
            known: RefCell::default(),
            parts: Parts::default(),
            error: RefCell::default(),
            source: Box::new(RefCell::new(source)),
        }
    }

    /// Returns the first error of the source, if a read has failed. Later reads may succeed; the next error is then the first.
    pub fn take_error(&self) -> Option<io::Error> {
        self.error.take().map(|(_, error)| error)
    }

    /// Returns the value, or keeps the error if it is the first.
    fn note<T>(&self, offset: Option<u64>, result: io::Result<T>) -> Option<T> {
        let note = |error| {
            self.error.borrow_mut().get_or_insert((offset, error));
        };
        result.map_err(note).ok()
    }

    /// Fills the buffer with bytes that the source has.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> Option<()> {
        let read = self.source.borrow_mut().read_exact_at(buffer, offset);
        self.note(Some(offset), read)
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
        let reserved = bytes.try_reserve_exact(size);
        self.note(Some(offset), reserved.map_err(io::Error::from))?;
        bytes.resize(start.checked_add(size)?, 0);
        let buffer = bytes.get_mut(start..)?;
        self.fill(buffer, offset)
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
        let size = self.source.borrow_mut().size();
        let size = self.note(None, size)?;
        Some(*self.size.get_or_init(|| size))
    }

    fn first_error(self) -> Option<SourceError> {
        let error = self.error.borrow();
        let (offset, error) = error.as_ref()?;
        Some(SourceError::new(*offset, error))
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
        let end = offset.checked_add(buffer.len() as u64)?;
        if end > self.size()? {
            return None;
        }
        self.fill(buffer, offset)
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
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::super::Cursor;
    use super::*;

    /// A source that counts its reads, and the bytes that they asked for.
    #[derive(Clone, Default)]
    struct Counted {
        bytes: Vec<u8>,
        sizes: Arc<AtomicU64>,
        reads: Arc<Mutex<Vec<(u64, usize)>>>,
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
            std::mem::take(&mut self.reads.lock().unwrap())
        }
    }

    impl Source for Counted {
        fn size(&mut self) -> io::Result<u64> {
            self.sizes.fetch_add(1, Ordering::Relaxed);
            Ok(self.bytes.len() as u64)
        }

        fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.reads.lock().unwrap().push((offset, buffer.len()));
            let bytes = &self.bytes[..];
            bytes
                .read_once(buffer, offset)
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
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
        assert_eq!(source.reads(), []);
        assert_eq!(source.sizes.load(Ordering::Relaxed), 1);
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

    /// A source whose first reads fail.
    struct Failing {
        source: Counted,
        errors: Vec<io::Error>,
    }

    impl Source for Failing {
        fn size(&mut self) -> io::Result<u64> {
            self.source.size()
        }

        fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            let error = self.errors.pop();
            error.map_or_else(|| self.source.read_exact_at(buffer, offset), Err)
        }
    }

    #[test]
    fn keeps_the_first_error_and_no_part_that_fails() {
        let source = Counted::new(b"0123456789");
        let errors = [5, 28].map(io::Error::from_raw_os_error).into();
        let cache = &ReadCache::new(Failing { source, errors });
        for outside in [11, u64::MAX] {
            assert_eq!(cache.read_at(0, outside), None);
        }
        assert_eq!(cache.read_once(&mut [0; 3], 8), None);
        assert_eq!(cache.first_error(), None);
        assert_eq!(cache.read_until(2..10, b'9'), None);
        assert_eq!(cache.read_once(&mut [0; 3], 1), None);
        let problem = cache.first_error().unwrap();
        let system = io::Error::from_raw_os_error(28);
        let expected = format!("cannot read at offset 0x2: {system}");
        assert_eq!(problem.to_string(), expected);
        assert_eq!((problem.offset(), problem.kind()), (Some(2), system.kind()));
        assert_eq!(cache.read_at(0, 4), Some(&b"0123"[..]));
        assert_eq!(cache.first_error(), Some(problem));
        assert_eq!(cache.take_error().unwrap().raw_os_error(), Some(28));
        assert_eq!(cache.first_error(), None);
    }

    #[test]
    fn keeps_the_error_of_the_size() {
        struct Endless;
        impl Source for Endless {
            fn size(&mut self) -> io::Result<u64> {
                Err(io::ErrorKind::NotSeekable.into())
            }
            fn read_exact_at(&mut self, _: &mut [u8], _: u64) -> io::Result<()> {
                unreachable!("nothing is read from data of unknown size")
            }
        }
        let cache = &ReadCache::new(Endless);
        assert_eq!((cache.size(), cache.read_at(0, 4)), (None, None));
        let problem = cache.first_error().unwrap();
        let kind = io::ErrorKind::NotSeekable;
        assert_eq!(problem.to_string(), format!("cannot read the size: {kind}"));
    }

    #[test]
    fn can_be_sent_to_another_thread() {
        let cache = ReadCache::new(Counted::new(b"0123456789"));
        assert_eq!((&cache).read_at(1, 1), Some(&b"1"[..]));
        let thread = std::thread::spawn(move || (&cache).read_at(0, 4).map(<[u8]>::to_vec));
        assert_eq!(thread.join().unwrap(), Some(b"0123".to_vec()));
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
