//! Joins small pieces of an output into large writes.
//!
//! The system copies a large range from file to file without this process's memory. That costs several times as much
//! as a read and a share of a large write if the range is small: an archive has thousands of headers and images.

use std::fs::File;
use std::io;
use std::ops::Range;

use crate::files::CopyError;
use crate::llvm_tool::sources::CopySource;
use crate::platform::FileExt;

/// Size of the buffer in bytes.
const BUFFER: usize = 256 << 10;

/// Largest range that is read into the buffer, in bytes.
const SMALL: u64 = 64 << 10;

/// Writes pieces one after the other, from the start of a file.
pub(super) struct Gathered<'a> {
    file: &'a File,
    /// The pieces that wait, and bytes of earlier ones: zeros before each read would cost a share of the time.
    buffer: Vec<u8>,
    /// Size of the pieces that wait.
    waiting: usize,
    /// Offset of the buffer's bytes in the file.
    start: u64,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            waiting: 0,
            start: 0,
        }
    }

    /// Adds bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.room(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Adds a range of a source.
    pub(super) fn copy(
        &mut self,
        source: CopySource<'_>,
        range: Range<u64>,
    ) -> Result<(), CopyError> {
        let size = range.end.saturating_sub(range.start);
        let small = usize::try_from(size).ok().filter(|_| size <= SMALL);
        let Some(small) = small else {
            self.flush().map_err(CopyError::Write)?;
            source.copy(range, self.file, self.start)?;
            self.start += size;
            return Ok(());
        };
        let room = self.room(small).map_err(CopyError::Write)?;
        let read = source.read(room, range.start);
        read.map_err(CopyError::Read)
    }

    /// Skips bytes of the file, which are zeros already.
    pub(super) fn skip(&mut self, size: u64) -> io::Result<()> {
        match usize::try_from(size) {
            Ok(small) if size <= SMALL => self.room(small)?.fill(0),
            _ => {
                self.flush()?;
                self.start += size;
            }
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }

    /// Returns the place of the next piece in the buffer.
    fn room(&mut self, size: usize) -> io::Result<&mut [u8]> {
        if self.waiting + size > BUFFER {
            self.flush()?;
        }
        let start = self.waiting;
        self.waiting += size;
        if self.buffer.len() < self.waiting {
            self.buffer.resize(self.waiting, 0);
        }
        Ok(&mut self.buffer[start..self.waiting])
    }

    fn flush(&mut self) -> io::Result<()> {
        let waiting = &self.buffer[..self.waiting];
        self.file.write_all_at(waiting, self.start)?;
        self.start += waiting.len() as u64;
        self.waiting = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[test]
    fn skips_zeros_after_the_buffer_was_used() {
        let mut file = tempfile::tempfile().unwrap();
        let mut pieces = Gathered::new(&file);
        // The second piece does not fit and starts the buffer again; bytes of the first are after it.
        pieces.bytes(&[0xff; 200 << 10]).unwrap();
        pieces.bytes(&[0xff; 100 << 10]).unwrap();
        pieces.skip(100).unwrap();
        pieces.bytes(b"end").unwrap();
        pieces.finish().unwrap();
        let mut written = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut written).unwrap();
        let expected = [&[0xff; 300 << 10][..], &[0; 100], b"end"].concat();
        assert!(written == expected);
    }
}
