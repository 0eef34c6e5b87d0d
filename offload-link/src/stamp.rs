//! Detects that a file changed after the first look.

use std::fs::Metadata;
use std::time::SystemTime;

use crate::platform;

/// State of a file, which differs after it was written to or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device and inode, where the system tells them.
    file: Option<(u64, u64)>,
    /// Size in bytes.
    size: u64,
    /// Time of the last change, where the system tells it.
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            file: platform::file_number(metadata),
            size: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}
