//! The runtime libraries of fat binaries, and their requirements.

use object::{SymbolKind, elf};

use super::error::RegistrationError;
use super::writer::Writer;
use crate::container::relocatable::SectionId;
use crate::format::offload_entry;
use crate::format::pieces::Embedded;
use crate::names::{LlvmRelease, OffloadKind};

/// The library that manages the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// `libcudart`.
    Cuda,
    /// `libamdhip64`.
    Hip,
}

impl Runtime {
    /// Returns the runtime of an offload kind; other kinds do not use fat binaries.
    #[must_use]
    pub fn of(kind: OffloadKind) -> Option<Self> {
        [Self::Cuda, Self::Hip]
            .into_iter()
            .find(|runtime| runtime.kind() == kind)
    }

    /// Returns the kind of the images and of the registered entries.
    #[must_use]
    pub const fn kind(self) -> OffloadKind {
        match self {
            Self::Cuda => OffloadKind::CUDA,
            Self::Hip => OffloadKind::HIP,
        }
    }

    /// Returns the section of fat binaries.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::Cuda => ".nv_fatbin",
            Self::Hip => ".hip_fatbin",
        }
    }

    /// Returns the alignment of the fat binary in bytes. HIP's runtime maps code objects in place,
    /// whose offsets in the bundle are multiples of the page size. LLVM's wrapper uses 16 for both.
    #[must_use]
    pub(crate) const fn alignment(self) -> u64 {
        match self {
            Self::Cuda => 16,
            Self::Hip => 4096,
        }
    }

    pub(super) const fn wrapper_section(self) -> &'static str {
        match self {
            Self::Cuda => ".nvFatBinSegment",
            Self::Hip => ".hipFatBinSegment",
        }
    }

    pub(super) const fn magic(self) -> u32 {
        match self {
            Self::Cuda => 0x4662_43b1,
            Self::Hip => 0x4849_5046,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
        }
    }
}

impl Runtime {
    /// Returns the fatbin wrapper with null pointers.
    pub(super) fn wrapper(self) -> Vec<u8> {
        let magic = u64::from(self.magic()) | 1 << 32;
        [magic, 0, 0].map(u64::to_le_bytes).concat()
    }

    /// Returns a table of the list with null ends.
    pub(super) fn table_record(self, layout: offload_entry::EntryLayout) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes.extend_from_slice(&(layout.stride() as u32).to_le_bytes());
        for kind in self.kinds(layout) {
            bytes.extend_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    /// Returns the number of zeros after a fat binary of `size` bytes: HIP's runtime reads a page in any case.
    pub(super) fn padding(self, size: u64) -> u64 {
        match self {
            Self::Hip => self.alignment().saturating_sub(size),
            Self::Cuda => 0,
        }
    }

    /// Returns the numbers of its kind in a table. LLVM 20 numbered kinds consecutively, later
    /// releases use bits; both numbers are unambiguous in the old sections.
    pub(super) fn kinds(self, layout: offload_entry::EntryLayout) -> [u16; 2] {
        use offload_entry::EntryLayout::{V19, V20};
        let number = |release| self.kind().raw(release);
        match layout {
            V19 => [0; 2],
            V20 => [LlvmRelease::V20, LlvmRelease::V21].map(number),
            _ => [number(LlvmRelease::V21); 2],
        }
    }
}

/// Writes the section of the fat binary, and its symbol.
pub(super) fn image<'a>(
    writer: &mut Writer<'a>,
    runtime: Runtime,
    bytes: Embedded<'a>,
) -> Result<SectionId, RegistrationError> {
    let alignment = runtime.alignment();
    let id = writer.image_section(runtime.section(), elf::SHT_PROGBITS, alignment)?;
    let size = bytes.size();
    writer.object.embed(id, bytes, alignment);
    let padding = Embedded::Zeros(runtime.padding(size));
    writer.object.embed(id, padding, 1);
    writer.local(".fatbin_image", SymbolKind::Data, id, 0, size);
    Ok(id)
}
