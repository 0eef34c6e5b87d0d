//! Temporary files without names, and the one for unpacked data, however many contents.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use offload_formats::format::unpacked::Scratch;

use super::failure;
use super::opened::Opened;
use super::reading::Reading;
use crate::signals;

/// Returns a scratch in a temporary file.
pub(crate) fn scratch() -> Scratch {
    Scratch::new(|| {
        let file = temporary().inspect_err(failure::note_unpacked)?;
        Ok(Box::new(NotedFile(file.into())))
    })
}

/// Creates a temporary file without a name. Later writes past the limit on the size of files are errors.
pub(crate) fn temporary() -> io::Result<File> {
    signals::survive_file_limit();
    tempfile::tempfile()
}

/// Returns the file of a scratch that [`scratch`] made, to copy from it; `None` if nothing was kept.
pub(crate) fn file_of(scratch: &Scratch) -> Option<Arc<File>> {
    let noted = scratch.file::<NotedFile>();
    noted.map(|NotedFile(file)| file)
}

/// Returns the file of a scratch, without cached blocks.
///
/// # Errors
///
/// Fails if it does not exist, because nothing was unpacked.
pub(crate) fn reading_of(scratch: &Scratch) -> io::Result<Arc<Reading>> {
    let file = file_of(scratch).ok_or(io::ErrorKind::NotFound)?;
    Ok(Reading::new(Opened::new(&std::env::temp_dir(), file, None)))
}

/// A file that records failed reads and writes: a parser takes one for damaged data.
#[derive(Clone)]
struct NotedFile(Arc<File>);

impl Read for NotedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*self.0).read(buffer);
        read.inspect_err(|problem| failure::note(&std::env::temp_dir(), 0, problem))
    }
}

impl Write for NotedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&*self.0).write(bytes);
        written.inspect_err(|problem| match problem.kind() {
            // The caller writes again.
            io::ErrorKind::Interrupted => {}
            _ => failure::note_unpacked(problem),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

impl Seek for NotedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self.0).seek(to)
    }
}
