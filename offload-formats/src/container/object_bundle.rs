//! Object files that carry a bundle: the images of devices in sections of the host's object.
//!
//! Each entry of the bundle is a section, whose name is `__CLANG_OFFLOAD_BUNDLE__` and the entry
//! ID. The host's entry holds one NUL: its code is the object itself, without those sections.
//! Linkers leave the sections out, so that the object is linked as it is.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-object-file-layout>.
//! Where we differ from LLVM: `docs/differences.md`.

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

/// What the names of sections of a bundle start with.
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

/// The formats that are known by their first bytes, and the size of the smallest such file.
///
/// Bitcode and archives are none of them; COFF has no magic.
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
    /// Which a range of `data` consists of; none, if its headers are not those of an object file.
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

    /// For messages.
    #[must_use]
    pub fn name(self) -> &'static str {
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
pub struct BundleSection {
    /// Its entry ID, as it was written.
    pub id: String,
    /// What the section holds, from the start of the file that the object is in.
    pub content: Range<u64>,
    /// Whether it stands for the object itself, as [`host_part`] gives it.
    pub host: bool,
}

/// The entries of the bundle that an object file carries, in the order of its sections; none, if
/// it carries none. The same entry ID may be there more than once.
///
/// # Errors
///
/// When it is no object file whose sections can be read, its sections are damaged, or an entry ID
/// is not UTF-8.
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
        Format::Elf => {
            let elf = Elf::parse(data, range)?;
            let names = elf.names()?;
            for section in elf.sections().skip(1) {
                let name = names.of(&section)?;
                if name.starts_with(BUNDLE_SECTION.as_bytes()) {
                    look(name, elf.check(&section)?)?;
                }
            }
        }
        Format::Coff => {
            for section in coff::sections(data, range)? {
                look(section.name, section.content)?;
            }
        }
    }
    Ok(found)
}

/// The same of what starts like an object, which [`bundle_sections`] takes for none when it is cut short.
///
/// # Errors
///
/// As [`bundle_sections`]; of an ELF file that is cut short, where.
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

/// An entry to put into an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewObjectEntry<'a> {
    /// Its entry ID.
    pub id: &'a str,
    /// Size of its image; none for the host's entry, whose image is the object.
    pub size: Option<u64>,
}

/// A host's object with a bundle in it: the entries in this order, after those that it may have.
///
/// Input 0 of the pieces is `data`, and input *k* + 1 is the image of the entry of index *k*.
///
/// # Errors
///
/// When it is no object file that can be written, or is damaged, or an entry ID has a NUL in it.
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
        Format::Elf => elf::add_sections(data, range, &sections)?,
        Format::Coff => coff::add_sections(data, range, &sections)?,
    })
}

/// The host's object, without the bundles that it carries.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// As [`embed_bundle`].
pub fn host_part<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Vec<Piece>, ObjectError> {
    let matches = |name: &[u8]| name.starts_with(BUNDLE_SECTION.as_bytes());
    Ok(match writable(data, range.clone())? {
        Format::Elf => elf::remove_sections(data, range, matches)?,
        Format::Coff => coff::remove_sections(data, range, matches)?,
    })
}

/// What can be written.
enum Format {
    Elf,
    Coff,
}

fn writable<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Format, ObjectError> {
    match ObjectKind::of(data, range) {
        Some(ObjectKind::Elf) => Ok(Format::Elf),
        Some(ObjectKind::Coff | ObjectKind::Image) => Ok(Format::Coff),
        Some(kind) => Err(ObjectError::Unsupported { kind }),
        None => Err(ObjectError::Unknown),
    }
}

/// Why an object file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is no object file of any format.
    Unknown,
    /// Of a format whose sections are not read and not written.
    Unsupported {
        /// The format.
        kind: ObjectKind,
    },
    /// An entry ID that is not UTF-8, or has a NUL in it.
    Id {
        /// It.
        id: Vec<u8>,
    },
    /// What is wrong with an ELF file.
    Elf(ElfWriteError),
    /// What is wrong with a COFF file.
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
            Self::Unknown => write!(f, "not an object file, or one that is cut short"),
            Self::Unsupported { kind } => write!(
                f,
                "sections of a {} file can be neither read nor written (those of ELF and COFF can)",
                kind.name()
            ),
            Self::Id { id } => {
                let id = terminal(&id[..]);
                write!(f, "entry ID `{id}` is not UTF-8 without NUL")
            }
            Self::Elf(problem) => problem.fmt(f),
            Self::Coff(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for ObjectError {}

#[cfg(test)]
mod tests;
