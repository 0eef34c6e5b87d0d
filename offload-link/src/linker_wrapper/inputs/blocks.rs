//! Reads a file in blocks that stay in memory, so no phase reads them again.
//!
//! No block of a large file stays, such as an archive of gigabytes: a view of a member keeps what it reads until it
//! is dropped.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;

use crate::files::{self, Opened, Reading};
use crate::platform::FileExt;
use crate::stamp::Stamp;
use offload_formats::format::bytes::{ReadAt, ReadCache, Source, SourceError};

/// A file and its blocks in memory.
#[derive(Debug)]
pub(crate) struct Blocks {
    kept: Arc<KeptBlocks>,
    /// Cache for ranges that no single block contains.
    others: ReadCache,
}

#[derive(Debug)]
struct KeptBlocks {
    file: Arc<Reading>,
    len: u64,
    /// Blocks at multiples of [`BLOCK`], up to [`KEPT`].
    blocks: Vec<OnceLock<Box<[u8]>>>,
}

/// Size of a block in bytes. Most objects have their section headers in the last one.
pub(crate) const BLOCK: usize = 8 << 10;

/// Size in bytes of the largest file whose blocks stay. Most host libraries are smaller.
const KEPT: u64 = 16 << 20;

impl Blocks {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened and read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::of(path, Opened::open(path)?)
    }

    /// Returns the blocks of an open file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub(crate) fn of(path: &Path, file: File) -> io::Result<Self> {
        let mut first = [0; BLOCK];
        let count = read_first(&file, &mut first)?;
        Self::after(path, file, &first[..count])
    }

    /// Returns the blocks of an open file whose first block was read by [`read_first`].
    ///
    /// # Errors
    ///
    /// Fails if the file is no regular one.
    pub(crate) fn after(path: &Path, file: File, first: &[u8]) -> io::Result<Self> {
        let (len, stamp) = match first.len() {
            BLOCK => {
                let metadata = file.metadata()?;
                if !metadata.is_file() {
                    return Err(not_regular());
                }
                let len = metadata.len().max(BLOCK as u64);
                (len, Some(Stamp::of(&metadata)))
            }
            count => (count as u64, None),
        };
        let mut blocks = vec![OnceLock::from(Box::from(first))];
        if len <= KEPT {
            let count = usize::try_from(len).expect("a small file's size fits in memory");
            blocks.resize_with(count.div_ceil(BLOCK).max(1), OnceLock::new);
        }
        let file = Reading::new(Opened::new(path, file, stamp));
        let kept = Arc::new(KeptBlocks { file, len, blocks });
        let others = ReadCache::new(Across(Arc::clone(&kept)));
        Ok(Self { kept, others })
    }

    /// Returns the size of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.kept.len
    }

    /// Closes the descriptor of a small file; later reads open the file again. A link may have more inputs than a
    /// process may have open files. Large files are few and read often, so they stay open.
    pub(crate) fn close(&self) {
        if self.is_kept() {
            self.kept.file.file.close();
        }
    }

    /// Returns the descriptor of a large file.
    pub(crate) fn descriptor(&self) -> Option<Arc<File>> {
        self.kept.file.file.shared()
    }

    /// Tells whether blocks stay in memory, because the file is small.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.len <= KEPT
    }

    /// Returns the stamp that detects later changes of the file; `None` if all of it is in memory.
    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        self.kept.file.file.stamp()
    }

    /// Returns a view for one parser, which keeps nothing of a large file.
    pub(crate) fn apart(&self) -> BlocksView<'_> {
        match self.is_kept() {
            true => BlocksView::Kept(self),
            false => BlocksView::Apart(ReadCache::new(self.kept.file.part(0..self.kept.len))),
        }
    }

    /// Returns bytes of the file if all of them are in memory.
    pub(crate) fn known(&self, range: Range<u64>) -> Option<&[u8]> {
        let (index, at) = block_of(range.start)?;
        let size = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let block = self.kept.blocks.get(index)?.get()?;
        block.get(at..at.checked_add(size)?)
    }
}

