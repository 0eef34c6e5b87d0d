//! Object files with a bundle: device images in sections of the host's object.
//!
//! Each entry of the bundle is a section. Its name is `__CLANG_OFFLOAD_BUNDLE__` followed by the entry
//! ID. The host's entry contains one NUL: the host's image is the object itself, without those sections.
//! Linkers leave the sections out, so the object can be linked as it is.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-object-file-layout>.
//! `docs/differences.md` lists differences from LLVM.

use std::fmt;
use std::ops::Range;

use super::coff::{self, CoffError};
use super::edit::{NewContent, NewSection};
use super::elf::{self, Elf, ElfError, ElfWriteError};
use crate::escape::terminal;
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::magic::Magic;
use crate::format::pieces::Piece;
use crate::names::EntryKind;

/// Prefix of the names of a bundle's sections.
pub const BUNDLE_SECTION: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// Formats of object files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectKind {
    /// ELF of any class and byte order: object, program or shared library.
    Elf,
    /// A COFF object.
    Coff,
    /// A PE image: a program or shared library of Windows.
    Image,
    /// Mach-O.
    MachO,
    /// WebAssembly.
    Wasm,
    /// XCOFF.
    Xcoff,
}

/// Magics of object formats, with the size of the smallest file. COFF has no magic.
const MAGICS: [(&[u8], ObjectKind, u64); 7] = [
    (b"\xfe\xed\xfa\xce", ObjectKind::MachO, 28),
    (b"\xce\xfa\xed\xfe", ObjectKind::MachO, 28),
    (b"\xfe\xed\xfa\xcf", ObjectKind::MachO, 32),
    (b"\xcf\xfa\xed\xfe", ObjectKind::MachO, 32),
    (b"\0asm\x01\0\0\0", ObjectKind::Wasm, 8),
    (b"\x01\xdf", ObjectKind::Xcoff, 20),
    (b"\x01\xf7", ObjectKind::Xcoff, 24),
];

impl ObjectKind {
    /// Returns the format of the object file in a range of `data`; `None` if its headers are not those of an object file.
    pub fn of<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<Self> {
        match Magic::at(data, range.clone()) {
            Magic::Elf => return Elf::parse(data, range).is_ok().then_some(Self::Elf),
            Magic::Unknown | Magic::Coff | Magic::DosProgram => (),
            Magic::MachO | Magic::Wasm | Magic::Xcoff => (),
            _ => return None,
        }
        let cursor = Cursor::new(data, range.clone());
        let size = cursor.end().saturating_sub(cursor.position());
        let known = MAGICS.iter().find(|(magic, _, smallest)| {
            let first = cursor.clone().read(magic.len() as u64, "magic");
            size >= *smallest && first == Ok(magic)
        });
        match known {
            Some((_, kind, _)) => Some(*kind),
            None if coff::is_image(data, range.clone()) => Some(Self::Image),
            None => coff::is_object(data, range).then_some(Self::Coff),
        }
    }

    /// Returns the format's name for messages.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elf => "ELF",
            Self::Coff => "COFF",
            Self::Image => "PE",
            Self::MachO => "Mach-O",
            Self::Wasm => "WebAssembly",
            Self::Xcoff => "XCOFF",
        }
    }
}

/// An entry of a bundle in an object file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleSection {
    /// The entry ID, as written.
    pub id: String,
    /// Range of the section's content, from the start of the file that contains the object.
    pub content: Range<u64>,
    /// True if the entry represents the object itself, which [`host_part`] returns.
    pub host: bool,
}

/// Lists the entries of an object file's bundle in the order of sections. The list is empty if the
/// file has no bundle. Entry IDs may repeat.
///
/// # Errors
///
/// Fails if the format is not supported, the sections are damaged, or an entry ID is not UTF-8.
pub fn bundle_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<BundleSection>, ObjectError> {
    let mut found = Vec::new();
    let mut look = |name: &[u8], content: Range<u64>| -> Result<(), ObjectError> {
        let Some(id) = name.strip_prefix(BUNDLE_SECTION.as_bytes()) else {
            return Ok(());
        };
        let id = std::str::from_utf8(id).map_err(|_| ObjectError::Id { id: id.to_vec() })?;
        let kind = id.split('-').next().and_then(EntryKind::from_name);
        let mut cursor = Cursor::new(data, content.clone());
        let only = content.end.saturating_sub(content.start) == 1;
        let host = only && kind == Some(EntryKind::Host) && cursor.read(1, "content") == Ok(&[0]);
        let id = id.to_owned();
        found.push(BundleSection { id, content, host });
        Ok(())
    };
    match writable(data, range.clone())? {
        WritableFormat::Elf => {
            let elf = Elf::parse(data, range)?;
            let names = elf.names()?;
            for section in elf.sections().skip(1) {
                let name = names.of(&section)?;
                if name.starts_with(BUNDLE_SECTION.as_bytes()) {
                    look(name, elf.check(&section)?)?;
                }
            }
        }
        WritableFormat::Coff => {
            for section in coff::sections(data, range)? {
                look(section.name, section.content)?;
            }
        }
    }
    Ok(found)
}

