//! Errors of the system in a form that the errors of formats can contain.

use std::fmt;
use std::io;

/// A failed read of a [`Source`](super::Source). It is `Copy`, as the errors of the formats are;
/// [`ReadCache::take_error`](super::ReadCache::take_error) returns the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceError {
    offset: Option<u64>,
    kind: io::ErrorKind,
    code: Option<i32>,
}

impl SourceError {
    /// Describes `error`, which a read of bytes from `offset` on returned; without an offset, a request for the size.
    pub(super) fn new(offset: Option<u64>, error: &io::Error) -> Self {
        let (kind, code) = (error.kind(), error.raw_os_error());
        Self { offset, kind, code }
    }

    /// Returns the offset of the bytes in the source; `None` if its size could not be read.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "cannot read at offset {offset:#x}: ")?,
            None => f.write_str("cannot read the size: ")?,
        }
        io::Error::from(*self).fmt(f)
    }
}

impl std::error::Error for SourceError {}

impl From<SourceError> for io::Error {
    fn from(problem: SourceError) -> Self {
        match problem.code {
            Some(code) => Self::from_raw_os_error(code),
            None => problem.kind.into(),
        }
    }
}
