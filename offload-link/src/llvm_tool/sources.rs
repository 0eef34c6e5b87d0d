//! Sources of images: files, and compressed bundles in them.
//!
//! Pieces name a source by its number. A compressed bundle is a source without a file: it is decompressed once for
//! all readers of its parts.

use offload_formats::escape::terminal;
use offload_formats::format::bytes::{ReadAt, ReadCache, Source};
use offload_formats::format::compressed_bundle::{self, CompressedBundle};
use offload_formats::format::pieces::{Piece, PieceSource};
use offload_formats::format::unpacked::{Scratch, Unpacked};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::LlvmToolError;
use crate::decompressed;
use crate::files::{
    self, CopyError, MemberError, Opened, Reading, ThinMember, copy_range, open_member, reading_of,
    scratch,
};
use crate::platform::FileExt;
use crate::stamp::Stamp;

/// Opened files, in order, and the compressed bundles in them.
pub(crate) struct Sources {
    list: Vec<NamedSource>,
    /// File that compressed containers are unpacked to, one after the other: an archive may have more of them than a process
    /// may have open files.
    scratch: Scratch,
    /// Size of the bundles in it.
    materialized: u64,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            scratch: scratch(),
            materialized: 0,
        }
    }
}

/// A file or a compressed bundle that pieces refer to.
struct NamedSource {
    /// Name in messages.
    name: PathBuf,
    data: Data,
}

enum Data {
    File(SourceFile),
    /// A compressed bundle in the source with this number.
    Compressed(usize, CompressedBundle),
}

/// A file or a part of one, to be read at any offset and copied.
pub(crate) struct SourceFile {
    file: Arc<Reading>,
    /// Offset of the part in the file.
    start: u64,
    pub size: u64,
    cache: ReadCache,
}

impl Sources {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(&mut self, path: &Path) -> Result<usize, LlvmToolError> {
        self.open_up_to(path, u64::MAX)
    }

    /// Opens a file of at most `limit` bytes.
    pub(crate) fn open_up_to(&mut self, path: &Path, limit: u64) -> Result<usize, LlvmToolError> {
        let wrong = |error: io::Error| LlvmToolError::file(path, &error);
        let file = if path == Path::new("-") {
            spool(path, io::stdin().lock(), limit)?
        } else {
            let mut file = File::open(path).map_err(wrong)?;
            let metadata = file.metadata().map_err(wrong)?;
            if metadata.is_dir() {
                // This read returns the system's error.
                file.read_exact(&mut [0]).map_err(wrong)?;
            }
            // Pipes and devices cannot be read at any offset.
            if metadata.is_file() {
                file
            } else {
                spool(path, file, limit)?
            }
        };
        let source = self.add(path.to_owned(), file)?;
        match self.file(source).size {
            size if size > limit => Err(too_large(path, limit)),
            _ => Ok(source),
        }
    }

    fn add(&mut self, name: PathBuf, file: File) -> Result<usize, LlvmToolError> {
        let size = (&file).seek(SeekFrom::End(0));
        let size = size.map_err(|error| LlvmToolError::file(&name, &error))?;
        let file = Reading::new(Opened::new(&name, file, None));
        Ok(self.push(name, Data::File(SourceFile::new(file, 0, size))))
    }

    fn push(&mut self, name: PathBuf, data: Data) -> usize {
        self.list.push(NamedSource { name, data });
        self.list.len() - 1
    }

    /// Adds a file that was opened by the caller.
    pub(crate) fn add_opened(&mut self, name: &Path, file: &Arc<Reading>, size: u64) -> usize {
        let file = SourceFile::new(Arc::clone(file), 0, size);
        self.push(name.to_owned(), Data::File(file))
    }

    /// Adds a member of a thin archive without a descriptor: an archive may have more members than a process may have
    /// open files.
    pub(crate) fn add_member(&mut self, member: ThinMember) -> usize {
        let (stamp, size) = (Stamp::of(&member.metadata), member.metadata.len());
        let file = Opened::new(&member.path, member.file, Some(stamp));
        file.close();
        let file = SourceFile::new(Reading::new(file), 0, size);
        self.push(member.path, Data::File(file))
    }

    /// Opens the member with this name and size of the thin archive at `archive`.
    pub(crate) fn open_member(
        &mut self,
        archive: &Path,
        name: &[u8],
        size: u64,
    ) -> Result<usize, LlvmToolError> {
        let member = open_member(archive, name, size);
        let member = member.map_err(|problem| wrong_member(&problem, archive, name))?;
        Ok(self.add_member(member))
    }

