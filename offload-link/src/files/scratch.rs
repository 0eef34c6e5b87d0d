//! The temporary file for unpacked data: one for any number of contents, without a name.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use offload_formats::format::unpacked::Scratch;

use super::opened::Opened;
use super::reading::Reading;

/// Returns a scratch for data that parsers read.
pub(crate) fn scratch() -> Scratch {
    Scratch::new(|| Ok(Box::new(NotedFile(tempfile::tempfile()?.into()))))
}

/// A scratch whose data is also copied from file to file.
pub(crate) struct CopiedScratch {
    pub scratch: Scratch,
    file: Arc<OnceLock<Arc<File>>>,
}

impl Default for CopiedScratch {
    fn default() -> Self {
        let file = Arc::<OnceLock<Arc<File>>>::default();
        let created = Arc::clone(&file);
        let scratch = Scratch::new(move || {
            let file = Arc::new(tempfile::tempfile()?);
            created.get_or_init(|| Arc::clone(&file));
            Ok(Box::new(NotedFile(file)))
        });
        Self { scratch, file }
    }
}

impl CopiedScratch {
    /// Returns the file, without cached blocks.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, because nothing was unpacked.
    pub(crate) fn reading(&self) -> io::Result<Rc<Reading>> {
        let file = self.file.get().ok_or(io::ErrorKind::NotFound)?;
        let file = Opened::new(&std::env::temp_dir(), Arc::clone(file), None);
        Ok(Reading::new(file))
    }
}

/// A file that records failed reads: a parser takes one for damaged data.
struct NotedFile(Arc<File>);

impl Read for NotedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*self.0).read(buffer);
        read.inspect_err(|problem| super::failure::note(&std::env::temp_dir(), 0, problem))
    }
}

impl Write for NotedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
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