impl KeptBlocks {
    /// Returns a block, and reads it at the first call.
    fn block(&self, index: usize) -> io::Result<&[u8]> {
        let block = self.blocks.get(index).ok_or_else(outside)?;
        if let Some(known) = block.get() {
            return Ok(known);
        }
        let start = (index as u64).saturating_mul(BLOCK as u64);
        let rest = self.len.saturating_sub(start).min(BLOCK as u64);
        let mut bytes = vec![0; usize::try_from(rest).expect("a block fits in memory")];
        let read = |file: &File| file.read_exact_at(&mut bytes, start);
        let read = self.file.file.with(read);
        read.inspect_err(|problem| self.file.file.note(start, problem))?;
        Ok(block.get_or_init(|| bytes.into_boxed_slice()))
    }
}

/// Ranges of several blocks, without a second read of a known block.
#[derive(Debug)]
struct Across(Arc<KeptBlocks>);

impl Source for Across {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.len)
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let Self(kept) = self;
        let (index, at) = block_of(offset).ok_or_else(outside)?;
        let end = offset.checked_add(buffer.len() as u64);
        let last = end.and_then(|end| block_of(end.saturating_sub(1)));
        let (last, _) = last.ok_or_else(outside)?;
        // One read is faster for many blocks.
        if buffer.len() > BLOCK || last >= kept.blocks.len() {
            return kept.file.part(0..kept.len).read_exact_at(buffer, offset);
        }
        let start = kept.block(index)?.get(at..).ok_or_else(outside)?;
        let (one, two) = buffer.split_at_mut(start.len().min(buffer.len()));
        one.copy_from_slice(&start[..one.len()]);
        if !two.is_empty() {
            let end = kept.block(last)?.get(..two.len());
            two.copy_from_slice(end.ok_or_else(outside)?);
        }
        Ok(())
    }
}

/// Returns the error for a range that the file does not have.
fn outside() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Reads the first block of a file, and returns its size; it is shorter than [`BLOCK`] only if it is the whole file.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub(crate) fn read_first(file: &File, first: &mut [u8; BLOCK]) -> io::Result<usize> {
    let count = file.read_at(first, 0)?;
    // Another read would only say that an object ends there.
    match count == 0 || count == BLOCK || ends_with_section_headers(&first[..count]) {
        true => Ok(count),
        false => Ok(count + files::fill(file, &mut first[count..], count as u64)?),
    }
}

/// Tells whether these bytes are an ELF file up to the end of its section headers, the last part of objects.
fn ends_with_section_headers(bytes: &[u8]) -> bool {
    fn end<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<u64> {
        let header = H::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let size = u64::from(header.e_shentsize(endian)) * u64::from(header.e_shnum(endian));
        header.e_shoff(endian).into().checked_add(size)
    }
    let end =
        end::<FileHeader64<Endianness>>(bytes).or_else(|| end::<FileHeader32<Endianness>>(bytes));
    end == Some(bytes.len() as u64)
}

/// Returns the error for a device that can be read at any offset without an end.
fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::NotSeekable, "not a regular file")
}

/// Returns the index of the block with this offset, and the offset in the block.
fn block_of(offset: u64) -> Option<(usize, usize)> {
    let index = usize::try_from(offset / BLOCK as u64).ok()?;
    Some((index, usize::try_from(offset % BLOCK as u64).ok()?))
}

impl<'d> ReadAt<'d> for &'d Blocks {
    fn size(self) -> Option<u64> {
        Some(self.kept.len)
    }

    fn first_error(self) -> Option<SourceError> {
        self.others.first_error()
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        let end = offset.checked_add(size).filter(|end| *end <= self.kept.len);
        let end = end?;
        if size == 0 {
            return Some(&[]);
        }
        let (index, at) = block_of(offset)?;
        let in_one = offset / BLOCK as u64 == (end - 1) / BLOCK as u64;
        if in_one && index < self.kept.blocks.len() {
            // The other cache keeps the error of a block that cannot be read.
            if let Ok(block) = self.kept.block(index) {
                return block.get(at..at + usize::try_from(size).ok()?);
            }
        }
        self.others.read_at(offset, size)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        self.others.read_until(range, delimiter)
    }

    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        self.others.read_once(buffer, offset)
    }
}

