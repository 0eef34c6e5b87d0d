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

/// Each kind with its name, its runtime, and whether LLVM accepts it in a target.
pub(super) const KINDS: [(EntryKind, &str, OffloadKind, bool); 7] = [
    (EntryKind::Host, "host", OffloadKind::NONE, true),
    (EntryKind::Openmp, "openmp", OffloadKind::OPENMP, true),
    (EntryKind::Hip, "hip", OffloadKind::HIP, true),
    (EntryKind::Hipv4, "hipv4", OffloadKind::HIP, true),
    (EntryKind::Cuda, "cuda", OffloadKind::CUDA, false),
    (EntryKind::Sycl, "sycl", OffloadKind::SYCL, false),
    (EntryKind::Hcc, "hcc", OffloadKind::HIP, false),
];

impl EntryKind {
    /// Returns its name, such as `hipv4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |(_, name, _, _)| name)
    }

    /// Returns the kind with that name; case matters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = KINDS.iter().find(|(_, known, _, _)| *known == name);
        row.map(|(kind, _, _, _)| *kind)
    }

    /// Returns the runtime that manages the image; [`OffloadKind::NONE`] for the host's.
    #[must_use]
    pub fn offload_kind(self) -> OffloadKind {
        self.row()
            .map_or(OffloadKind::NONE, |(_, _, kind, _)| *kind)
    }

    pub(super) fn is_target(self) -> bool {
        self.row().is_some_and(|(_, _, _, target)| *target)
    }

    fn row(self) -> Option<&'static (Self, &'static str, OffloadKind, bool)> {
        KINDS.iter().find(|(kind, _, _, _)| *kind == self)
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
        for (kind, name, _, _) in KINDS {
            assert_eq!(EntryKind::from_name(name), Some(kind));
            assert_eq!(kind.to_string(), name);
        }
        assert_eq!(EntryKind::from_name("HIP"), None);
        assert_eq!(EntryKind::Hipv4.offload_kind(), OffloadKind::HIP);
        assert_eq!(EntryKind::Host.offload_kind(), OffloadKind::NONE);
    }
}
