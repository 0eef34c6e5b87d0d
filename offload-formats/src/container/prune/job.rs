//! Settings that all parts of a file have in common.

use super::choice::PruneChoice;
use crate::container::decompression_limit::DecompressionLimit;
use crate::format::unpacked::Scratch;

/// The choice, and where contents are unpacked.
#[derive(Clone, Copy, Debug)]
pub(super) struct PruneJob<'a> {
    pub choice: &'a PruneChoice,
    /// Limit on the size of each unpacked content.
    pub limit: DecompressionLimit,
    /// New contents: input 1 of the new file.
    pub scratch: &'a Scratch,
}
