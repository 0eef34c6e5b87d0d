//! Linkers of the GNU family for ELF hosts: how each is recognized.

use std::ffi::OsStr;
use std::path::Path;

/// A linker for ELF hosts, as far as their options and layouts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElfLinker {
    Gnu,
    Gold,
    Lld,
    Mold,
    Unknown,
}

impl ElfLinker {
    /// Returns the linker that a program's path, or the value of `-fuse-ld=`, names.
    pub(crate) fn of_name(path: &OsStr) -> Option<Self> {
        let name = Path::new(path).file_name()?.to_string_lossy();
        if name.contains("lld") {
            return Some(Self::Lld);
        }
        let ends = [
            ("bfd", Self::Gnu),
            ("gold", Self::Gold),
            ("mold", Self::Mold),
        ];
        let found = ends.iter().find(|(end, _)| name.ends_with(end));
        found.map(|(_, linker)| *linker)
    }

    /// Returns the linker that answers `--version` with `text`. Some name GNU's linkers, too, with which they are
    /// compatible.
    pub(crate) fn of_version(text: &str) -> Self {
        let words = [
            ("LLD", Self::Lld),
            ("mold", Self::Mold),
            ("GNU gold", Self::Gold),
            ("GNU ld", Self::Gnu),
        ];
        let found = words.iter().find(|(word, _)| text.contains(word));
        found.map_or(Self::Unknown, |(_, linker)| *linker)
    }

    /// Returns the release of the lld that answers `--version` with `text`.
    pub(crate) fn release_of_lld(text: &str) -> Option<u32> {
        let (_, release) = text.split_once("LLD ")?;
        release.split('.').next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_names() {
        for (name, expected) in [
            ("/usr/bin/ld", None),
            ("ld", None),
            ("/usr/bin/x86_64-linux-gnu-ld.bfd", Some(ElfLinker::Gnu)),
            ("bfd", Some(ElfLinker::Gnu)),
            ("/usr/bin/gold", Some(ElfLinker::Gold)),
            ("ld.gold", Some(ElfLinker::Gold)),
            ("/opt/bin/ld.lld-22", Some(ElfLinker::Lld)),
            ("rust-lld", Some(ElfLinker::Lld)),
            ("lld", Some(ElfLinker::Lld)),
            ("/usr/bin/mold", Some(ElfLinker::Mold)),
            ("ld.mold", Some(ElfLinker::Mold)),
            ("wild", None),
        ] {
            assert_eq!(ElfLinker::of_name(name.as_ref()), expected, "{name}");
        }
    }

    /// Output of `ld.bfd`, `ld.gold`, `ld.lld-22`, and of mold 1.10.1 of Debian 12.
    #[test]
    fn recognizes_answers() {
        for (text, expected) in [
            (
                "GNU ld (GNU Binutils for Debian) 2.40\nCopyright (C) 2023",
                ElfLinker::Gnu,
            ),
            (
                "GNU gold (GNU Binutils for Debian 2.40) 1.16",
                ElfLinker::Gold,
            ),
            (
                "Debian LLD 22.1.8 (compatible with GNU linkers)",
                ElfLinker::Lld,
            ),
            ("mold 1.10.1 (compatible with GNU ld)", ElfLinker::Mold),
            ("wild 0.1", ElfLinker::Unknown),
        ] {
            assert_eq!(ElfLinker::of_version(text), expected, "{text}");
        }
    }

    #[test]
    fn reads_the_release_of_lld() {
        for (text, expected) in [
            (
                "Debian LLD 14.0.6 (compatible with GNU linkers)\n",
                Some(14),
            ),
            ("LLD 22.1.8 (compatible with GNU linkers)\n", Some(22)),
            ("GNU ld (GNU Binutils for Debian) 2.40\n", None),
        ] {
            assert_eq!(ElfLinker::release_of_lld(text), expected, "{text}");
        }
    }
}
