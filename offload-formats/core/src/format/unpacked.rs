//! Unpacked bytes that do not stay in memory: they are in a file of the caller.
//!
//! Readers of compressed containers write their contents to a [`Scratch`], one after the other, and go on with
//! [`Unpacked`], a range of it. One file is enough for any number of contents.

use std::any::Any;
use std::fmt;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bytes::{ReadCache, Source};

/// A file that keeps unpacked bytes.
pub trait ScratchFile: Read + Write + Seek + Send {
    /// Returns the file for [`Scratch::file`].
    fn as_any(&self) -> &dyn Any;
}

impl<F: Read + Write + Seek + Send + 'static> ScratchFile for F {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

type Create = dyn Fn() -> io::Result<Box<dyn ScratchFile>> + Send + Sync;

/// Keeps unpacked bytes in a file that is created when it is first needed. Clones share the file.
#[derive(Clone)]
pub struct Scratch(Arc<SharedScratch>);

struct SharedScratch {
    create: Arc<Create>,
    kept: Mutex<KeptBytes>,
}

#[derive(Default)]
struct KeptBytes {
    file: Option<Box<dyn ScratchFile>>,
    /// End of the kept bytes, and of those that are being unpacked.
    end: u64,
}

impl Scratch {
    /// Keeps bytes in the file that `create` returns.
    pub fn new(
        create: impl Fn() -> io::Result<Box<dyn ScratchFile>> + Send + Sync + 'static,
    ) -> Self {
        Self::with(Arc::new(create))
    }

    /// Keeps bytes in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(|| Ok(Box::new(Cursor::new(Vec::new()))))
    }

    /// Returns the file, for callers that copy from it; `None` if nothing was kept, or the file is of another type.
    #[must_use]
    pub fn file<F: Clone + 'static>(&self) -> Option<F> {
        let kept = self.kept();
        let file = kept.file.as_ref()?;
        (**file).as_any().downcast_ref::<F>().cloned()
    }

    /// Returns another scratch of the same kind. Its bytes go when its last clone does.
    #[must_use]
    #[doc(hidden)]
    pub fn another(&self) -> Self {
        Self::with(Arc::clone(&self.0.create))
    }

    fn with(create: Arc<Create>) -> Self {
        let kept = Mutex::default();
        Self(Arc::new(SharedScratch { create, kept }))
    }

    /// Keeps the `size` bytes that `unpack` writes.
    ///
    /// # Errors
    ///
    /// Those of `unpack`, and if the file cannot be created.
    pub fn keep<E: From<io::Error>>(
        &self,
        size: u64,
        unpack: impl FnOnce(&mut ScratchWriter<'_>) -> Result<(), E>,
    ) -> Result<Unpacked, E> {
        let mut kept = self.kept();
        if kept.file.is_none() {
            kept.file = Some((self.0.create)()?);
        }
        let range = kept.end..kept.end.saturating_add(size);
        kept.end = range.end;
        drop(kept);
        unpack(&mut ScratchWriter {
            scratch: self,
            left: range.clone(),
        })?;
        let scratch = self.clone();
        Ok(Unpacked { scratch, range })
    }

    /// Keeps the bytes that `write` writes, however many. Meanwhile this scratch keeps nothing else.
    ///
    /// # Errors
    ///
    /// Those of `write`, and if the file cannot be created.
    #[cfg(feature = "tools")]
    #[doc(hidden)]
    pub fn keep_written<E: From<io::Error>>(
        &self,
        write: impl FnOnce(&mut ScratchEnd<'_>) -> Result<(), E>,
    ) -> Result<Unpacked, E> {
        let start = self.keep::<E>(0, |_| Ok(()))?.range.start;
        let mut end = ScratchEnd {
            scratch: self,
            start,
            position: 0,
            size: 0,
        };
        write(&mut end)?;
        let size = end.size;
        self.keep(size, |_| Ok(()))
    }

    /// Returns all bytes that are kept.
    #[cfg(feature = "tools")]
    #[must_use]
    pub fn all(&self) -> Unpacked {
        Unpacked {
            scratch: self.clone(),
            range: 0..self.kept().end,
        }
    }

    /// Calls `use_file` with the file at an offset.
    fn at<T>(
        &self,
        offset: u64,
        use_file: impl FnOnce(&mut dyn ScratchFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut kept = self.kept();
        let file = kept.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(offset))?;
        use_file(&mut **file)
    }

    fn kept(&self) -> MutexGuard<'_, KeptBytes> {
        // A position is set before each use.
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// Writes to a range of a scratch.
#[derive(Debug)]
pub struct ScratchWriter<'a> {
    scratch: &'a Scratch,
    /// The range that was not yet written.
    left: Range<u64>,
}

impl Write for ScratchWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.end.saturating_sub(self.left.start);
        let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let bytes = bytes.get(..count).unwrap_or_default();
        let written = self.scratch.at(self.left.start, |file| file.write(bytes))?;
        self.left.start = self.left.start.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes after the last bytes of a scratch. Positions are from there.
#[cfg(feature = "tools")]
#[derive(Debug)]
#[doc(hidden)]
pub struct ScratchEnd<'a> {
    scratch: &'a Scratch,
    /// Offset of the first byte in the file of the scratch.
    start: u64,
    position: u64,
    /// Number of bytes up to the last one that was written.
    size: u64,
}

#[cfg(feature = "tools")]
impl Write for ScratchEnd<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let offset = self.start.saturating_add(self.position);
        let written = self.scratch.at(offset, |file| file.write(bytes))?;
        self.position = self.position.saturating_add(written as u64);
        self.size = self.size.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "tools")]
impl Seek for ScratchEnd<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Unpacked bytes: a range of a scratch. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Unpacked {
    scratch: Scratch,
    range: Range<u64>,
}

