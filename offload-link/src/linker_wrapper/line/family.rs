//! Family of the host linker, which determines its options and library names.

use std::ffi::OsStr;
use std::path::Path;

use offload_formats::names::Triple;

/// A family of linkers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// GNU ld, gold, lld, mold, for ELF.
    #[default]
    Gnu,
    /// GNU-style linkers for Windows.
    MinGw,
    /// `lld-link`, `link.exe`.
    Coff,
    /// Apple's linkers and `ld64.lld`.
    Darwin,
}

impl Family {
    /// Returns the family of the host's triple, or else of the name of the linker or compiler.
    pub(crate) fn of(triple: Option<&OsStr>, linker: Option<&OsStr>) -> Self {
        let triple = triple.and_then(|text| Triple::parse(&text.to_string_lossy()).ok());
        if let Some(family) = triple.as_ref().map(Self::of_triple) {
            return family;
        }
        let name = Path::new(linker.unwrap_or_default())
            .file_name()
            .unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        match stem {
            "link" | "lld-link" => Self::Coff,
            _ if name.starts_with("ld64") || stem == "ld-classic" => Self::Darwin,
            _ if name.contains("-mingw32-") => Self::MinGw,
            _ => Self::Gnu,
        }
    }

    fn of_triple(triple: &Triple) -> Self {
        let os = triple
            .os()
            .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        match os {
            "windows" | "win" if triple.environment().starts_with("gnu") => Self::MinGw,
            "mingw" => Self::MinGw,
            "windows" | "win" => Self::Coff,
            "darwin" | "macos" | "macosx" | "ios" | "tvos" | "watchos" | "xros" | "visionos" => {
                Self::Darwin
            }
            _ => Self::Gnu,
        }
    }

    /// Returns the family of a linker's emulation, the value of `-m`; nothing if its name does not tell.
    pub(crate) fn of_emulation(name: &[u8]) -> Option<Self> {
        const OF_WINDOWS: [&[u8]; 5] =
            [b"i386pe", b"i386pep", b"thumb2pe", b"arm64pe", b"arm64ecpe"];
        OF_WINDOWS.contains(&name).then_some(Self::MinGw)
    }

    /// Tells whether its objects are ELF files.
    pub(crate) fn is_elf(self) -> bool {
        self == Self::Gnu
    }

    /// Returns the file names that `-l<name>` may stand for; the first existing one is used.
    pub(crate) fn library_names(
        self,
        only_static: bool,
    ) -> &'static [(&'static str, &'static str)] {
        match (self, only_static) {
            (Self::Gnu, false) => &[("lib", ".so"), ("lib", ".a")],
            (Self::Gnu | Self::Darwin, true) => &[("lib", ".a")],
            // An import library has no device code, and the search ends with it.
            (Self::MinGw, false) => &[
                ("lib", ".dll.a"),
                ("", ".dll.a"),
                ("lib", ".a"),
                ("", ".lib"),
                ("lib", ".lib"),
            ],
            (Self::MinGw, true) => &[("lib", ".a"), ("", ".lib"), ("lib", ".lib")],
            (Self::Coff, _) => &[("", ".lib"), ("lib", ".dll.a"), ("lib", ".a")],
            (Self::Darwin, false) => &[
                ("lib", ".tbd"),
                ("lib", ".dylib"),
                ("lib", ".so"),
                ("lib", ".a"),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_triple_before_the_name_of_the_linker() {
        for (triple, linker, expected) in [
            ("", "/usr/bin/ld", Family::Gnu),
            ("", "/usr/bin/ld.lld-22", Family::Gnu),
            ("", "lld-link-22", Family::Coff),
            ("", "C:/bin/LINK.EXE", Family::Coff),
            ("", "ld64.lld", Family::Darwin),
            ("", "x86_64-w64-mingw32-ld", Family::MinGw),
            ("x86_64-unknown-linux-gnu", "lld-link", Family::Gnu),
            ("x86_64-pc-windows-msvc", "ld", Family::Coff),
            ("x86_64-pc-windows-gnu", "lld-link", Family::MinGw),
            ("x86_64-w64-mingw32", "ld", Family::MinGw),
            ("aarch64-apple-macosx14.0.0", "ld", Family::Darwin),
            ("x86_64-unknown-windows-msvc", "ld", Family::Coff),
        ] {
            let triple = (!triple.is_empty()).then_some(OsStr::new(triple));
            assert_eq!(
                Family::of(triple, Some(linker.as_ref())),
                expected,
                "{triple:?} {linker}"
            );
        }
    }
}
