//! Errors of registrations.

use std::fmt;

use crate::container::data_object::DataObjectError;
use crate::container::elf::ElfWriteError;
use crate::format::pieces::{self, Piece};

/// An error while writing a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationError {
    /// This crate has no machine code for the host.
    Machine {
        /// `e_machine`.
        machine: u16,
    },
    /// A part exceeds the bytes that contain it.
    Range {
        /// Name of the part: `image 2`, `symbol`.
        what: String,
        /// End of the part.
        end: u64,
        /// Size of the bytes.
        size: u64,
    },
    /// An invalid symbol or section name.
    Name {
        /// The name.
        name: String,
    },
    /// An alignment that is not a power of two.
    Alignment {
        /// Name of the section.
        section: String,
        /// Alignment in bytes.
        alignment: u64,
    },
    /// Too many images for the descriptor.
    Images {
        /// Number of images.
        count: usize,
    },
    /// An image kind that does not fit into the descriptor's byte.
    ImageKind {
        /// Index of the image.
        index: usize,
        /// Number of the kind.
        kind: u16,
    },
    /// A host with an unsupported object format.
    Host {
        /// Triple of the host.
        triple: String,
    },
    /// The number of files differs from the number of images.
    Files {
        /// Number of images.
        images: usize,
        /// Number of files.
        files: usize,
    },
    /// Embedded pieces that copy an input, where bytes in memory are required.
    Copied,
    /// A host object that cannot be edited.
    Elf(ElfWriteError),
    /// A field of the object file cannot hold its value.
    Object(DataObjectError),
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine { machine } => write!(
                f,
                "registration: expected host machine 0x3e (x86_64) or 0xb7 (aarch64), found {machine:#x}"
            ),
            Self::Range { what, end, size } => {
                write!(f, "{what} ends at {end:#x}, after the end at {size:#x}")
            }
            Self::Name { name } => {
                let name = crate::escape::terminal(name);
                write!(f, "`{name}` cannot be the name of a symbol or section")
            }
            Self::Alignment { section, alignment } => write!(
                f,
                "section `{section}`: alignment {alignment:#x} is not a power of two"
            ),
            Self::Images { count } => write!(f, "too many images for a binary descriptor: {count}"),
            Self::ImageKind { index, kind } => {
                write!(f, "image {index}: expected a kind up to 255, found {kind}")
            }
            Self::Host { triple } => write!(f, "LLVM IR is not supported for host `{triple}`"),
            Self::Files { images, files } => {
                write!(
                    f,
                    "expected {images} files, one for each image, found {files}"
                )
            }
            Self::Copied => f.write_str("the embedded bytes are not in memory"),
            Self::Elf(problem) => problem.fmt(f),
            Self::Object(_) => f.write_str("the registration object cannot be written"),
        }
    }
}

impl std::error::Error for RegistrationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Object(source) => Some(source),
            _ => None,
        }
    }
}

/// Joins the pieces of an object whose embedded bytes are in memory.
pub(super) fn in_memory(object: &[Piece]) -> Result<Vec<u8>, RegistrationError> {
    pieces::to_bytes(object, &[]).ok_or(RegistrationError::Copied)
}

pub(super) fn check_name(name: &str) -> Result<(), RegistrationError> {
    if name.is_empty() || name.contains('\0') {
        return Err(RegistrationError::Name { name: name.into() });
    }
    Ok(())
}

/// Checks the alignment of a section; replaces 0 by 1.
pub(super) fn check_alignment(section: &str, alignment: u64) -> Result<u64, RegistrationError> {
    match alignment.max(1) {
        checked if checked.is_power_of_two() => Ok(checked),
        alignment => Err(RegistrationError::Alignment {
            section: section.into(),
            alignment,
        }),
    }
}
