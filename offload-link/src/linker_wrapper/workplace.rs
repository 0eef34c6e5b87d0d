//! Where the intermediate files of a link are.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where intermediate files go: a folder, and how their names begin.
#[derive(Clone, Debug)]
pub(crate) struct Workplace {
    pub folder: PathBuf,
    pub prefix: String,
    /// Folder for children's temporary files, so that none stays when a signal ends them.
    pub temporary: Option<PathBuf>,
}

impl Workplace {
    /// Variables of the programs that work here.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let temporary = self.temporary.iter();
        temporary.map(|folder| ("TMPDIR", folder.into())).collect()
    }

    /// The path of an intermediate file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if "/\\ ".contains(c) { '_' } else { c };
        let name: String = name.chars().map(safe).collect();
        self.folder.join(format!("{}{name}", self.prefix))
    }
}
