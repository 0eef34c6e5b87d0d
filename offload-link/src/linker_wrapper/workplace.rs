//! Folder and names of a link's intermediate files.

use std::ffi::OsString;
use std::path::PathBuf;

/// A folder for intermediate files, and the prefix of their names.
#[derive(Clone, Debug)]
pub(crate) struct Workplace {
    pub folder: PathBuf,
    pub prefix: String,
    /// Folder for temporary files of children, so none stays after a signal.
    pub temporary: Option<PathBuf>,
}

impl Workplace {
    /// Returns the variables of programs that use this folder.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let temporary = self.temporary.iter();
        temporary.map(|folder| ("TMPDIR", folder.into())).collect()
    }

    /// Returns the path of an intermediate file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if "/\\ ".contains(c) { '_' } else { c };
        let name: String = name.chars().map(safe).collect();
        self.folder.join(format!("{}{name}", self.prefix))
    }
}
