//! Files that live as long as the link, in a folder that is made when the first is needed.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Error;
use crate::signals::Watch;

/// Removed with everything in it when this is dropped, on success and on failure, and when a
/// signal ends the process.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    held: OnceCell<Held>,
}

#[derive(Debug)]
struct Held {
    folder: TempDir,
    /// After the folder, so that it is watched until it is gone.
    _watch: Watch,
}

impl Temporaries {
    pub(super) fn folder(&self) -> Result<&Path, Error> {
        if let Some(held) = self.held.get() {
            return Ok(held.folder.path());
        }
        let failed = |source| Error::io("cannot make a folder for temporary files", source);
        let folder = tempfile::Builder::new()
            .prefix("offload-link-")
            .tempdir()
            .map_err(failed)?;
        let _watch = Watch::over(folder.path()).map_err(failed)?;
        let held = self.held.get_or_init(|| Held { folder, _watch });
        Ok(held.folder.path())
    }

    /// Writes a response file under a new name.
    pub(super) fn response_file(&self, content: &[u8]) -> Result<PathBuf, Error> {
        self.write_new(|count| format!("arguments-{count}.rsp"), content)
    }

    fn write_new(&self, name: impl Fn(usize) -> String, content: &[u8]) -> Result<PathBuf, Error> {
        let folder = self.folder()?;
        let taken = |path: &PathBuf| path.exists();
        let path = (0..)
            .map(|count| folder.join(name(count)))
            .find(|path| !taken(path))
            .unwrap_or_default();
        fs::write(&path, content)
            .map_err(|source| Error::io(format!("cannot write `{}`", path.display()), source))?;
        Ok(path)
    }
}
