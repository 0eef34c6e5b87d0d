//! AMD's machine code, put together from objects that were compiled each by itself. LLVM makes a code object of one module,
//! so what its linker leaves of several is not quite one:
//!
//! | | in the objects | what is done |
//! |---|---|---|
//! | [`share_descriptors`] | a kernel of a header, in a group of which the linker keeps one; its descriptor is in none, and a duplicate symbol | to each object: the descriptor becomes weak |
//! | [`join_notes`] | the metadata of the object's kernels, in a note | to the image: all of it in one note |
//!
//! `ld.lld` puts notes one behind the other. LLVM's readers take all of them. AMD's comgr, by which the HIP runtime learns of
//! kernels, joins them too, unless two have formats of `printf`: then the second is dropped, with its kernels (comgr 2.4 and 3.0).

mod descriptors;
mod notes;

pub use descriptors::share_descriptors;
pub use notes::join_notes;

use std::fmt;

use crate::container::elf::ElfError;
use crate::format::msgpack;

/// Why an object or an image is not what a compiler and a linker make for an AMD GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// It is no ELF file, or a broken one.
    Elf(ElfError),
    /// It is no ELF file of 64 bits in little-endian order, or a broken one.
    NotWide(object::Error),
    /// The symbol table is not where its section says.
    Symbols,
    /// Notes of metadata are not all in one section, and it alone in its segment.
    Layout,
    /// A note of metadata cannot be read.
    Note(msgpack::MsgpackError),
    /// A kernel in a note of metadata has no `.symbol`.
    NoSymbol {
        /// Where it is, in the note's content.
        offset: u64,
    },
    /// Notes of metadata that do not agree.
    Differ {
        /// About what.
        key: String,
    },
}

impl From<ElfError> for CodeObjectError {
    fn from(error: ElfError) -> Self {
        Self::Elf(error)
    }
}

impl From<object::Error> for CodeObjectError {
    fn from(error: object::Error) -> Self {
        Self::NotWide(error)
    }
}

impl From<msgpack::MsgpackError> for CodeObjectError {
    fn from(error: msgpack::MsgpackError) -> Self {
        Self::Note(error)
    }
}

impl fmt::Display for CodeObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elf(error) => error.fmt(f),
            Self::NotWide(error) => error.fmt(f),
            Self::Symbols => f.write_str("symbol table is not inside the file"),
            Self::Layout => f.write_str(
                "notes NT_AMDGPU_METADATA are not in one section that is a segment by itself",
            ),
            Self::Note(error) => write!(f, "note NT_AMDGPU_METADATA: {error}"),
            Self::NoSymbol { offset } => write!(
                f,
                "note NT_AMDGPU_METADATA: kernel at offset {offset:#x} has no `.symbol`"
            ),
            Self::Differ { key } => write!(
                f,
                "notes NT_AMDGPU_METADATA do not have the same `{key}`: their objects are not for one target"
            ),
        }
    }
}

impl std::error::Error for CodeObjectError {}
