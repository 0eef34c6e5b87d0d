//! A file of which parts are read in any order, with the blocks that were read last.
//!
//! The formats ask for a few bytes at a time. Of an archive of a gigabyte that is hundreds of thousands of times; what
//! they ask for next is mostly beside what they asked for before.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use super::copy::shrunk;
use super::opened::Opened;
use offload_formats::format::bytes::Source;

/// In bytes; most headers, and most tables of symbols, are in one.
const BLOCK: usize = 8 << 10;

/// How many stay: the start, the end and the names of an object, and those of an image in it.
const RECENT: usize = 8;

/// A file, and the blocks of it that were read last.
#[derive(Debug)]
pub(crate) struct Reading {
    pub file: Opened,
    recent: RefCell<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// Each with its number.
    blocks: Vec<(u64, Vec<u8>)>,
    /// The oldest, which is the next to go.
    oldest: usize,
}

impl Reading {
    pub(crate) fn new(file: Opened) -> Rc<Self> {
        let recent = RefCell::default();
        Rc::new(Self { file, recent })
    }

    /// The file was written to.
    pub(crate) fn forget(&self) {
        self.recent.take();
    }

    /// A part of it, as a file of its own.
    pub(crate) fn part(self: &Rc<Self>, range: Range<u64>) -> Here {
        Here {
            file: Rc::clone(self),
            range,
        }
    }

    /// # Errors
    ///
    /// When it cannot be read, or has not as much.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if buffer.len() >= BLOCK {
            return match fill(&self.file, buffer, offset)? {
                count if count < buffer.len() => Err(shrunk()),
                _ => Ok(()),
            };
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

    /// As much as is in the block that has the offset.
    fn read_block(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let recent = &mut *self.recent.borrow_mut();
        let number = offset / BLOCK as u64;
        let index = match recent.blocks.iter().position(|block| block.0 == number) {
            Some(index) => index,
            None => recent.read(&self.file, number)?,
        };
        let block = recent.blocks.get(index).map_or(&[][..], |block| &block.1);
        // Less than a block.
        let start = (offset % BLOCK as u64) as usize;
        let found = block.get(start..).unwrap_or_default();
        let count = found.len().min(buffer.len());
        buffer[..count].copy_from_slice(&found[..count]);
        Ok(count)
    }
}

/// Reads as much as there is; how much.
fn fill(file: &Opened, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset.saturating_add(count as u64)) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

impl Recent {
    /// The index of a block that was not there, in the place of the oldest.
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
        // Until it is read, it is no block.
        self.blocks[index].0 = u64::MAX;
        bytes.resize(BLOCK, 0);
        let count = fill(file, &mut bytes, number.saturating_mul(BLOCK as u64))?;
        bytes.truncate(count);
        self.blocks[index] = (number, bytes);
        Ok(index)
    }
}

/// A part of such a file, for a cache: that keeps what was read, until it is dropped.
#[derive(Debug)]
pub(crate) struct Here {
    file: Rc<Reading>,
    range: Range<u64>,
}

impl Source for Here {
    fn size(&mut self) -> Option<u64> {
        Some(self.range.end.saturating_sub(self.range.start))
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> Option<()> {
        let end = offset.checked_add(buffer.len() as u64)?;
        let offset = self.range.start.checked_add(offset)?;
        if end > self.size()? {
            return None;
        }
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|problem| self.file.file.note(offset, &problem))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use offload_formats::format::bytes::{ReadAt, ReadCache};

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
        assert!(reading.recent.borrow().blocks.len() == RECENT);
    }
}
