//! Links AMD's machine code from objects that were compiled separately. LLVM expects one module in a code object, so
//! several objects need corrections:
//!
//! | function | problem | correction |
//! |---|---|---|
//! | [`share_descriptors`] | Several objects define a kernel of a header. The linker keeps one of the groups, but descriptors are in no group and clash. | makes descriptors weak in each object |
//! | [`join_static_names`] | clang names a `static` variable twice, if kernels use it before the host does. | gives the uses the definition's name in each object |
//! | [`joined_notes`] | Each object has a note with its kernels' metadata. | joins the image's notes in one note |
//!
//! `ld.lld` concatenates notes, and LLVM's readers accept all of them. So does AMD's comgr, which describes kernels to the
//! HIP runtime, unless two notes have formats of `printf`: then it drops the second and its kernels (comgr 2.4 and 3.0).

mod descriptors;
mod notes;
mod static_names;
mod symbols;

pub use descriptors::share_descriptors;
pub use notes::joined_notes;
pub use static_names::join_static_names;

use std::fmt;

use crate::container::elf::ElfError;
use crate::format::msgpack;

/// Reason why an AMD object or code object cannot be corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// Not an ELF file, or a damaged one.
    Elf(ElfError),
    /// Not a 64-bit little-endian ELF file, or a damaged one.
    Elf64 {
        /// Description of the damage.
        cause: String,
    },
    /// The symbol table is not inside the file.
    Symbols,
    /// Notes of metadata are not in one section that is a segment.
    Layout,
    /// A note of metadata cannot be read.
    Note(msgpack::MsgpackError),
    /// A kernel in a note of metadata has no `.symbol`.
    NoSymbol {
        /// Offset of the kernel in the note's content.
        offset: u64,
    },
    /// A size that is too large for a note.
    TooLarge {
        /// The size in bytes or entries.
        size: usize,
    },
    /// Notes of metadata with different values.
    Differ {
        /// The values' key.
        key: String,
    },
}

impl From<ElfError> for CodeObjectError {
    fn from(error: ElfError) -> Self {
        Self::Elf(error)
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
            Self::Elf64 { cause } => f.write_str(cause),
            Self::Symbols => f.write_str("the symbol table is not inside the file"),
            Self::Layout => f.write_str(
                "expected all notes NT_AMDGPU_METADATA in one section that is a segment",
            ),
            Self::Note(error) => write!(f, "note NT_AMDGPU_METADATA: {error}"),
            Self::NoSymbol { offset } => write!(
                f,
                "note NT_AMDGPU_METADATA: kernel at offset {offset:#x} has no `.symbol`"
            ),
            Self::TooLarge { size } => write!(
                f,
                "note NT_AMDGPU_METADATA: {size:#x} is too large for a note"
            ),
            Self::Differ { key } => write!(
                f,
                "notes NT_AMDGPU_METADATA have different values of `{key}`: their objects are for different targets"
            ),
        }
    }
}

impl std::error::Error for CodeObjectError {}
