//! The kinds of entries.

use std::fmt;

use crate::names::OffloadKind;

/// The first word of an entry ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// The host's own code; the image may be empty.
    Host,
    /// OpenMP.
    Openmp,
    /// HIP.
    Hip,
    /// HIP; the runtime trusts the entry ID.
    Hipv4,
    /// CUDA; in files only.
    Cuda,
    /// SYCL; in files only.
    Sycl,
    /// HIP's predecessor; in files only.
    Hcc,
}

impl EntryKind {
    /// All kinds.
    pub(super) const ALL: [Self; 7] = [
        Self::Host,
        Self::Openmp,
        Self::Hip,
        Self::Hipv4,
        Self::Cuda,
        Self::Sycl,
        Self::Hcc,
    ];

    /// Returns its name, such as `hipv4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the kind with that name; case matters.
    #[must_use]
    #[doc(hidden)]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the runtime that manages the image; [`OffloadKind::NONE`] for the host's.
    #[must_use]
    #[doc(hidden)]
    pub fn offload_kind(self) -> OffloadKind {
        self.row().1
    }

    pub(super) fn is_target(self) -> bool {
        self.row().2
    }

    /// Returns its name, its runtime, and whether LLVM accepts it in a target.
    fn row(self) -> (&'static str, OffloadKind, bool) {
        match self {
            Self::Host => ("host", OffloadKind::NONE, true),
            Self::Openmp => ("openmp", OffloadKind::OPENMP, true),
            Self::Hip => ("hip", OffloadKind::HIP, true),
            Self::Hipv4 => ("hipv4", OffloadKind::HIP, true),
            Self::Cuda => ("cuda", OffloadKind::CUDA, false),
            Self::Sycl => ("sycl", OffloadKind::SYCL, false),
            Self::Hcc => ("hcc", OffloadKind::HIP, false),
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_it_prints() {
        for kind in EntryKind::ALL {
            assert_eq!(EntryKind::from_name(&kind.to_string()), Some(kind));
        }
        assert_eq!(EntryKind::from_name("HIP"), None);
        assert_eq!(EntryKind::Hipv4.offload_kind(), OffloadKind::HIP);
        assert_eq!(EntryKind::Host.offload_kind(), OffloadKind::NONE);
    }
}
