//! Folders among the files that are read, as `rerun-if-changed` of a build script may name one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns all that is below a folder, sorted; nothing if `path` is a file. Links to folders are followed, as Cargo does, but each
/// folder is listed once: links may lead in a circle.
pub(crate) fn below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut listed = BTreeSet::new();
    let mut folders: Vec<PathBuf> = path.is_dir().then(|| path.to_owned()).into_iter().collect();
    while let Some(folder) = folders.pop() {
        if !listed.insert(fs::canonicalize(&folder)?) {
            continue;
        }
        let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        // Of two ways to a folder it is always the same one.
        entries.sort();
        folders.extend(entries.iter().filter(|path| path.is_dir()).cloned());
        found.extend(entries);
    }
    found.sort();
    Ok(found)
}
