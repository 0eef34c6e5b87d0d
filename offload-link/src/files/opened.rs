//! A file that stays open or is opened again for each read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::copy::shrunk;
use super::failure;
use crate::platform::{self, FileExt};
use crate::stamp::Stamp;

/// A file with its name, which several threads may read. If it has no descriptor, each read opens it: a tool may have
/// more inputs than a process may have open files.
#[derive(Debug)]
pub(crate) struct Opened {
    path: PathBuf,
    file: RwLock<Option<Arc<File>>>,
    /// State at the first look, for files that may be opened again.
    stamp: Option<Stamp>,
}

impl Opened {
    pub(crate) fn new(path: &Path, file: impl Into<Arc<File>>, stamp: Option<Stamp>) -> Self {
        Self {
            path: path.to_owned(),
            file: RwLock::new(Some(file.into())),
            stamp,
        }
    }

    /// Opens a file for reading. Does not block, unlike opening a pipe without a writer.
    pub(crate) fn open(path: &Path) -> io::Result<File> {
        platform::open(path)
    }

    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// Returns the descriptor for other readers, unless it is closed.
    pub(crate) fn shared(&self) -> Option<Arc<File>> {
        let file = self.file.read();
        file.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the descriptor; later reads open the file again.
    pub(crate) fn close(&self) {
        let file = self.file.write();
        *file.unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Calls `read` with the open file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened again or was replaced.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let file = self.file.read();
        if let Some(file) = &*file.unwrap_or_else(PoisonError::into_inner) {
            return read(file);
        }
        let file = Self::open(&self.path)?;
        let now = Stamp::of(&file.metadata()?);
        match &self.stamp {
            Some(stamp) if *stamp != now => Err(changed()),
            _ => read(&file),
        }
    }

    /// Reads like [`FileExt::read_at`].
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.read_at(buffer, offset))
    }

    /// Reads like [`fill`].
    pub(crate) fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| fill(file, buffer, offset))
    }

    /// Fills the buffer with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is too short.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.fill(buffer, offset)? {
            count if count < buffer.len() => Err(shrunk()),
            _ => Ok(()),
        }
    }

    /// Records a failed read of this file for [`failure::check`].
    pub(crate) fn note(&self, offset: u64, problem: &io::Error) {
        failure::note(&self.path, offset, problem);
    }
}

/// Fills the buffer as far as the file goes, and returns the number of bytes. One read may return fewer, for example on a file
/// system in user space.
pub(crate) fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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

/// The error for a file that changed after the first look.
pub(crate) fn changed() -> io::Error {
    io::Error::other("the file changed while it was read")
}
