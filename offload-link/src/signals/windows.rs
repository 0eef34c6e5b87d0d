//! Windows, where the console ends this process and its children together: temporary files stay in the folder for them.

use std::io;
use std::path::{Path, PathBuf};

/// Does nothing: there is no such limit.
pub(crate) fn survive_file_limit() {}

/// Stands for the watch of signals, and watches nothing.
#[derive(Debug)]
pub(crate) struct NoWatch;

impl NoWatch {
    pub(crate) fn over(_: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn create<T>(
        &self,
        create: impl FnOnce() -> io::Result<T>,
        _: impl FnOnce(&T) -> PathBuf,
    ) -> io::Result<T> {
        create()
    }

    pub(crate) fn keep<T>(
        &self,
        _: &Path,
        rename: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        rename()
    }

    pub(crate) fn output(&self, _: &Path) {}
}
