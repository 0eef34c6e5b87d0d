//! Whether a file is still the one that was looked at.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// What differs when a file was written to or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device and inode.
    file: (u64, u64),
    /// In bytes.
    size: u64,
    /// Of the last change, in seconds and nanoseconds.
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
