//! The first read that failed in this process.
//!
//! Formats read through `ReadAt`, whose errors have no content: a parser cannot tell a failing disk from a damaged
//! file, and a search for device code may report none. So each reader records the system's error here. After one, no
//! tool writes an output or ends successfully ([`check`]).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use offload_formats::escape::terminal;

/// First failed read of the process. One is enough: a tool reads for one result.
static FIRST: OnceLock<ReadFailure> = OnceLock::new();

/// A file that could not be read.
#[derive(Clone, Debug)]
pub(crate) struct ReadFailure {
    path: PathBuf,
    offset: u64,
    problem: String,
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset, problem) = (terminal(&*self.path), self.offset, &self.problem);
        write!(f, "{path}: cannot read at offset {offset:#x}: {problem}")
    }
}

impl std::error::Error for ReadFailure {}

/// Records that a file could not be read.
pub(super) fn note(path: &Path, offset: u64, problem: &io::Error) {
    FIRST.get_or_init(|| ReadFailure {
        path: path.to_owned(),
        offset,
        problem: problem.to_string(),
    });
}

/// Fails if any read of this process failed.
pub(crate) fn check() -> Result<(), ReadFailure> {
    FIRST.get().map_or(Ok(()), |failure| Err(failure.clone()))
}
