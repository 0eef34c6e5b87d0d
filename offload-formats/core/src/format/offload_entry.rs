//! The offload entry: a host compiler writes one for each kernel and global, and a runtime reads
//! them.
//!
//! | release | section                                   | size | alignment |
//! |---------|-------------------------------------------|-----:|----------:|
//! | to 19   | `omp_`, `cuda_`, `hip_offloading_entries` |   32 |         1 |
//! | 20      | the same                                  |   56 |         1 |
//! | from 21 | `llvm_offload_entries`, for all kinds     |   56 |         8 |
//!
//! | offset | size | to 19               | offset | size | from 20                          |
//! |-------:|-----:|---------------------|-------:|-----:|----------------------------------|
//! | `0x00` |    8 | address on the host | `0x00` |    8 | 0; not 0 in older entries        |
//! | `0x08` |    8 | name (pointer)      | `0x08` |    2 | version, 1                       |
//! | `0x10` |    8 | size; 0: a kernel   | `0x0a` |    2 | offload kind                     |
//! | `0x18` |    4 | flags               | `0x0c` |    4 | flags                            |
//! | `0x1c` |    4 | data                | `0x10` |    8 | address on the host              |
//! |        |      |                     | `0x18` |    8 | name (pointer)                   |
//! |        |      |                     | `0x20` |    8 | size; 0: a kernel                |
//! |        |      |                     | `0x28` |    8 | data                             |
//! |        |      |                     | `0x30` |    8 | address of a managed variable    |
//!
//! This is the form in objects of 64-bit little-endian hosts. Relocations fill in the pointers,
//! which are zero in the file; so [`OffloadEntry`] omits them.
//!
//! Specification: `llvm/include/llvm/Frontend/Offloading/Utility.h` of LLVM, `__tgt_offload_entry`
//! of its offload runtime.

use super::bytes::{Cursor, OutOfBounds, ReadAt, record};
use crate::names::{LlvmRelease, OffloadKind};

record! {
    pub(crate) struct Record19, "offload entry", 32 bytes {
        0x00 address: u64,
        0x08 name: u64,
        0x10 size: u64,
        0x18 flags: u32,
        0x1c data: u32,
    }
}

record! {
    pub(crate) struct Record20, "offload entry", 56 bytes {
        0x00 reserved: u64,
        0x08 version: u16,
        0x0a kind: u16,
        0x0c flags: u32,
        0x10 address: u64,
        0x18 name: u64,
        0x20 size: u64,
        0x28 data: u64,
        0x30 auxiliary_address: u64,
    }
}

/// Layout of the table of offload entries, by release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EntryLayout {
    /// LLVM 19 and older.
    V19,
    /// LLVM 20: new entries in old sections.
    V20,
    /// LLVM 21 and later.
    V21,
}

/// Sections up to LLVM 20, each with the kind of its entries.
const OLD_SECTIONS: [(&str, OffloadKind); 3] = [
    ("omp_offloading_entries", OffloadKind::OPENMP),
    ("cuda_offloading_entries", OffloadKind::CUDA),
    ("hip_offloading_entries", OffloadKind::HIP),
];

const NEW_SECTION: &str = "llvm_offload_entries";

/// Suffix of the section's name in COFF objects: linkers sort sections by the text after the dollar
/// sign.
const COFF_GROUP: &[u8] = b"$OE";

/// Starts of the symbols of entries, up to LLVM 16 and later. The name of the kernel or global
/// follows.
const SYMBOLS: [&[u8]; 2] = [b".omp_offloading.entry.", b".offloading.entry."];

impl EntryLayout {
    /// All layouts, oldest first.
    pub const ALL: [Self; 3] = [Self::V19, Self::V20, Self::V21];

    /// Returns the layout of a release.
    #[must_use]
    pub const fn of(release: LlvmRelease) -> Self {
        match release {
            LlvmRelease::V19 => Self::V19,
            LlvmRelease::V20 => Self::V20,
            LlvmRelease::V21 | LlvmRelease::V22 | LlvmRelease::V23 | LlvmRelease::Main => Self::V21,
        }
    }

