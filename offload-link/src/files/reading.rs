//! Reads parts of a file in any order and caches the blocks that were read last.
//!
//! The formats read a few bytes at a time, in an archive of a gigabyte hundreds of thousands of times. Most reads are
//! close to the previous ones.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::copy::shrunk;
use super::opened::Opened;
use offload_formats::format::bytes::{ReadCache, Source};

/// Size of a block in bytes. Most headers and most symbol tables fit into one.
const BLOCK: usize = 8 << 10;

/// Number of cached blocks: the start, the end and the names of an object, and those of an image in it.
const RECENT: usize = 8;

/// A file and its cached blocks.
#[derive(Debug)]
pub(crate) struct Reading {
    pub file: Opened,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// Cached blocks, each with its number in the file.
    blocks: Vec<(u64, Vec<u8>)>,
    /// Index of the oldest block, which is replaced next.
    oldest: usize,
}

impl Reading {
    pub(crate) fn new(file: Opened) -> Arc<Self> {
        let recent = Mutex::default();
        Arc::new(Self { file, recent })
    }

    /// Opens a whole file for a parser.
    pub(crate) fn open(path: &Path) -> io::Result<ReadCache> {
        Self::source(path).map(ReadCache::new)
    }

    /// Opens a whole file as a source of bytes.
    pub(crate) fn source(path: &Path) -> io::Result<Here> {
        let file = Opened::open(path)?;
        let size = file.metadata()?.len();
        let file = Self::new(Opened::new(path, file, None));
        Ok(file.part(0..size))
    }

    /// Returns a part of the file that is read like a file.
    pub(crate) fn part(self: &Arc<Self>, range: Range<u64>) -> Here {
        Here {
            file: Arc::clone(self),
            range,
        }
    }

    /// Returns a reader of a range that is read once; the bytes are not cached.
    pub(crate) fn stream(&self, range: Range<u64>) -> impl BufRead + '_ {
        BufReader::with_capacity(1 << 17, RangeReader { file: self, range })
    }

    /// Fills the buffer with the bytes from `offset` on, counted from the start of the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is too short.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if buffer.len() >= BLOCK {
            return self.file.read_exact_at(buffer, offset);
        }
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            let count = self.read_block(rest, at)?;
            if count == 0 {
                return Err(shrunk());
            }
            done += count;
        }
        Ok(())
    }

    /// Reads as many bytes as the block at the offset contains.
    fn read_block(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = &mut *recent;
        let number = offset / BLOCK as u64;
        let index = match recent.blocks.iter().position(|block| block.0 == number) {
            Some(index) => index,
            None => recent.read(&self.file, number)?,
        };
        let (_, block) = &recent.blocks[index];
        // The remainder is less than a block.
        let start = (offset % BLOCK as u64) as usize;
        // Of a file that became shorter, nothing.
        let found = block.get(start..).unwrap_or_default();
        let count = found.len().min(buffer.len());
        buffer[..count].copy_from_slice(&found[..count]);
        Ok(count)
    }
}

/// Reads a range of a file from its start to its end.
struct RangeReader<'a> {
    file: &'a Reading,
    /// The range that has not been read yet.
    range: Range<u64>,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.range.end.saturating_sub(self.range.start);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let len = left.min(buffer.len());
        let count = self
            .file
            .file
            .read_at(&mut buffer[..len], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}

impl Recent {
    /// Replaces the oldest block with the block `number`, and returns its index.
    fn read(&mut self, file: &Opened, number: u64) -> io::Result<usize> {
        let mut bytes = match self.blocks.len() {
            RECENT => std::mem::take(&mut self.blocks[self.oldest].1),
            _ => {
                self.blocks.push((0, Vec::new()));
                self.oldest = self.blocks.len() - 1;
                Vec::new()
            }
        };
        let index = self.oldest;
        self.oldest = (index + 1) % RECENT;
        // Invalid until the read succeeds.
        self.blocks[index].0 = u64::MAX;
        bytes.resize(BLOCK, 0);
        let count = file.fill(&mut bytes, number.saturating_mul(BLOCK as u64))?;
        bytes.truncate(count);
        self.blocks[index] = (number, bytes);
        Ok(index)
    }
}

/// A part of a [`Reading`], as input of a `ReadCache`, which keeps everything that it read until it is dropped.
#[derive(Debug)]
pub(crate) struct Here {
    file: Arc<Reading>,
    range: Range<u64>,
}

impl Source for Here {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.range.end.saturating_sub(self.range.start))
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        let size = self.size()?;
        let start = self.range.start.checked_add(offset);
        let start = start.filter(|_| end.is_some_and(|end| end <= size));
        let start = start.ok_or(io::ErrorKind::UnexpectedEof)?;
        let read = self.file.read_exact_at(buffer, start);
        read.inspect_err(|problem| self.file.file.note(start, problem))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use offload_formats::format::bytes::ReadAt;

    use super::*;

    #[test]
    fn reads_what_is_there_in_any_order() {
        let bytes: Vec<u8> = (0..20 * BLOCK + 77).map(|at| (at * 31 / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reading = Reading::new(Opened::new("".as_ref(), file, None));
        let (start, bytes) = (5, &bytes[5..]);
        let cache = ReadCache::new(reading.part(start..start + bytes.len() as u64));
        let mut at = 1;
        for step in 0..2000_usize {
            at = at * 7919 % (bytes.len() + 10);
            let size = step * step % 37 * (1 + step % 400);
            let expected = bytes.get(at..at + size);
            let read = (&cache).read_at(at as u64, size as u64);
            assert_eq!(read, expected, "{size} at {at}");
        }
        assert!(reading.recent.lock().unwrap().blocks.len() == RECENT);
    }
}