impl Unpacked {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Returns the range in the file of the scratch, for callers that copy from file to file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the bytes for parsers: a cache of the parts that they read.
    #[must_use]
    pub fn open(&self) -> ReadCache {
        ReadCache::new(self.source())
    }

    /// Returns the bytes as a source.
    #[must_use]
    pub fn source(&self) -> UnpackedSource {
        let (unpacked, block) = (self.clone(), Vec::new());
        UnpackedSource {
            unpacked,
            block,
            start: 0,
        }
    }

    /// Reads a range into memory; `None` if it exceeds the bytes or cannot be read.
    #[must_use]
    pub fn read(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let size = range.end.checked_sub(range.start)?;
        if range.end > self.size() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.fill(&mut bytes, range.start).ok()?;
        Some(bytes)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        let start = self.range.start.checked_add(offset);
        let start = start.filter(|_| end.is_some_and(|end| end <= self.size()));
        let start = start.ok_or(io::ErrorKind::UnexpectedEof)?;
        // The file of an empty scratch does not exist.
        if buffer.is_empty() {
            return Ok(());
        }
        self.scratch.at(start, |file| file.read_exact(buffer))
    }
}

/// Compares the bytes. Those that cannot be read are equal to none.
impl PartialEq for Unpacked {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.scratch.0, &other.scratch.0) && self.range == other.range {
            return true;
        }
        let read = |bytes: &Self| bytes.read(&(0..bytes.size()));
        self.size() == other.size() && read(self).is_some_and(|own| read(other) == Some(own))
    }
}

impl Eq for Unpacked {}

/// Reads unpacked bytes, with a block of them in memory: headers are read field by field.
#[derive(Debug)]
pub struct UnpackedSource {
    unpacked: Unpacked,
    block: Vec<u8>,
    /// Offset of the block.
    start: u64,
}

/// Size of a block in bytes.
const BLOCK: usize = 8 << 10;

impl Source for UnpackedSource {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.unpacked.size())
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if buffer.len() >= BLOCK {
            return self.unpacked.fill(buffer, offset);
        }
        if self.part(offset, buffer.len()).is_none() {
            let left = self.unpacked.size().checked_sub(offset);
            let left = left.ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
            self.block.resize(size, 0);
            let filled = self.unpacked.fill(&mut self.block, offset);
            filled.inspect_err(|_| self.block.clear())?;
            self.start = offset;
        }
        let part = self.part(offset, buffer.len());
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl UnpackedSource {
    /// Returns a part of the block.
    fn part(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.block.get(start..start.checked_add(size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::bytes::ReadAt;

    #[test]
    fn keeps_contents_one_after_the_other() {
        let scratch = Scratch::in_memory();
        let contents = [3_usize, 0, BLOCK - 1, 3 * BLOCK].map(|size| {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 31 / 7) as u8).collect();
            let kept = scratch.keep(size as u64, |out| out.write_all(&bytes));
            (kept.unwrap(), bytes)
        });
        let mut end = 0;
        for (kept, bytes) in &contents {
            assert_eq!(kept.range(), end..end + bytes.len() as u64);
            end = kept.range().end;
            let cache = kept.open();
            for start in [0, 1, 2, BLOCK - 2, BLOCK, 2 * BLOCK + 1] {
                for size in [1, 2, BLOCK - 1, BLOCK, BLOCK + 1] {
                    let expected = bytes.get(start..start + size);
                    let (offset, size) = (start as u64, size as u64);
                    assert_eq!((&cache).read_at(offset, size), expected);
                    let read = kept.read(&(offset..offset + size));
                    assert_eq!(read.as_deref(), expected);
                }
            }
            let other = Scratch::in_memory().keep(bytes.len() as u64, |out| out.write_all(bytes));
            assert_eq!(*kept, other.unwrap());
        }
        assert_ne!(contents[0].0, contents[1].0);
    }

    #[test]
    fn writes_no_more_than_announced() {
        let scratch = Scratch::in_memory();
        let first = scratch.keep(2, |out| out.write_all(b"abc"));
        assert_eq!(first.unwrap_err().kind(), io::ErrorKind::WriteZero);
        // A content that reads an earlier one while it is unpacked.
        let outer = scratch.keep(3, |out| out.write_all(b"out")).unwrap();
        let inner = scratch.keep(3, |out| out.write_all(&outer.read(&(0..3)).unwrap()));
        assert_eq!(inner.unwrap(), outer);
        let other = scratch.keep(3, |out| out.write_all(b"oat")).unwrap();
        assert_ne!(other, outer);
        assert!(Scratch::in_memory().file::<Cursor<Vec<u8>>>().is_none());
        let other = scratch.another();
        other.keep(1, |out| out.write_all(b"a")).unwrap();
        let file = other.file::<Cursor<Vec<u8>>>().unwrap();
        assert_eq!(file.into_inner(), b"a");
        assert!(other.file::<Vec<u8>>().is_none());
        let failing = Scratch::new(|| Err(io::ErrorKind::StorageFull.into()));
        let problem = failing.keep(1, |out| out.write_all(b"a")).unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::StorageFull);
    }

    /// A file of which nothing can be read.
    struct UnreadableFile;
    impl Read for UnreadableFile {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Other.into())
        }
    }
    impl Write for UnreadableFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Seek for UnreadableFile {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn returns_no_bytes_after_a_failed_read() {
        let scratch = Scratch::new(|| Ok(Box::new(UnreadableFile)));
        let kept = scratch.keep(3, |out| out.write_all(b"abc")).unwrap();
        let mut source = kept.source();
        for _ in 0..2 {
            let failed = source.read_exact_at(&mut [0; 3], 0);
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::Other);
        }
    }
}
