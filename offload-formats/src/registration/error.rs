//! Why a registration object cannot be written.

use std::fmt;

use crate::container::elf::ElfWriteError;

/// Why an object cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no machine code for this host.
    Machine {
        /// `e_machine`.
        machine: u16,
    },
    /// A part is said to end after the bytes that hold it.
    Range {
        /// What the part is: `image 2`, `symbol`.
        what: String,
        /// First byte after the part.
        end: u64,
        /// Size of the bytes that hold it.
        size: u64,
    },
    /// A symbol or section name that no symbol table can hold.
    Name {
        /// The name.
        name: String,
    },
    /// An alignment that is no power of two.
    Alignment {
        /// Name of the section.
        section: String,
        /// In bytes.
        alignment: u64,
    },
    /// The number of images does not fit the descriptor.
    Images {
        /// Number of images.
        count: usize,
    },
    /// A kind of image that the descriptor's byte cannot hold.
    ImageKind {
        /// Index of the image.
        index: usize,
        /// Number of its kind.
        kind: u16,
    },
    /// A host whose object format is not supported here.
    Host {
        /// The host.
        triple: String,
    },
    /// Not one file for each image.
    Files {
        /// Number of images.
        images: usize,
        /// Number of files.
        files: usize,
    },
    /// A host object that cannot be edited.
    Elf(ElfWriteError),
    /// A field of the object file cannot hold its value.
    Object(WriterError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine { machine } => write!(
                f,
                "registration for host machine {machine:#x} is not supported \
                 (x86_64, 0x3e, and aarch64, 0xb7, are)"
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
                "section `{section}`: alignment {alignment:#x} is no power of two"
            ),
            Self::Images { count } => write!(f, "{count} images do not fit a binary descriptor"),
            Self::ImageKind { index, kind } => {
                write!(
                    f,
                    "image {index} is of kind {kind}; a SYCL descriptor ends at 255"
                )
            }
            Self::Host { triple } => write!(f, "there is no module for host `{triple}`"),
            Self::Files { images, files } => {
                write!(f, "{files} files cannot hold {images} images")
            }
            Self::Elf(problem) => problem.fmt(f),
            Self::Object(_) => f.write_str("the registration object cannot be written"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Object(source) => Some(source),
            _ => None,
        }
    }
}

impl Error {
    pub(super) fn object(error: object::write::Error) -> Self {
        Self::Object(WriterError(error))
    }
}

/// The object writer's own words on a value that a field cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterError(object::write::Error);

impl fmt::Display for WriterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for WriterError {}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::Name { name: name.into() });
    }
    Ok(())
}

/// The alignment of a section; 0 is none.
pub(super) fn check_alignment(section: &str, alignment: u64) -> Result<u64, Error> {
    match alignment.max(1) {
        checked if checked.is_power_of_two() => Ok(checked),
        alignment => Err(Error::Alignment {
            section: section.into(),
            alignment,
        }),
    }
}