    /// Finds the layout of an object with entries of `size` bytes in `section`. The symbols
    /// `.offloading.entry.*` have that size.
    #[must_use]
    pub fn find(section: &str, size: u64) -> Option<Self> {
        let known =
            |table: &Self| table.stride() == size && table.sections().any(|it| it == section);
        Self::ALL.into_iter().find(known)
    }

    /// Returns the number of bytes from one entry to the next.
    #[must_use]
    pub const fn stride(self) -> u64 {
        match self {
            Self::V19 => Record19::LEN,
            Self::V20 | Self::V21 => Record20::LEN,
        }
    }

    /// Returns the alignment of each entry.
    #[must_use]
    pub const fn alignment(self) -> u64 {
        match self {
            Self::V19 | Self::V20 => 1,
            Self::V21 => 8,
        }
    }

    /// Returns the section for entries of a kind; up to LLVM 20 only three kinds have one.
    #[must_use]
    pub fn section(self, kind: OffloadKind) -> Option<&'static str> {
        match self {
            Self::V19 | Self::V20 => {
                let row = OLD_SECTIONS.iter().find(|(_, known)| *known == kind);
                row.map(|(section, _)| *section)
            }
            Self::V21 => Some(NEW_SECTION),
        }
    }

    /// Lists the sections that can contain entries of any layout.
    pub fn all_sections() -> impl Iterator<Item = &'static str> {
        let old = OLD_SECTIONS.iter().map(|(section, _)| *section);
        old.chain([NEW_SECTION])
    }

    /// Returns the section of offload entries that an ELF or COFF object calls `name`, as ELF
    /// objects call it; `None` for other sections.
    #[must_use]
    pub fn section_named(name: &[u8]) -> Option<&'static str> {
        let name = name.strip_suffix(COFF_GROUP).unwrap_or(name);
        Self::all_sections().find(|known| known.as_bytes() == name)
    }

    /// Returns the oldest layout of entries in `section`.
    #[must_use]
    pub fn oldest_in(section: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|layout| layout.sections().any(|known| known == section))
    }

    /// Lists the sections that can contain its entries.
    pub fn sections(self) -> impl Iterator<Item = &'static str> {
        let (old, new) = match self {
            Self::V19 | Self::V20 => (&OLD_SECTIONS[..], None),
            Self::V21 => (&[][..], Some(NEW_SECTION)),
        };
        old.iter().map(|(section, _)| *section).chain(new)
    }
}

/// The fields of an offload entry that are not pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffloadEntry {
    /// Kind of the entry. Up to LLVM 19 it is absent: only the section tells.
    pub kind: Option<OffloadKind>,
    /// Flags for the runtime of that kind.
    pub flags: u32,
    /// Size of a global in bytes; 0 for a kernel.
    pub size: u64,
    /// Data for the runtime of that kind.
    pub data: u64,
}

impl OffloadEntry {
    /// Returns the name of the kernel or global whose entry `symbol` is; `None` for other symbols.
    #[must_use]
    pub fn name_of(symbol: &[u8]) -> Option<&[u8]> {
        SYMBOLS.iter().find_map(|start| symbol.strip_prefix(*start))
    }

