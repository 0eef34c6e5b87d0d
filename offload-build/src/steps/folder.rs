//! Folders among the files that are read, as `rerun-if-changed` of a build script may name one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns all that is below a folder, sorted; nothing if `path` is a file. Links to folders are not followed.
pub(crate) fn below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = path.is_dir().then(|| path.to_owned()).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
