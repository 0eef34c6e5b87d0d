//! The first read that failed in this process.
//!
//! Formats read through `ReadAt`, whose errors say nothing: a parser takes a failing disk for a damaged file, and
//! whoever asks for device code may take that for "none". So each reader records here what the system said. No tool
//! writes an output or ends successfully after that ([`check`]).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use offload_formats::escape::terminal;
use rustix::io::Errno;

/// One for the process: a tool reads for one result.
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

/// Tells whether the error means that no file has this name, for this process and every other one: the name decides,
/// not the state of the system.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    let certain = [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG, Errno::LOOP];
    // Without a number: a name with a NUL, which the standard library refuses.
    match error.raw_os_error() {
        Some(number) => certain.contains(&Errno::from_raw_os_error(number)),
        None => error.kind() == io::ErrorKind::InvalidInput,
    }
}
