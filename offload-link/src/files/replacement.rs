//! A file under a temporary name beside the one that it replaces.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::platform;
use crate::signals::{self, Watch};

/// A file under a temporary name in the folder of its final name.
pub(crate) struct Replacement {
    temporary: TempPath,
    /// Final path with links resolved.
    target: PathBuf,
    /// Final mode.
    mode: u32,
}

impl Replacement {
    /// Creates the file, empty, whose temporary name begins with `prefix`. If its final mode is known, other users cannot read it
    /// before it is complete.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn create(
        target: PathBuf,
        prefix: &str,
        mode: Option<u32>,
        watch: Option<&Watch>,
    ) -> io::Result<Self> {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // The system's error, without the temporary name.
        fs::metadata(folder)?;
        signals::survive_file_limit();
        let first = if mode.is_some() { 0o600 } else { 0o666 };
        let created = tempfile::Builder::new()
            .prefix(prefix)
            .make_in(folder, |path| {
                let create = || {
                    let mut options = OpenOptions::new();
                    options.read(true).write(true).create_new(true);
                    platform::create_with_mode(&mut options, first).open(path)
                };
                match watch {
                    Some(watch) => watch.create(create, |_| path.to_owned()),
                    None => create(),
                }
            })?;
        let (file, temporary) = created.into_parts();
        let present = platform::mode(&file.metadata()?) & 0o777;
        if present & 0o600 != 0o600 {
            platform::set_mode(&temporary, present | 0o600)?;
        }
        Ok(Self {
            temporary,
            target,
            // The content is new, so set-user-ID and similar bits are dropped.
            mode: mode.unwrap_or(present) & 0o777,
        })
    }

    /// Opens the file, readable and writable.
    pub(crate) fn open(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.temporary)
    }

    /// Sets the final mode.
    pub(crate) fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
    }

    /// Gives the complete file its mode and its name.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it; an existing file stays.
    pub(crate) fn finish(self, watch: Option<&Watch>) -> io::Result<()> {
        let Self {
            temporary,
            target,
            mode,
        } = self;
        platform::set_mode(&temporary, mode)?;
        let path = temporary.to_path_buf();
        let rename = || temporary.persist(target).map_err(|error| error.error);
        match watch {
            Some(watch) => watch.keep(&path, rename),
            None => rename(),
        }
    }
}
