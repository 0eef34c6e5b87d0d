//! The section of embedded images.

use crate::container::elf::{FINISHED_SECTION, OFFLOADING_SECTION};

/// The section that contains the blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobSection {
    /// `.llvm.offloading`, with the section type that linker wrappers look for, for a final link.
    Offloading,
    /// `.offloading.images`, ordinary data: no linker wrapper links these images again.
    Finished,
}

impl BlobSection {
    /// Returns the name of the section.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Offloading => OFFLOADING_SECTION,
            Self::Finished => FINISHED_SECTION,
        }
    }
}
