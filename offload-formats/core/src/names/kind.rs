//! Kinds of images, and the runtimes that manage them.

use std::fmt;

use super::LlvmRelease;

/// The runtime that manages an image: a number of two bytes in files, numbered as since LLVM 21.
///
/// Unknown numbers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffloadKind(u16);

/// Each kind with its number since LLVM 21, its number up to LLVM 20, and its name.
const OFFLOAD_KINDS: [(OffloadKind, u16, &str); 5] = [
    (OffloadKind::NONE, 0, "none"),
    (OffloadKind::OPENMP, 1, "openmp"),
    (OffloadKind::CUDA, 2, "cuda"),
    (OffloadKind::HIP, 3, "hip"),
    // Unknown to LLVM 20, which keeps the number.
    (OffloadKind::SYCL, 8, "sycl"),
];

impl OffloadKind {
    /// No runtime.
    pub const NONE: Self = Self(0);
    /// The OpenMP runtime.
    pub const OPENMP: Self = Self(1);
    /// The CUDA runtime.
    pub const CUDA: Self = Self(2);
    /// The HIP runtime.
    pub const HIP: Self = Self(4);
    /// The SYCL runtime.
    pub const SYCL: Self = Self(8);

    /// Creates a kind from the number in a file of LLVM 21 or later.
    #[must_use]
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// Creates a kind from the number in a file of any release.
    ///
    /// HIP was 3 up to LLVM 20, in files of the same version. Later releases never write 3, which
    /// would mean OpenMP and CUDA together.
    #[must_use]
    pub(crate) const fn from_raw_of_any_release(raw: u16) -> Self {
        if raw == 3 { Self::HIP } else { Self(raw) }
    }

    /// Returns the number that `release` writes.
    #[must_use]
    pub fn raw(self, release: LlvmRelease) -> u16 {
        match OFFLOAD_KINDS.iter().find(|(kind, _, _)| *kind == self) {
            Some((_, old, _)) if release <= LlvmRelease::V20 => *old,
            _ => self.0,
        }
    }

    /// Returns LLVM's name, such as `openmp`; `none` for numbers without a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let row = OFFLOAD_KINDS.iter().find(|(kind, _, _)| *kind == self);
        row.map_or("none", |(_, _, name)| name)
    }

    /// Returns the kind with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = OFFLOAD_KINDS.iter().find(|(_, _, known)| *known == name);
        row.map(|(kind, _, _)| *kind)
    }
}

/// Displays the name, or the number of a kind without a name.
impl fmt::Display for OffloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "none" if *self != Self::NONE => write!(f, "offload kind {}", self.0),
            name => f.write_str(name),
        }
    }
}

/// The kind of an image according to the file: a number of two bytes.
///
/// It is only advice: LLVM's tools examine the image itself. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageKind(u16);

/// Each kind with its name and file name extension.
const IMAGE_KINDS: [(ImageKind, &str, &str); 7] = [
    (ImageKind::NONE, "none", ""),
    (ImageKind::OBJECT, "object", "o"),
    (ImageKind::BITCODE, "bitcode", "bc"),
    (ImageKind::CUBIN, "cubin", "cubin"),
    (ImageKind::FATBINARY, "fatbinary", "fatbin"),
    (ImageKind::PTX, "ptx", "s"),
    (ImageKind::SPIRV, "spirv", "spv"),
];

impl ImageKind {
    /// Unspecified.
    pub const NONE: Self = Self(0);
    /// An object or a linked image, usually ELF.
    pub const OBJECT: Self = Self(1);
    /// LLVM bitcode.
    pub const BITCODE: Self = Self(2);
    /// A CUDA cubin.
    pub const CUBIN: Self = Self(3);
    /// A CUDA fat binary.
    pub const FATBINARY: Self = Self(4);
    /// PTX, NVIDIA's assembly.
    pub const PTX: Self = Self(5);
    /// SPIR-V.
    pub const SPIRV: Self = Self(6);

    /// Creates a kind from the number in a file.
    #[must_use]
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// Returns the number in a file.
    #[must_use]
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// Returns its name; `none` for numbers without a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("none", |(_, name, _)| name)
    }

    /// Returns the extension of file names of this kind, without the dot; empty if unknown.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.row().map_or("", |(_, _, extension)| extension)
    }

    /// Returns the kind of files with that extension, without the dot; otherwise [`Self::NONE`].
    #[must_use]
    #[cfg(feature = "tools")]
    pub fn from_extension(extension: &str) -> Self {
        let row = IMAGE_KINDS.iter().find(|(_, _, known)| *known == extension);
        row.map_or(Self::NONE, |(kind, _, _)| *kind)
    }

    fn row(self) -> Option<&'static (Self, &'static str, &'static str)> {
        IMAGE_KINDS.iter().find(|(kind, _, _)| *kind == self)
    }
}

/// Displays the name, or the number of a kind without a name.
impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "image kind {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_it_prints() {
        for (kind, _, name) in OFFLOAD_KINDS {
            assert_eq!(OffloadKind::from_name(name), Some(kind));
            assert_eq!(kind.to_string(), name);
        }
        assert_eq!(OffloadKind::from_name("host"), None);
    }

    #[test]
    fn numbers_hip_as_the_release_does() {
        use LlvmRelease::{Main, V19, V20, V21, V22, V23};
        let hip = |release| OffloadKind::HIP.raw(release);
        assert_eq!([V19, V20].map(hip), [3, 3]);
        assert_eq!([V21, V22, V23, Main].map(hip), [4, 4, 4, 4]);
    }

    #[test]
    fn reads_both_numbers_of_hip() {
        assert_eq!(OffloadKind::from_raw_of_any_release(3), OffloadKind::HIP);
        assert_eq!(OffloadKind::from_raw_of_any_release(4), OffloadKind::HIP);
        assert_eq!(OffloadKind::from_raw(3).to_string(), "offload kind 3");
    }

    #[test]
    fn keeps_numbers_without_a_name() {
        let kind = OffloadKind::from_raw(0x40);
        assert_eq!((kind.raw(LlvmRelease::V19), kind.name()), (0x40, "none"));
        assert_eq!(kind.to_string(), "offload kind 64");
        let kind = ImageKind::from_raw(999);
        assert_eq!(
            (kind.raw(), kind.name(), kind.extension()),
            (999, "none", "")
        );
        assert_eq!(kind.to_string(), "image kind 999");
    }

    #[test]
    fn reads_the_extensions_it_gives() {
        for (kind, name, extension) in IMAGE_KINDS {
            assert_eq!(ImageKind::from_extension(extension), kind);
            assert_eq!(kind.to_string(), name);
        }
        assert_eq!(ImageKind::from_extension("O"), ImageKind::NONE);
    }
}
