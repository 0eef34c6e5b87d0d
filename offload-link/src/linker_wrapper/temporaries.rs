//! Files that live as long as the link, in a folder that is created on demand.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::linker_wrapper::error::LinkError;
use crate::platform;
use crate::signals::Watch;

/// The folder of temporary files. It is removed when this is dropped and when a signal ends the process.
#[derive(Debug, Default)]
pub(crate) struct Temporaries {
    held: OnceCell<Held>,
}

#[derive(Debug)]
struct Held {
    folder: TempDir,
    /// Dropped after the folder, so a signal can remove that to the end.
    watch: Watch,
}

impl Temporaries {
    pub(crate) fn folder(&self) -> Result<&Path, LinkError> {
        self.held().map(|held| held.folder.path())
    }

    /// Returns the folder, if it exists. The host linker's temporary files go there, too.
    pub(crate) fn existing(&self) -> Option<&Path> {
        self.held.get().map(|held| held.folder.path())
    }

    /// Registers an output for removal if a signal ends the process while the host linker writes it.
    pub(crate) fn watch_output(&self, path: &Path) -> Result<(), LinkError> {
        self.held().map(|held| held.watch.output(path))
    }

    fn held(&self) -> Result<&Held, LinkError> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let failed = |source| LinkError::io("cannot create a folder for temporary files", source);
        let folder = platform::temporary(0o700)
            .prefix("offload-link-")
            .tempdir()
            .map_err(failed)?;
        let watch = Watch::over(folder.path()).map_err(failed)?;
        Ok(self.held.get_or_init(|| Held { folder, watch }))
    }

    /// Writes a response file under a new name.
    pub(crate) fn response_file(&self, content: &[u8]) -> Result<PathBuf, LinkError> {
        let folder = self.folder()?;
        let mut count = 0;
        loop {
            let path = folder.join(format!("arguments-{count}.rsp"));
            let written = File::create_new(&path).and_then(|mut file| file.write_all(content));
            match written {
                Ok(()) => return Ok(path),
                Err(problem) if problem.kind() == ErrorKind::AlreadyExists => count += 1,
                Err(problem) => return Err(LinkError::unwritten(&path, problem)),
            }
        }
    }
}