    /// Reads the next entry of a table.
    ///
    /// # Errors
    ///
    /// Fails if fewer bytes are left.
    pub fn read<'d, R: ReadAt<'d>>(
        cursor: &mut Cursor<'d, R>,
        table: EntryLayout,
    ) -> Result<Self, OutOfBounds> {
        Ok(match table {
            EntryLayout::V19 => {
                let Record19 {
                    flags, size, data, ..
                } = Record19::read(cursor)?;
                Self {
                    kind: None,
                    flags,
                    size,
                    data: data.into(),
                }
            }
            EntryLayout::V20 | EntryLayout::V21 => {
                let Record20 {
                    kind,
                    flags,
                    size,
                    data,
                    ..
                } = Record20::read(cursor)?;
                let kind = Some(match table {
                    EntryLayout::V21 => OffloadKind::from_raw(kind),
                    EntryLayout::V19 | EntryLayout::V20 => {
                        OffloadKind::from_raw_of_any_release(kind)
                    }
                });
                Self {
                    kind,
                    flags,
                    size,
                    data,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first entry of section `omp_offloading_entries` of `clang-19`, and of
    /// `llvm_offload_entries` of `clang-22`, by `llvm-objcopy --dump-section` from
    /// `clang -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu -c` of `int x[4];`, then
    /// `#pragma omp declare target(x)`, and a function with a target region.
    const GLOBAL_19: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const GLOBAL_22: &[u8] =
        b"\0\0\0\0\0\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn reads_what_clang_writes() {
        let read = |bytes: &'static [u8], table| {
            OffloadEntry::read(&mut Cursor::new(bytes, 0..u64::MAX), table)
        };
        let entry = OffloadEntry {
            kind: None,
            flags: 0,
            size: 16,
            data: 0,
        };
        assert_eq!(read(GLOBAL_19, EntryLayout::V19), Ok(entry));
        let kind = Some(OffloadKind::OPENMP);
        assert_eq!(
            read(GLOBAL_22, EntryLayout::V21),
            Ok(OffloadEntry { kind, ..entry })
        );
        for table in EntryLayout::ALL {
            for len in 0..table.stride() as usize {
                read(&GLOBAL_22[..len], table).unwrap_err();
            }
        }
    }

    #[test]
    fn numbers_hip_as_the_release_does() {
        let mut bytes = GLOBAL_22.to_vec();
        bytes[0xa] = 3;
        let read = |bytes: &[u8], table| {
            OffloadEntry::read(&mut Cursor::new(bytes, 0..56), table)
                .unwrap()
                .kind
        };
        assert_eq!(read(&bytes, EntryLayout::V20), Some(OffloadKind::HIP));
        assert_eq!(
            read(&bytes, EntryLayout::V21),
            Some(OffloadKind::from_raw(3))
        );
        bytes[0xa] = 4;
        assert_eq!(read(&bytes, EntryLayout::V21), Some(OffloadKind::HIP));
    }

    #[test]
    fn tells_the_releases_apart_by_section_and_size() {
        let cases = [
            ("omp_offloading_entries", 32, Some(EntryLayout::V19)),
            ("hip_offloading_entries", 56, Some(EntryLayout::V20)),
            ("llvm_offload_entries", 56, Some(EntryLayout::V21)),
            ("llvm_offload_entries", 32, None),
            ("cuda_offloading_entries", 40, None),
            ("data", 56, None),
        ];
        for (section, size, expected) in cases {
            assert_eq!(
                EntryLayout::find(section, size),
                expected,
                "{section} {size}"
            );
        }
    }

    #[test]
    fn finds_sections_and_symbols_by_name() {
        for (name, section) in [
            ("llvm_offload_entries", Some("llvm_offload_entries")),
            ("hip_offloading_entries$OE", Some("hip_offloading_entries")),
            ("omp_offloading_entries$OA", None),
            (".rdata", None),
        ] {
            assert_eq!(EntryLayout::section_named(name.as_bytes()), section);
        }
        assert_eq!(EntryLayout::all_sections().count(), 4);
        let oldest = ["llvm_offload_entries", "cuda_offloading_entries", "data"];
        assert_eq!(
            oldest.map(EntryLayout::oldest_in),
            [Some(EntryLayout::V21), Some(EntryLayout::V19), None]
        );
        for (symbol, name) in [
            (".offloading.entry.k", Some("k")),
            (".omp_offloading.entry.k", Some("k")),
            (".offloading.entry_name", None),
        ] {
            let found = OffloadEntry::name_of(symbol.as_bytes());
            assert_eq!(found, name.map(str::as_bytes), "{symbol}");
        }
    }

    #[test]
    fn names_the_section_of_a_kind() {
        let sections = EntryLayout::ALL.map(|table| table.section(OffloadKind::CUDA));
        let old = Some("cuda_offloading_entries");
        assert_eq!(sections, [old, old, Some("llvm_offload_entries")]);
        assert_eq!(EntryLayout::V20.section(OffloadKind::SYCL), None);
        assert_eq!(EntryLayout::of(LlvmRelease::default()), EntryLayout::V21);
    }
}