/// A view of a file for one reader.
pub(crate) enum BlocksView<'a> {
    /// Blocks stay in memory and are shared with other readers.
    Kept(&'a Blocks),
    /// The cache is dropped with the view.
    Apart(ReadCache),
}

impl<'d> ReadAt<'d> for &'d BlocksView<'_> {
    fn size(self) -> Option<u64> {
        match self {
            BlocksView::Kept(blocks) => Some(blocks.size()),
            BlocksView::Apart(cache) => cache.size(),
        }
    }

    fn first_error(self) -> Option<SourceError> {
        match self {
            BlocksView::Kept(blocks) => blocks.first_error(),
            BlocksView::Apart(cache) => cache.first_error(),
        }
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        match self {
            BlocksView::Kept(blocks) => blocks.read_at(offset, size),
            BlocksView::Apart(cache) => cache.read_at(offset, size),
        }
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        match self {
            BlocksView::Kept(blocks) => blocks.read_until(range, delimiter),
            BlocksView::Apart(cache) => cache.read_until(range, delimiter),
        }
    }

    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        match self {
            BlocksView::Kept(blocks) => blocks.read_once(buffer, offset),
            BlocksView::Apart(cache) => cache.read_once(buffer, offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_formats::container::elf::Machine;
    use offload_formats::container::embed::elf_object;

    #[test]
    fn reads_any_part_of_a_file_of_any_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for size in [
            0,
            1,
            BLOCK - 1,
            BLOCK,
            BLOCK + 1,
            3 * BLOCK - 1,
            3 * BLOCK + 5,
        ] {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 31 / 7) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            for open in [true, false] {
                let blocks = Blocks::open(&path).unwrap();
                if !open {
                    blocks.close();
                }
                let data = &blocks;
                assert_eq!(ReadAt::size(data), Some(size as u64));
                for start in [0, 1, BLOCK - 2, BLOCK, 2 * BLOCK - 1, size] {
                    for count in [0, 1, 2, 100, BLOCK, 2 * BLOCK + 3] {
                        let expected = bytes.get(start..start + count);
                        let read = data.read_at(start as u64, count as u64);
                        assert_eq!(read, expected, "{start} {count} of {size}");
                    }
                }
                assert_eq!(data.read_at(u64::MAX, 2), None);
            }
        }
    }

    /// Linux returns a page of such a file at most, as other file systems may with any file.
    #[cfg(target_os = "linux")]
    #[test]
    fn reads_the_first_block_in_parts() {
        let path = Path::new("/proc/self/smaps");
        if std::fs::read(path).is_ok_and(|all| all.len() > 2 * BLOCK) {
            assert_eq!(Blocks::open(path).unwrap().size(), BLOCK as u64);
            let mut first = [0; BLOCK];
            let count = read_first(&Opened::open(path).unwrap(), &mut first);
            assert_eq!(count.unwrap(), BLOCK);
        }
    }

    #[test]
    fn knows_where_an_object_ends() {
        let object = elf_object(Machine::X86_64, b"image").unwrap();
        assert!(ends_with_section_headers(&object));
        let longer = [&object[..], b"\0"].concat();
        for part in [
            &object[..object.len() - 1],
            &object[..64],
            &longer,
            b"!<arch>\n",
            b"",
        ] {
            assert!(!ends_with_section_headers(part));
        }
    }

    #[test]
    fn knows_what_was_read_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![7; 2 * BLOCK]).unwrap();
        let blocks = Blocks::open(&path).unwrap();
        let (first, last) = (0..8, BLOCK as u64..BLOCK as u64 + 8);
        assert_eq!(blocks.known(first), Some(&[7; 8][..]));
        assert_eq!(blocks.known(last.clone()), None);
        (&blocks).read_at(last.start + 100, 1).unwrap();
        assert_eq!(blocks.known(last), Some(&[7; 8][..]));
    }
}
