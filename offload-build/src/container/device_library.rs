//! The images of a library for devices, whatever made it.
//!
//! | member                                          | images                               |
//! |-------------------------------------------------|--------------------------------------|
//! | an object with sections of a bundle             | its entries, but the host's          |
//! | a bundle, plain or compressed                   | the same                             |
//! | an object or a file of offload binaries         | their entries                        |
//! | bitcode, a code object of AMD, a cubin          | itself; the library's name says for what |
//!
//! Specification: bundler §5, linker-wrapper §7.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use object::{ReadRef, elf};

use super::archive::{Archive, ArchiveError};
use super::elf::Elf;
use super::object_bundle::{ObjectError, bundle_sections};
use crate::format::bundle::{self, Bundle};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::Window;
use crate::format::compressed_bundle;
use crate::format::magic::Magic;
use crate::target::{EntryId, EntryIdError, EntryKind, ImageTarget};

/// The most that a compressed bundle may take when it is unpacked.
const LIMIT: u64 = 1 << 32;

/// An image of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryImage {
    /// The archive member that it is in; empty for a library that is one file of bitcode.
    pub member: String,
    /// Who it is for; nothing when only the name of the library says so.
    pub target: Option<LibraryTarget>,
    /// Where it is: in `unpacked`, or else in the file.
    pub range: Range<u64>,
    /// What had to be unpacked.
    pub unpacked: Option<Arc<[u8]>>,
}

/// Who an image is for, as offload binaries say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryTarget {
    /// The triple, in three fields.
    pub triple: String,
    /// A processor or target ID; may be empty.
    pub processor: String,
}

impl LibraryTarget {
    /// That of a bundle's entry; nothing for the host's.
    ///
    /// # Errors
    ///
    /// When the entry ID is of no known kind, or has too few fields.
    pub fn of_entry(id: &str) -> Result<Option<Self>, EntryIdError> {
        let id = EntryId::parse(id)?;
        if id.kind() == EntryKind::Host {
            return Ok(None);
        }
        let triple = id.triple();
        // Four fields, where offload binaries have three.
        let fields = [triple.arch(), triple.vendor(), triple.os()].join("-");
        Ok(Some(Self {
            triple: match triple.environment() {
                "" | "unknown" => fields,
                environment => format!("{fields}-{environment}"),
            },
            processor: id.target_id().to_owned(),
        }))
    }

    /// The same, to be compared.
    #[must_use]
    pub fn image_target(&self) -> ImageTarget<'_> {
        ImageTarget {
            triple: &self.triple,
            arch: &self.processor,
        }
    }
}

/// As people read it: `amdgcn-amd-amdhsa gfx90a`.
impl fmt::Display for LibraryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor.as_str() {
            "" => f.write_str(&self.triple),
            processor => write!(f, "{} {processor}", self.triple),
        }
    }
}

impl LibraryImage {
    /// The bytes of the image, given the data that it was found in.
    pub fn content<'a, R: ReadRef<'a>>(&'a self, data: R) -> Option<&'a [u8]> {
        let size = self.range.end.checked_sub(self.range.start)?;
        match &self.unpacked {
            Some(bytes) => bytes.as_ref().read_bytes_at(self.range.start, size).ok(),
            None => data.read_bytes_at(self.range.start, size).ok(),
        }
    }
}

/// The images of a library, in its order: an archive, or a file of bitcode or of bundles.
///
/// Members that are nothing for a device, such as objects of the host, are left out; so are empty
/// entries.
///
/// # Errors
///
/// When it is none of these or is damaged, or a thin archive, whose members are files of their own.
pub fn images<'d, R: ReadRef<'d>>(data: R) -> Result<Vec<LibraryImage>, Error> {
    let size = data.len().unwrap_or(0);
    let mut found = Vec::new();
    match Magic::at(data, 0..size) {
        Magic::Archive => {
            let archive = Archive::parse(data, 0..size);
            for member in archive.map_err(of_file(Problem::Archive))?.members {
                let name = String::from_utf8_lossy(member.name).into_owned();
                let Some(content) = member.content else {
                    continue;
                };
                part(data, content, &name, &mut found).map_err(|problem| Error {
                    member: name.clone(),
                    problem,
                })?;
            }
        }
        Magic::Bitcode | Magic::Bundle | Magic::CompressedBundle | Magic::OffloadBinary => {
            part(data, 0..size, "", &mut found).map_err(of_file(|problem| problem))?;
        }
        _ => return Err(of_file(|()| Problem::Unknown)(())),
    }
    Ok(found)
}

fn of_file<P>(wrap: impl Fn(P) -> Problem) -> impl Fn(P) -> Error {
    move |problem| Error {
        member: String::new(),
        problem: wrap(problem),
    }
}

/// What is in a member, or in the library itself.
fn part<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
    member: &str,
    found: &mut Vec<LibraryImage>,
) -> Result<(), Problem> {
    let mut add = |target, range: Range<u64>, unpacked: Option<&Arc<[u8]>>| {
        if !range.is_empty() {
            found.push(LibraryImage {
                member: member.to_owned(),
                target,
                range,
                unpacked: unpacked.cloned(),
            });
        }
    };
    let target = |id: &str| {
        let target = LibraryTarget::of_entry(id);
        target.map_err(|problem| Problem::Entry {
            id: id.to_owned(),
            problem,
        })
    };
    let magic = Magic::at(data, range.clone());
    match magic {
        Magic::Bundle | Magic::CompressedBundle => {
            for bundle in bundles::walk(data, range)
                .map_err(Problem::Bundles)?
                .bundles
            {
                let (entries, unpacked) = match bundle {
                    AnyBundle::Plain(bundle) => (bundle.entries, None),
                    AnyBundle::Compressed(compressed) => {
                        let bytes = compressed.decompress(data, LIMIT);
                        let bytes: Arc<[u8]> = bytes.map_err(Problem::Compressed)?.into();
                        let bundle = Bundle::parse(&*bytes, 0, bytes.len() as u64);
                        (bundle.map_err(Problem::Bundle)?.entries, Some(bytes))
                    }
                };
                for entry in entries {
                    if let Some(target) = target(&entry.id)? {
                        add(Some(target), entry.image, unpacked.as_ref());
                    }
                }
            }
        }
        Magic::Bitcode => add(None, range.clone(), None),
        Magic::Elf if is_for_device(data, range.clone()) => add(None, range, None),
        Magic::Elf | Magic::Coff => {
            for section in bundle_sections(data, range.clone()).map_err(Problem::Object)? {
                if let Some(target) = target(&section.id)? {
                    add(Some(target), section.content, None);
                }
            }
            offload_binaries(data, range, &mut add)?;
        }
        Magic::OffloadBinary => offload_binaries(data, range, &mut add)?,
        _ => {}
    }
    Ok(())
}

