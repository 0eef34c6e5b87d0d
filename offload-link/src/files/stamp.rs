//! Detects that a file changed after the first look.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// State of a file, which differs after it was written to or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device and inode.
    file: (u64, u64),
    /// Size in bytes.
    size: u64,
    /// Time of the last change, in seconds and nanoseconds.
    modified: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}