/// Lists entries as [`bundle_sections`] does, with a better error for truncated ELF files.
///
/// # Errors
///
/// Fails as [`bundle_sections`] does. For a truncated ELF file, the error tells where it ends.
pub fn whole_bundle_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<BundleSection>, ObjectError> {
    let found = bundle_sections(data, range.clone());
    match found {
        Err(ObjectError::Unknown) if Magic::at(data, range.clone()) == Magic::Elf => {
            Elf::parse(data, range)?;
            found
        }
        found => found,
    }
}

/// An entry to embed in an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewObjectEntry<'a> {
    /// The entry ID.
    pub id: &'a str,
    /// Size of the image in bytes; `None` for the host's entry, whose image is the object.
    pub size: Option<u64>,
}

/// Returns a host's object with a bundle: `entries` in this order, after entries that it already has.
///
/// Input 0 of the pieces is `data`, and input *k* + 1 is the image of the entry with index *k*.
///
/// # Errors
///
/// Fails if the format is not supported, the file is damaged, or an entry ID contains a NUL.
pub fn embed_bundle<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    entries: &[NewObjectEntry<'_>],
) -> Result<Vec<Piece>, ObjectError> {
    let format = writable(data, range.clone())?;
    if let Some(entry) = entries.iter().find(|entry| entry.id.contains('\0')) {
        let id = entry.id.as_bytes().to_vec();
        return Err(ObjectError::Id { id });
    }
    let name = |entry: &NewObjectEntry<'_>| format!("{BUNDLE_SECTION}{}", entry.id);
    let names: Vec<String> = entries.iter().map(name).collect();
    let mut sections = Vec::new();
    for (entry, name) in entries.iter().zip(&names) {
        sections.push(NewSection {
            name: name.as_bytes(),
            content: match entry.size {
                Some(size) => NewContent::Input { size },
                None => NewContent::Bytes(&[0]),
            },
        });
    }
    Ok(match format {
        WritableFormat::Elf => elf::add_sections(data, range, &sections)?,
        WritableFormat::Coff => coff::add_sections(data, range, &sections)?,
    })
}

/// Returns the host's object without its bundle.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails as [`embed_bundle`] does.
#[cfg(feature = "tools")]
pub fn host_part<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Vec<Piece>, ObjectError> {
    let matches = |name: &[u8]| name.starts_with(BUNDLE_SECTION.as_bytes());
    Ok(match writable(data, range.clone())? {
        WritableFormat::Elf => elf::remove_sections(data, range, matches)?,
        WritableFormat::Coff => coff::remove_sections(data, range, matches)?,
    })
}

/// Formats that can be written.
enum WritableFormat {
    Elf,
    Coff,
}

fn writable<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<WritableFormat, ObjectError> {
    match ObjectKind::of(data, range) {
        Some(ObjectKind::Elf) => Ok(WritableFormat::Elf),
        Some(ObjectKind::Coff | ObjectKind::Image) => Ok(WritableFormat::Coff),
        Some(kind) => Err(ObjectError::Unsupported { kind }),
        None => Err(ObjectError::Unknown),
    }
}

/// Reason why an object file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// Not an object file of a known format, or truncated.
    Unknown,
    /// A format whose sections are not supported.
    Unsupported {
        /// The format.
        kind: ObjectKind,
    },
    /// An entry ID that is not UTF-8 or contains a NUL.
    Id {
        /// The entry ID.
        id: Vec<u8>,
    },
    /// Damage in an ELF file.
    Elf(ElfWriteError),
    /// Damage in a COFF file.
    Coff(CoffError),
}

impl From<ElfError> for ObjectError {
    fn from(problem: ElfError) -> Self {
        Self::Elf(problem.into())
    }
}

impl From<ElfWriteError> for ObjectError {
    fn from(problem: ElfWriteError) -> Self {
        Self::Elf(problem)
    }
}

impl From<CoffError> for ObjectError {
    fn from(problem: CoffError) -> Self {
        Self::Coff(problem)
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(
                f,
                "expected an object file, found another format or a truncated file"
            ),
            Self::Unsupported { kind } => write!(
                f,
                "sections of {} files are not supported (those of ELF and COFF are)",
                kind.name()
            ),
            Self::Id { id } => {
                let id = terminal(&id[..]);
                write!(f, "invalid entry ID `{id}`: expected UTF-8 without NUL")
            }
            Self::Elf(problem) => problem.fmt(f),
            Self::Coff(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for ObjectError {}

#[cfg(test)]
mod tests;
