//! A folder that is pruned into another one: its subfolders and links, and the places of its files.

use std::ffi::OsStr;
use std::fs::{self, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

use offload_formats::escape::terminal;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::prune::new_file;
use crate::files::Opened;
use crate::platform::{self, symlink};
use crate::say;

/// A folder, and the folder of the pruned files.
pub(super) struct PrunedTree<'a> {
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
}

impl PrunedTree<'_> {
    /// Returns the place of a new file.
    pub(super) fn place(&self, file: &Path) -> PathBuf {
        let relative = file.strip_prefix(self.from);
        self.to
            .join(relative.expect("the file was found in the folder"))
    }

    /// Creates the folders, and copies the links as they are.
    ///
    /// # Errors
    ///
    /// Fails if the new folder is in the old one or not empty, or something cannot be created. Links of an earlier run would lead
    /// new files out of the folder.
    pub(super) fn prepare(&self) -> Result<(), CargoOffloadError> {
        let inside = is_inside(self.to, self.from)
            .map_err(|error| CargoOffloadError::of(self.to, &error))?;
        if inside {
            let text = "the new folder is inside of the old one";
            return Err(CargoOffloadError::of(self.to, text));
        }
        if fs::read_dir(self.to).is_ok_and(|mut entries| entries.next().is_some()) {
            let text = "the new folder is not empty\nhint: remove it, or name another one";
            return Err(CargoOffloadError::of(self.to, text));
        }
        self.folder(self.from)
    }

    fn folder(&self, folder: &Path) -> Result<(), CargoOffloadError> {
        let new = self.place(folder);
        let made = fs::create_dir_all(&new).and_then(|()| {
            // The owner needs to write to it.
            let mode = platform::mode(&fs::metadata(folder)?) | 0o700;
            platform::set_mode(&new, mode)
        });
        made.map_err(|error| CargoOffloadError::of(&new, &error))?;
        let entries =
            fs::read_dir(folder).map_err(|error| CargoOffloadError::of(folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| CargoOffloadError::of(folder, &error))?;
            let path = entry.path();
            let kind = entry
                .file_type()
                .map_err(|error| CargoOffloadError::of(&path, &error))?;
            if kind.is_dir() {
                self.folder(&path)?;
            } else if kind.is_symlink() {
                copy_link(&path, &self.place(&path))
                    .map_err(|error| CargoOffloadError::of(&path, &error))?;
            } else if !kind.is_file() {
                let text = format!(
                    "{}: is not a regular file, and is not copied",
                    terminal(&*path)
                );
                say::warning("cargo offload prune", &text);
            }
        }
        Ok(())
    }
}

fn copy_link(link: &Path, new: &Path) -> io::Result<()> {
    symlink(fs::read_link(link)?, new)
}

/// Copies a file that is not pruned. Its times stay: Python compares those of sources with compiled files.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(), CargoOffloadError> {
    let old = Opened::open(from).map_err(|error| CargoOffloadError::of(from, &error))?;
    let made = new_file::create(to)?;
    let copied = made.open().and_then(|mut new| {
        io::copy(&mut &old, &mut new)?;
        let times = FileTimes::new().set_modified(old.metadata()?.modified()?);
        new.set_times(times)
    });
    copied.map_err(|error| CargoOffloadError::of(to, &error))?;
    new_file::finish(made, &Opened::new(from, old, None), to)
}

/// Tells whether a path, which may not exist yet, is in a folder.
fn is_inside(path: &Path, folder: &Path) -> io::Result<bool> {
    let folder = folder.canonicalize()?;
    let path = std::path::absolute(path)?;
    // The folders that exist may be links.
    let existing = path.ancestors().find(|part| part.exists());
    let existing = existing.unwrap_or(Path::new(OsStr::new("/")));
    Ok(existing.canonicalize()?.starts_with(folder))
}