    /// Adds a compressed bundle in a source.
    pub(crate) fn compressed(&mut self, of: usize, bundle: CompressedBundle) -> usize {
        let name = self.name(of).to_owned();
        self.push(name, Data::Compressed(of, bundle))
    }

    /// Decompresses a source that has no file.
    ///
    /// `limit` applies to all sources that are decompressed so, together: that is their size on disk.
    pub(crate) fn materialize(
        &mut self,
        source: usize,
        limit: u64,
    ) -> Result<(), compressed_bundle::CompressedBundleError> {
        let Some((bundle, file)) = self.as_compressed(source) else {
            return Ok(());
        };
        let claimed = self.materialized.saturating_add(bundle.uncompressed_size);
        if claimed > limit {
            return Err(compressed_bundle::CompressedBundleError::Limit { claimed, limit });
        }
        let compressed = file.stream(bundle.data.clone());
        let unpacked = self.scratch.keep(bundle.uncompressed_size, |out| {
            bundle.decompress_from(compressed, out).map(drop)
        })?;
        self.materialized = claimed;
        self.list[source].data = Data::File(self.unpacked(&unpacked)?);
        Ok(())
    }

    /// Returns what keeps unpacked data for [`Self::add_unpacked`].
    pub(crate) fn scratch(&self) -> Scratch {
        self.scratch.clone()
    }

    /// Adds data in [`Self::scratch`].
    pub(crate) fn add_unpacked(&mut self, name: &Path, unpacked: &Unpacked) -> io::Result<usize> {
        let file = self.unpacked(unpacked)?;
        Ok(self.push(name.to_owned(), Data::File(file)))
    }

    fn unpacked(&self, unpacked: &Unpacked) -> io::Result<SourceFile> {
        let file = reading_of(&self.scratch)?;
        Ok(SourceFile::new(
            file,
            unpacked.range().start,
            unpacked.size(),
        ))
    }

    pub(crate) fn name(&self, source: usize) -> &Path {
        &self.list[source].name
    }

    /// Returns the file of a source that was opened or materialized.
    pub(crate) fn file(&self, source: usize) -> &SourceFile {
        match &self.list[source].data {
            Data::File(file) => file,
            Data::Compressed(of, _) => self.file(*of),
        }
    }

    /// Returns the compressed bundle of a source without a file, and the file that contains it.
    pub(crate) fn as_compressed(&self, source: usize) -> Option<(&CompressedBundle, &SourceFile)> {
        match &self.list[source].data {
            Data::File(_) => None,
            Data::Compressed(of, bundle) => Some((bundle, self.file(*of))),
        }
    }

    /// Returns what threads copy from, by the numbers of the sources; `None` for compressed bundles without a file.
    pub(crate) fn to_copy(&self) -> Vec<Option<CopySource<'_>>> {
        let sources = self.list.iter().map(|source| match &source.data {
            Data::Compressed(..) => None,
            Data::File(file) => Some(CopySource {
                file: &file.file.file,
                start: file.start,
                name: &source.name,
            }),
        });
        sources.collect()
    }

    /// Returns a piece with the whole source, which has a file.
    pub(crate) fn all(&self, source: usize) -> Piece {
        let range = match self.as_compressed(source) {
            Some((bundle, _)) => 0..bundle.uncompressed_size,
            None => self.file(source).whole(),
        };
        Piece::Copy {
            input: source,
            range,
        }
    }

    /// Returns a reader of pieces, one after the other. All their sources have files. [`files::check`](crate::files::check)
    /// names the file that cannot be read.
    pub(crate) fn reader(&self, pieces: &[Piece]) -> impl Read + use<> {
        let files = (0..self.list.len()).map(|source| self.file(source).part());
        PieceSource::new(pieces.to_vec(), files.collect())
    }
}

impl SourceFile {
    fn new(file: Arc<Reading>, start: u64, size: u64) -> Self {
        let cache = ReadCache::new(file.part(start..start.saturating_add(size)));
        Self {
            file,
            start,
            size,
            cache,
        }
    }

    /// Returns the data for reading headers; the bytes stay in memory.
    pub(crate) fn data(&self) -> impl ReadAt<'_> + '_ {
        &self.cache
    }