fn offload_binaries<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
    add: &mut impl FnMut(Option<LibraryTarget>, Range<u64>, Option<&Arc<[u8]>>),
) -> Result<(), Problem> {
    let start = range.start;
    let images = super::link_inputs(Window::new(data, range));
    for image in images.map_err(|problem| Problem::Images(Box::new(problem)))? {
        let target = LibraryTarget {
            triple: image.entry.triple().to_owned(),
            processor: image.entry.arch().to_owned(),
        };
        let place = image.entry.image.clone();
        match &image.bytes {
            Some(bytes) => add(Some(target), place, Some(bytes)),
            None => {
                let moved = |at: u64| at.saturating_add(start);
                add(Some(target), moved(place.start)..moved(place.end), None);
            }
        }
    }
    Ok(())
}

fn is_for_device<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> bool {
    let machine = Elf::parse(data, range).map(|elf| elf.machine);
    machine.is_ok_and(|machine| [elf::EM_AMDGPU.0, elf::EM_CUDA.0].contains(&machine))
}

/// Why the images of a library cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The archive member; empty for the library itself.
    pub member: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is no archive, bitcode or bundle.
    Unknown,
    /// With the archive.
    Archive(ArchiveError),
    /// With an object.
    Object(ObjectError),
    /// With bundles.
    Bundles(bundles::Error),
    /// With a bundle that was compressed.
    Bundle(bundle::Error),
    /// With its compressed form.
    Compressed(compressed_bundle::Error),
    /// With offload binaries.
    Images(Box<super::Error>),
    /// An entry ID that is not understood.
    Entry {
        /// As written.
        id: String,
        /// What is wrong with it.
        problem: EntryIdError,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.member.is_empty() {
            write!(f, "member `{}`: ", self.member)?;
        }
        match &self.problem {
            Problem::Unknown => f.write_str("neither an archive nor bitcode nor a bundle"),
            Problem::Archive(problem) => problem.fmt(f),
            Problem::Object(problem) => problem.fmt(f),
            Problem::Bundles(problem) => problem.fmt(f),
            Problem::Bundle(problem) => problem.fmt(f),
            Problem::Compressed(problem) => problem.fmt(f),
            Problem::Images(problem) => problem.fmt(f),
            Problem::Entry { id, problem } => write!(f, "entry `{id}`: {problem}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::archive::{NewMember, write};
    use crate::format::bundle::{BundleImage, to_bytes};
    use std::num::NonZeroU64;

    /// Member, target, bytes.
    fn all(data: &[u8]) -> Result<Vec<(String, String, Vec<u8>)>, Error> {
        let images = images(data)?;
        let rows = images.iter().map(|image| {
            let target = image.target.as_ref().map(ToString::to_string);
            let content = image.content(data).unwrap().to_vec();
            (image.member.clone(), target.unwrap_or_default(), content)
        });
        Ok(rows.collect())
    }

    #[test]
    fn finds_bundles_and_bitcode_in_an_archive() {
        let bundle = [
            ("host-x86_64-unknown-linux-gnu-", &b""[..]),
            ("hip-amdgcn-amd-amdhsa--gfx906", b"one"),
            ("openmp-amdgcn-amd-amdhsa--gfx90a:xnack+", b"two"),
        ]
        .map(|(id, image)| BundleImage { id, image });
        let bundle = to_bytes(&bundle, NonZeroU64::MIN).unwrap();
        let bitcode = b"BC\xc0\xde-----";
        let member = |name, bytes| NewMember {
            name,
            bytes,
            symbols: &[],
        };
        let archive = write(&[
            member("a.bc", &bundle),
            member("b.bc", bitcode),
            member("note", b"text"),
        ]);
        let row = |member: &str, target: &str, bytes: &[u8]| {
            (member.to_owned(), target.to_owned(), bytes.to_vec())
        };
        assert_eq!(
            all(&archive).unwrap(),
            [
                row("a.bc", "amdgcn-amd-amdhsa gfx906", b"one"),
                row("a.bc", "amdgcn-amd-amdhsa gfx90a:xnack+", b"two"),
                row("b.bc", "", bitcode),
            ]
        );
        assert_eq!(all(bitcode).unwrap(), [row("", "", bitcode)]);
        let cut = write(&[member("a.bc", &bundle[..40])]);
        let problem = all(&cut).unwrap_err().to_string();
        assert!(problem.starts_with("member `a.bc`: "), "{problem}");
        let problem = all(b"text").unwrap_err().to_string();
        assert_eq!(problem, "neither an archive nor bitcode nor a bundle");
    }
}
