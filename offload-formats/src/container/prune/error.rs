//! Reasons why a file cannot be pruned.

use std::{fmt, io};

use crate::container::archive::ArchiveError;
use crate::container::decompression_limit::Remedy;
use crate::container::elf::ElfError;
use crate::escape::terminal;
use crate::format::bundle::{BundleError, BundleWriteError};
use crate::format::bundles::BundleSequenceError;
use crate::format::bytes::{OutOfBounds, SourceError};
use crate::format::compressed_bundle::{CompressedBundleError, CompressedBundleWriteError};
use crate::format::fatbin::{FatbinPackError, FatbinReadError, FatbinUnpackError};
use crate::format::offload_binary::{InflateError, OffloadBinaryError, OffloadBinaryWriteError};

/// Reason why a file cannot be pruned, and the member and section that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneError {
    /// Name of the archive member.
    pub member: Option<Box<[u8]>>,
    /// Name of the section.
    pub section: Option<Box<[u8]>>,
    /// The reason.
    pub problem: PruneProblem,
}

/// Reason why a file cannot be pruned. Offsets are from the start of the file or archive member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PruneProblem {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Neither an ELF file nor a container of images.
    Format,
    /// An ELF file of another class, byte order or type.
    ElfKind,
    /// Damage in the ELF headers.
    Elf(ElfError),
    /// A table or section exceeds the file.
    Outside(OutOfBounds),
    /// The file has no section of bundles or fat binaries.
    NoImages,
    /// A linked file was to be compressed whose images are in offload binaries, like those of OpenMP and SYCL.
    LinkedTable,
    /// No descriptor for OpenMP's runtime lists an image of a linked file.
    NoDescriptor {
        /// Offset of its offload binary.
        offset: u64,
    },
    /// Images are in sections of their own, `__CLANG_OFFLOAD_BUNDLE__…`.
    BundleSections,
    /// Damage in an archive.
    Archive(ArchiveError),
    /// The members of the archive are other files.
    ThinArchive,
    /// The archive's symbol index is not GNU's.
    ArchiveIndex,
    /// A member is an archive.
    NestedArchive,
    /// Damage in offload binaries.
    OffloadBinary(OffloadBinaryError),
    /// Damage in a compressed offload binary.
    Inflate(InflateError),
    /// A new offload binary cannot be written.
    WriteBinary(OffloadBinaryWriteError),
    /// Damage in bundles.
    Bundles(BundleSequenceError),
    /// Damage in a bundle that was compressed.
    Bundle(BundleError),
    /// Damage in a compressed bundle.
    Compressed(CompressedBundleError),
    /// Damage in a fat binary.
    Fatbin(FatbinReadError),
    /// An image of a fat binary cannot be unpacked.
    Unpack {
        /// Offset of the image's header.
        offset: u64,
        /// The image's problem.
        problem: FatbinUnpackError,
    },
    /// An image of a fat binary cannot be compressed.
    Pack(FatbinPackError),
    /// A fat binary's header has an unknown size.
    FatbinHeader {
        /// Offset of the fat binary.
        offset: u64,
    },
    /// A new bundle cannot be written.
    Write(BundleWriteError),
    /// A new compressed bundle cannot be written.
    Compress(CompressedBundleWriteError),
    /// The scratch cannot be created.
    Scratch {
        /// Kind of the system's error.
        kind: io::ErrorKind,
    },
    /// Bytes after the last bundle that are not zero.
    Trailing {
        /// Offset of the bytes.
        offset: u64,
        /// Size of the bytes.
        size: u64,
    },
    /// A section of a linked file with images for several runtimes, or with other data, too.
    MixedFormats {
        /// Offset of the other data.
        offset: u64,
    },
    /// A pointer into a bundle or fat binary, not to its start.
    Inside {
        /// The pointer's kind: `relocation`, `symbol`, `wrapper`.
        what: &'static str,
        /// Address that it points to.
        address: u64,
    },
    /// Bundles or fat binaries in `.lrodata` that stay as they are, because the program may use one by its address.
    LargeData {
        /// Offset of that one.
        offset: u64,
        /// Number of bundles and fat binaries in the section.
        count: usize,
    },
    /// A bundle or fat binary to which nothing points, and code may refer to it.
    Unregistered {
        /// Offset of the unit.
        offset: u64,
    },
    /// A bundle or fat binary that moves, and code or data refer to it by its address; or one that gets another size, and they
    /// have its old size, too.
    UsedByAddress {
        /// Offset of the unit.
        offset: u64,
    },
    /// Relocations of a linked file in a packed form that is not read.
    PackedRelocations {
        /// Type of their section.
        kind: u32,
    },
    /// An ELF file with so many sections that their number is not in its header.
    ManySections,
    /// A relocation of a type that is not known to survive.
    Relocation {
        /// Its type.
        kind: u32,
        /// Address that it changes.
        address: u64,
    },
    /// Another part of the file is where pages are cut.
    Spans {
        /// Type of the segment, or index of the section.
        what: String,
    },
    /// There is no room for another program header.
    NoRoom,
    /// The new content is larger than the old one.
    Grew,
}

