//! Recognizes formats by their first bytes. No other module compares magics for that.

use std::ops::Range;

use super::bytes::{Cursor, ReadAt};

/// The format of a file, member or section, according to its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Magic {
    /// ELF of any class and byte order.
    Elf,
    /// One or more offload binaries.
    OffloadBinary,
    /// One or more bundles.
    Bundle,
    /// One or more CUDA fat binaries.
    Fatbin,
    /// A compressed bundle.
    CompressedBundle,
    /// A text bundle with an entry at its start, as bundlers write it.
    TextBundle,
    /// An ar archive that holds its members.
    Archive,
    /// An ar archive that names the files of its members.
    ThinArchive,
    /// An archive of AIX.
    BigArchive,
    /// LLVM bitcode, bare or in its wrapper.
    Bitcode,
    /// A COFF object for a processor that LLVM knows, or of the large form. This is a guess: the
    /// first two bytes are only the processor's number.
    Coff,
    /// A DOS program, which PE images start with.
    DosProgram,
    /// Mach-O of any word size and byte order.
    MachO,
    /// Several Mach-O files or archives, or a Java class file.
    MachOUniversal,
    /// WebAssembly.
    Wasm,
    /// An AIX object or program.
    Xcoff,
    /// A zip file, such as a Python wheel.
    Zip,
    /// An unknown format.
    Unknown,
}

/// First bytes of a bundle.
pub(crate) const BUNDLE: [u8; 24] = *b"__CLANG_OFFLOAD_BUNDLE__";

/// First bytes of a compressed bundle.
pub(crate) const COMPRESSED_BUNDLE: [u8; 4] = *b"CCOB";

const MAGICS: [(&[u8], Magic); 35] = [
    (b"\x7fELF", Magic::Elf),
    (b"\x10\xff\x10\xad", Magic::OffloadBinary),
    (&BUNDLE, Magic::Bundle),
    (b"\x50\xed\x55\xba", Magic::Fatbin),
    (&COMPRESSED_BUNDLE, Magic::CompressedBundle),
    // Only [`Magic::LEN`] bytes of the comment.
    (b"\n// __CLANG_OFFLOAD_BUND", Magic::TextBundle),
    (b"\n# __CLANG_OFFLOAD_BUNDL", Magic::TextBundle),
    (b"\n; __CLANG_OFFLOAD_BUNDL", Magic::TextBundle),
    // With the line ends of Windows.
    (b"\r\n// __CLANG_OFFLOAD_BUN", Magic::TextBundle),
    (b"\r\n# __CLANG_OFFLOAD_BUND", Magic::TextBundle),
    (b"\r\n; __CLANG_OFFLOAD_BUND", Magic::TextBundle),
    (b"!<arch>\n", Magic::Archive),
    (b"!<thin>\n", Magic::ThinArchive),
    (b"<bigaf>\n", Magic::BigArchive),
    (b"BC\xc0\xde", Magic::Bitcode),
    (b"\xde\xc0\x17\x0b", Magic::Bitcode),
    (b"\xfe\xed\xfa\xce", Magic::MachO),
    (b"\xfe\xed\xfa\xcf", Magic::MachO),
    (b"\xce\xfa\xed\xfe", Magic::MachO),
    (b"\xcf\xfa\xed\xfe", Magic::MachO),
    (b"\xca\xfe\xba\xbe", Magic::MachOUniversal),
    (b"\xca\xfe\xba\xbf", Magic::MachOUniversal),
    (b"\0asm", Magic::Wasm),
    (b"\x01\xdf", Magic::Xcoff),
    (b"\x01\xf7", Magic::Xcoff),
    (b"PK\x03\x04", Magic::Zip),
    // Without members.
    (b"PK\x05\x06", Magic::Zip),
    (b"MZ", Magic::DosProgram),
    (b"\0\0\xff\xff\x02\0", Magic::Coff),
    // 386, x86-64, ARM, ARM64 and its two mixed forms.
    (b"\x4c\x01", Magic::Coff),
    (b"\x64\x86", Magic::Coff),
    (b"\xc4\x01", Magic::Coff),
    (b"\x64\xaa", Magic::Coff),
    (b"\x41\xa6", Magic::Coff),
    (b"\x4e\xa6", Magic::Coff),
];

impl Magic {
    /// Number of bytes that identify every format.
    pub const LEN: usize = 24;

    /// Identifies `bytes` by their start.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let row = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic));
        row.map_or(Self::Unknown, |(_, kind)| *kind)
    }

    /// Tells whether it is the format of a container of device code that is not text.
    #[must_use]
    pub fn is_container(self) -> bool {
        matches!(
            self,
            Self::Bundle | Self::CompressedBundle | Self::Fatbin | Self::OffloadBinary
        )
    }

    /// Identifies the start of a range of `data`; reads at most 24 bytes.
    pub fn at<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Self {
        let mut cursor = Cursor::new(data, range);
        let rest = cursor.end().saturating_sub(cursor.position());
        let bytes = cursor.read(rest.min(Self::LEN as u64), "magic");
        Self::of(bytes.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_magic_and_no_part_of_one() {
        for (bytes, kind) in MAGICS {
            assert!(bytes.len() <= Magic::LEN);
            assert_eq!(Magic::of(bytes), kind);
            assert_eq!(Magic::of(&[bytes, b"more"].concat()), kind);
            assert_eq!(Magic::of(&bytes[..bytes.len() - 1]), Magic::Unknown);
            assert_eq!(Magic::at(&[b"xx", bytes].concat()[..], 2..99), kind);
        }
        assert_eq!(Magic::of(b""), Magic::Unknown);
    }
}
