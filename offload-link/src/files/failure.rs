//! The first read that failed in this process, and writes of unpacked data that failed.
//!
//! Formats read through `ReadAt`, which returns `None` for a failed read: a parser cannot tell a failing disk from a damaged
//! file, and a search for device code may report none. A `ReadCache` keeps its own first error, but a tool reads a file
//! through many caches, and copies ranges without one. So each reader records the system's error here, too. After one, no
//! tool writes an output or ends successfully ([`check`]).
//!
//! What cannot be written to the temporary file for unpacked data says nothing about the input either: [`check_unpacked`].

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

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

/// Last failed write of unpacked data, until a command asks.
static UNPACKED: Mutex<Option<UnpackedFailure>> = Mutex::new(None);

/// A temporary file for unpacked data that could not be written.
#[derive(Clone, Debug)]
pub(crate) struct UnpackedFailure {
    folder: PathBuf,
    problem: String,
}

impl fmt::Display for UnpackedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, problem) = (terminal(&*self.folder), &self.problem);
        write!(f, "cannot write a temporary file in {folder}: {problem}")
    }
}

impl std::error::Error for UnpackedFailure {}

/// Records that unpacked data could not be written.
pub(super) fn note_unpacked(problem: &io::Error) {
    let mut last = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    *last = Some(UnpackedFailure {
        folder: std::env::temp_dir(),
        problem: problem.to_string(),
    });
}

/// Fails if unpacked data could not be written since the last call.
pub(crate) fn check_unpacked() -> Result<(), UnpackedFailure> {
    let mut last = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    last.take().map_or(Ok(()), Err)
}

/// Fails if any read of this process failed.
pub(crate) fn check() -> Result<(), ReadFailure> {
    FIRST.get().map_or(Ok(()), |failure| Err(failure.clone()))
}