impl PruneProblem {
    /// Returns what a user changes so that the file can be pruned, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Compressed(problem) => problem.remedy(),
            Self::Inflate(problem) => problem.remedy(),
            Self::Unpack {
                problem: FatbinUnpackError::Limit { .. },
                ..
            } => Some(Remedy::Limit),
            Self::Compress(CompressedBundleWriteError::Output { .. })
            | Self::WriteBinary(OffloadBinaryWriteError::Output { .. })
            | Self::Scratch { .. } => Some(Remedy::Space),
            _ => None,
        }
    }

    /// Tells whether the file has images of a kind that is not pruned; so such a file may stay as it is.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::LinkedTable
                | Self::NoDescriptor { .. }
                | Self::BundleSections
                | Self::NestedArchive
                | Self::MixedFormats { .. }
                | Self::ManySections
        )
    }

    /// Tells whether the file has no images of a kind that can be pruned.
    #[must_use]
    pub fn is_without_images(&self) -> bool {
        matches!(self, Self::Format | Self::ElfKind | Self::NoImages)
    }
}

impl PruneError {
    pub(super) fn whole(problem: PruneProblem) -> Self {
        Self {
            member: None,
            section: None,
            problem,
        }
    }

    pub(super) fn in_section(name: &[u8], problem: PruneProblem) -> Self {
        Self {
            section: Some(name.into()),
            ..Self::whole(problem)
        }
    }

    /// Adds the member. One of a native library in it is in parentheses.
    pub(super) fn in_member(self, name: &[u8]) -> Self {
        let inner = self.member.map(|inner| [b"(", &inner[..], b")"].concat());
        let member = [name, &inner.unwrap_or_default()].concat();
        Self {
            member: Some(member.into()),
            ..self
        }
    }
}

impl fmt::Display for PruneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(member) = &self.member {
            write!(f, "member `{}`: ", terminal(&member[..]))?;
        }
        if let Some(section) = &self.section {
            write!(f, "section `{}`: ", terminal(&section[..]))?;
        }
        self.problem.fmt(f)
    }
}

impl PruneProblem {
    /// Returns the text of a problem that has no values.
    fn text(&self) -> Option<&'static str> {
        Some(match self {
            Self::Format => {
                "expected an ELF file, an archive, a bundle, an offload binary or a CUDA fat binary"
            }
            Self::ElfKind => "expected a 64-bit little-endian ELF file for x86-64 or AArch64",
            Self::NoImages => {
                "no section `.hip_fatbin`, `.nv_fatbin` or `__nv_relfatbin` with device images"
            }
            Self::LinkedTable => {
                "the images of OpenMP or SYCL in a linked file are not compressed: their runtimes read them as they are"
            }
            Self::BundleSections => "images in sections `__CLANG_OFFLOAD_BUNDLE__…` are not pruned",
            Self::ThinArchive => "the members of a thin archive are other files\nhint: prune these",
            Self::ArchiveIndex => {
                "the archive's symbol index is not in GNU's format\n\
                 hint: create the archive with `llvm-ar --format=gnu`"
            }
            Self::NestedArchive => "archives in archives are not pruned",
            Self::ManySections => "files with 65,280 sections and more are not pruned",
            Self::NoRoom => "there is no room for another program header",
            Self::Grew => "there is no room for the new images, which are larger than the old ones",
            _ => return None,
        })
    }
}