    /// Returns a cache for one parser; the bytes stay in memory only as long as it does.
    pub(crate) fn apart(&self) -> ReadCache {
        ReadCache::new(self.part())
    }

    fn part(&self) -> impl Source + use<> {
        let end = self.start.saturating_add(self.size);
        self.file.part(self.start..end)
    }

    /// Returns the range of the whole file.
    pub(crate) fn whole(&self) -> Range<u64> {
        0..self.size
    }

    /// Returns a reader of a range that is read once.
    pub(crate) fn stream(&self, range: Range<u64>) -> impl BufRead + '_ {
        let end = self.start.saturating_add(range.end);
        self.file
            .stream(self.start.saturating_add(range.start)..end)
    }
}

/// A source that has a file, for threads that copy from it.
#[derive(Clone, Copy)]
pub(crate) struct CopySource<'a> {
    file: &'a Opened,
    /// Offset of the source in the file.
    start: u64,
    pub name: &'a Path,
}

impl CopySource<'_> {
    /// Fills the buffer with the bytes from `offset` on.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let offset = self.start.saturating_add(offset);
        self.file.read_exact_at(buffer, offset)
    }

    /// Copies a range to an offset of `out`.
    pub(crate) fn copy(&self, range: Range<u64>, out: &File, offset: u64) -> Result<(), CopyError> {
        let start = self.start.saturating_add(range.start);
        let size = range.end.saturating_sub(range.start);
        let range = start..start.saturating_add(size);
        let copied = self
            .file
            .with(|file| Ok(copy_range(file, range, out, offset)));
        copied.map_err(CopyError::Read)?
    }
}

/// Returns the error for a member of a thin archive; in LLVM's words if it cannot be opened.
pub(crate) fn wrong_member(problem: &MemberError, archive: &Path, name: &[u8]) -> LlvmToolError {
    match problem.unopened() {
        Some((path, error)) => LlvmToolError::file(path, error),
        None => LlvmToolError::input(
            archive,
            format_args!("member `{}`: {problem}", terminal(name)),
        ),
    }
}

/// Copies all bytes of `path` to an unnamed file.
fn spool(path: &Path, mut from: impl Read, limit: u64) -> Result<File, LlvmToolError> {
    let mut file = files::temporary().map_err(|error| unspooled(&error))?;
    let (mut buffer, mut size) = (vec![0; 1 << 17], 0_u64);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(file),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(LlvmToolError::file(path, &error)),
        };
        size = size.saturating_add(count as u64);
        if size > limit {
            return Err(too_large(path, limit));
        }
        let written = file.write_all(&buffer[..count]);
        written.map_err(|error| unspooled(&error))?;
    }
}

fn too_large(path: &Path, limit: u64) -> LlvmToolError {
    LlvmToolError::input(path, format_args!("expected at most {limit} bytes"))
}

/// Returns the error for a failed temporary file.
fn unspooled(error: &io::Error) -> LlvmToolError {
    let folder = std::env::temp_dir();
    let hint = decompressed::FULL;
    LlvmToolError::file(&folder, error).with_hint(Some(hint.into()))
}

/// Writes decompressed data to the outputs that need a part of it.
pub(crate) struct Parts<'a> {
    position: u64,
    parts: Vec<WantedPart<'a>>,
    /// The output that could not be written, with the error.
    pub failed: Option<(&'a Path, io::Error)>,
}

/// A range of the decompressed bundle, the file that gets it, the offset in that file, and its final name.
pub(crate) type WantedPart<'a> = (Range<u64>, &'a File, u64, &'a Path);

impl<'a> Parts<'a> {
    pub(crate) fn new(parts: Vec<WantedPart<'a>>) -> Self {
        Self {
            position: 0,
            parts,
            failed: None,
        }
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let here = self.position..self.position + bytes.len() as u64;
        for (range, file, offset, path) in &self.parts {
            let (start, end) = (range.start.max(here.start), range.end.min(here.end));
            if start < end {
                // Both offsets are in `bytes`, whose length is a usize.
                let (from, to) = ((start - here.start) as usize, (end - here.start) as usize);
                let written = file.write_all_at(&bytes[from..to], offset + (start - range.start));
                if let Err(error) = written {
                    let kind = error.kind();
                    self.failed = Some((path, error));
                    return Err(kind.into());
                }
            }
        }
        self.position = here.end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
