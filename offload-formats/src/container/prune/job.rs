//! Settings that all parts of a file have in common.

use super::choice::PruneChoice;
use crate::format::unpacked::Scratch;

/// The choice, and where contents are unpacked.
#[derive(Clone, Copy, Debug)]
pub(super) struct PruneJob<'a> {
    pub choice: &'a PruneChoice,
    /// Largest size of an unpacked content in bytes.
    pub limit: u64,
    /// New contents: input 1 of the new file.
    pub scratch: &'a Scratch,
}