impl fmt::Display for PruneProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(problem) => problem.fmt(f),
            Self::Elf(problem) => problem.fmt(f),
            Self::Outside(problem) => problem.fmt(f),
            Self::NoDescriptor { offset } => write!(
                f,
                "the offload binary at offset {offset:#x} is not OpenMP's; in a linked file, other offload binaries are not pruned\n\
                 hint: programs that call `image()` or `images()` cannot be pruned: remove targets in their Cargo.toml and build again"
            ),
            Self::Archive(problem) => problem.fmt(f),
            Self::OffloadBinary(problem) => problem.fmt(f),
            Self::Inflate(problem) => problem.fmt(f),
            Self::WriteBinary(problem) => problem.fmt(f),
            Self::Bundles(problem) => problem.fmt(f),
            Self::Bundle(problem) => problem.fmt(f),
            Self::Compressed(problem) => problem.fmt(f),
            Self::Fatbin(problem) => problem.fmt(f),
            Self::Unpack { offset, problem } => write!(
                f,
                "image at offset {offset:#x} of a CUDA fat binary: {problem}"
            ),
            Self::Pack(problem) => problem.fmt(f),
            Self::FatbinHeader { offset } => write!(
                f,
                "CUDA fat binary at offset {offset:#x}: the size of its header is unknown"
            ),
            Self::Write(problem) => problem.fmt(f),
            Self::Compress(problem) => problem.fmt(f),
            Self::Scratch { kind } => write!(f, "cannot create a temporary file: {kind}"),
            Self::Trailing { offset, size } => {
                write!(f, "{size:#x} bytes at offset {offset:#x} are not a bundle")
            }
            Self::MixedFormats { offset } => write!(
                f,
                "bundles or CUDA fat binaries share the section with the other data at offset {offset:#x}"
            ),
            Self::Inside { what, address } => write!(
                f,
                "a {what} points to address {address:#x}, inside of device code\n\
                 hint: programs that call `image()` or `images()` cannot be pruned: remove targets, or set `compress`, in their \
                 Cargo.toml and build again"
            ),
            Self::LargeData { offset, count: 1 } => write!(
                f,
                "the device code at offset {offset:#x} stays as it is, because the program may use it by its address"
            ),
            Self::LargeData { offset, count } => write!(
                f,
                "{count} bundles or CUDA fat binaries stay as they are, because the program may use them by their addresses: \
                 the one at offset {offset:#x} for example"
            ),
            Self::Unregistered { offset } => write!(
                f,
                "nothing points to the device code at offset {offset:#x}; the program may use it by its address"
            ),
            Self::UsedByAddress { offset } => write!(
                f,
                "the program uses the device code at offset {offset:#x} by its address or size, which would change\n\
                 hint: build the program with fewer targets, or with `compress`"
            ),
            Self::PackedRelocations { kind } => write!(
                f,
                "relocations in a packed form (a section of type {kind:#x}) are not read\n\
                 hint: link without `--pack-dyn-relocs=android`"
            ),
            Self::Relocation { kind, address } => write!(
                f,
                "the relocation at address {address:#x} of type {kind} refers to device code"
            ),
            Self::Spans { what } => write!(f, "{what} extends over the removed pages"),
            other => f.write_str(other.text().unwrap_or_default()),
        }
    }
}

impl std::error::Error for PruneError {}
impl std::error::Error for PruneProblem {}

impl From<io::Error> for PruneProblem {
    fn from(problem: io::Error) -> Self {
        let kind = problem.kind();
        Self::Scratch { kind }
    }
}
