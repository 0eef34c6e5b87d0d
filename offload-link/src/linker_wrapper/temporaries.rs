//! Files that live as long as the link, in a folder that is made when the first is needed.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Error;

/// Removed with everything in it when this is dropped, on success and on failure.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    folder: OnceCell<TempDir>,
}

impl Temporaries {
    pub(super) fn folder(&self) -> Result<&Path, Error> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.path());
        }
        let made = tempfile::Builder::new()
            .prefix("offload-link-")
            .tempdir()
            .map_err(|source| Error::io("cannot make a folder for temporary files", source))?;
        Ok(self.folder.get_or_init(|| made).path())
    }

    /// Writes a response file under a new name.
    pub(super) fn response_file(&self, content: &[u8]) -> Result<PathBuf, Error> {
        let folder = self.folder()?;
        let taken = |path: &PathBuf| path.exists();
        let path = (0..)
            .map(|count| folder.join(format!("arguments-{count}.rsp")))
            .find(|path| !taken(path))
            .unwrap_or_default();
        fs::write(&path, content)
            .map_err(|source| Error::io(format!("cannot write `{}`", path.display()), source))?;
        Ok(path)
    }
}
