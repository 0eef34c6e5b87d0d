//! Lists the images of a library of device code.
//!
//! | member                                          | images                               |
//! |-------------------------------------------------|--------------------------------------|
//! | an object with sections of a bundle             | the entries, except the host's       |
//! | a bundle, plain or compressed                   | the same; a text entry is an error   |
//! | an object with, or a file of, offload binaries  | their entries                        |
//! | bitcode, an AMD code object, a cubin            | the member; the library's name tells the target |
//! | another object                                  | the member, in a library for a CPU   |
//!
//! Specification: `docs/spec/bundler.md` §5, `docs/spec/linker-wrapper.md` §7.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use object::elf;

use super::archive::{Archive, ArchiveError};
use super::bundled::{self, DeviceTarget, Unpacking};
use super::elf::Elf;
use super::find::link_inputs_in;
use crate::container::decompression_limit::Remedy;
use crate::escape::terminal;
use crate::format::bytes::{ReadAt, SourceError, unless_unread};
use crate::format::magic::Magic;
use crate::format::unpacked::Unpacked;
use crate::names::EntryIdError;

/// An image of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryImage {
    /// Archive member that contains the image; empty if the library is not an archive.
    pub member: String,
    /// Offset of the bundle in the file, if the image is an entry of a bundle; identifies the bundle.
    pub bundle: Option<u64>,
    /// Target of the image; `None` if only the name of the library tells it.
    pub target: Option<DeviceTarget>,
    /// Range of the image, in `unpacked` or else in the file.
    pub range: Range<u64>,
    /// Unpacked bytes of a compressed container.
    pub unpacked: Option<Unpacked>,
}

impl LibraryImage {
    /// Returns the bytes of the image. `data` is the data that it was found in.
    pub fn content<'a, R: ReadAt<'a>>(&self, data: R) -> Option<Cow<'a, [u8]>> {
        bundled::content(&self.range, self.unpacked.as_ref(), data)
    }

    /// Returns the format of the image. `data` is the data that it was found in.
    pub fn magic<'d, R: ReadAt<'d>>(&self, data: R) -> Magic {
        match &self.unpacked {
            Some(bytes) => Magic::at(&bytes.open(), self.range.clone()),
            None => Magic::at(data, self.range.clone()),
        }
    }
}

/// Meaning of the ELF objects in a library that contain no images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlainObjects {
    /// Code for the host, in a library for GPUs.
    HostCode,
    /// Images, in a library for CPUs.
    Images,
}

/// Lists the images of a library in file order. A library is an archive, or a file of bitcode, bundles or
/// offload binaries.
///
/// Members without device code, such as host objects, and empty entries are left out. Compressed containers are unpacked,
/// as far as `unpacking` allows.
///
/// # Errors
///
/// Fails for files of other formats, damaged files, and thin archives, whose members are other files; if `data` cannot be
/// read.
pub fn images<'d, R: ReadAt<'d>>(
    data: R,
    plain: PlainObjects,
    unpacking: &mut Unpacking,
) -> Result<Vec<LibraryImage>, DeviceLibraryError> {
    let found = all_images(data, plain, unpacking);
    unless_unread(data, found, of_file(DeviceLibraryProblem::Read))
}

fn all_images<'d, R: ReadAt<'d>>(
    data: R,
    plain: PlainObjects,
    unpacking: &mut Unpacking,
) -> Result<Vec<LibraryImage>, DeviceLibraryError> {
    let size = data.size().unwrap_or(0);
    let mut found = Vec::new();
    match Magic::at(data, 0..size) {
        Magic::Archive => {
            let archive = Archive::parse(data, 0..size);
            for member in archive
                .map_err(of_file(DeviceLibraryProblem::Archive))?
                .members
            {
                let name = String::from_utf8_lossy(member.name).into_owned();
                let Some(content) = member.content else {
                    continue;
                };
                let before = found.len();
                let object =
                    plain == PlainObjects::Images && Magic::at(data, content.clone()) == Magic::Elf;
                part(data, content.clone(), &name, unpacking, &mut found).map_err(|problem| {
                    DeviceLibraryError {
                        member: name.clone(),
                        problem,
                    }
                })?;
                if object && found.len() == before {
                    found.push(LibraryImage {
                        member: name,
                        bundle: None,
                        target: None,
                        range: content,
                        unpacked: None,
                    });
                }
            }
        }
        Magic::Bitcode
        | Magic::Bundle
        | Magic::CompressedBundle
        | Magic::TextBundle
        | Magic::OffloadBinary => {
            part(data, 0..size, "", unpacking, &mut found).map_err(of_file(|problem| problem))?;
        }
        Magic::ThinArchive => return Err(of_file(|()| DeviceLibraryProblem::Thin)(())),
        _ => return Err(of_file(|()| DeviceLibraryProblem::Unknown)(())),
    }
    Ok(found)
}

fn of_file<P>(wrap: impl Fn(P) -> DeviceLibraryProblem) -> impl Fn(P) -> DeviceLibraryError {
    move |problem| DeviceLibraryError {
        member: String::new(),
        problem: wrap(problem),
    }
}

/// Adds the images in a member, or in the library itself.
fn part<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    member: &str,
    unpacking: &mut Unpacking,
    found: &mut Vec<LibraryImage>,
) -> Result<(), DeviceLibraryProblem> {
    let mut add = |target, bundle, range: Range<u64>, unpacked: Option<&Unpacked>| {
        if !range.is_empty() {
            found.push(LibraryImage {
                member: member.to_owned(),
                bundle,
                target,
                range,
                unpacked: unpacked.cloned(),
            });
        }
    };
    let magic = Magic::at(data, range.clone());
    match magic {
        Magic::Bitcode => add(None, None, range.clone(), None),
        Magic::Elf if is_for_device(data, range.clone()) => add(None, None, range.clone(), None),
        Magic::Bundle | Magic::CompressedBundle | Magic::TextBundle | Magic::Elf | Magic::Coff => {
            for entry in bundled::unpacked_entries(data, range.clone(), unpacking)
                .map_err(DeviceLibraryProblem::Bundle)?
            {
                let target = entry
                    .target()
                    .map_err(|problem| DeviceLibraryProblem::Entry {
                        id: entry.id.clone(),
                        problem,
                    })?;
                if let (Some(target), Some(_)) = (&target, entry.comment) {
                    let (id, target) = (entry.id, target.to_string());
                    return Err(DeviceLibraryProblem::Text { id, target });
                }
                if let Some(target) = target {
                    let bundle = Some(entry.bundle);
                    add(Some(target), bundle, entry.range, entry.unpacked.as_ref());
                }
            }
        }
        _ => {}
    }
    match magic {
        Magic::Elf | Magic::Coff | Magic::OffloadBinary => {
            offload_binaries(data, range, unpacking, &mut add)
        }
        _ => Ok(()),
    }
}

fn offload_binaries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
    add: &mut impl FnMut(Option<DeviceTarget>, Option<u64>, Range<u64>, Option<&Unpacked>),
) -> Result<(), DeviceLibraryProblem> {
    let images = link_inputs_in(data, range, unpacking);
    for image in images.map_err(|problem| DeviceLibraryProblem::Images(Box::new(problem)))? {
        let target = DeviceTarget {
            kind: image.entry.offload_kind,
            triple: image.entry.triple().to_owned(),
            processor: image.entry.arch().to_owned(),
        };
        let place = image.entry.image.clone();
        add(Some(target), None, place, image.bytes.as_ref());
    }
    Ok(())
}

fn is_for_device<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> bool {
    let machine = Elf::parse(data, range).map(|elf| elf.machine);
    machine.is_ok_and(|machine| [elf::EM_AMDGPU.0, elf::EM_CUDA.0].contains(&machine))
}

/// Reason why the images of a library cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceLibraryError {
    /// Archive member with the problem; empty for the library itself.
    pub member: String,
    /// The problem.
    pub problem: DeviceLibraryProblem,
}

/// A problem in a library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceLibraryProblem {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Not an archive, bitcode, a bundle or an offload binary.
    Unknown,
    /// A thin archive.
    Thin,
    /// Damage in the archive.
    Archive(ArchiveError),
    /// Damage in a bundle.
    Bundle(bundled::BundledEntryError),
    /// Damage in an offload binary.
    Images(Box<super::FindError>),
    /// An invalid entry ID.
    Entry {
        /// The entry ID, as written.
        id: String,
        /// The problem.
        problem: EntryIdError,
    },
    /// Device code as text.
    Text {
        /// The entry ID, as written.
        id: String,
        /// Its target.
        target: String,
    },
}

impl DeviceLibraryError {
    /// Returns what a user changes so that compressed images can be read, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match &self.problem {
            DeviceLibraryProblem::Bundle(problem) => problem.remedy(),
            DeviceLibraryProblem::Images(problem) => problem.remedy(),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceLibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.member.is_empty() {
            write!(f, "member `{}`: ", terminal(&self.member))?;
        }
        match &self.problem {
            DeviceLibraryProblem::Unknown => f.write_str(
                "expected an archive, bitcode, a bundle or an offload binary",
            ),
            DeviceLibraryProblem::Thin => f.write_str(
                "expected an archive that contains its members, found a thin archive\nhint: create it without `--thin` (`T`)",
            ),
            DeviceLibraryProblem::Read(problem) => problem.fmt(f),
            DeviceLibraryProblem::Archive(problem) => problem.fmt(f),
            DeviceLibraryProblem::Bundle(problem) => problem.fmt(f),
            DeviceLibraryProblem::Images(problem) => problem.fmt(f),
            DeviceLibraryProblem::Entry { id, problem } => {
                write!(f, "entry `{}`: {problem}", terminal(id))
            }
            DeviceLibraryProblem::Text { id, target } => write!(
                f,
                "entry `{}`: expected an object or bitcode for {}, found text\n\
                 hint: compile with -c and without -S, or link the library with `offload-link`",
                terminal(id),
                terminal(target)
            ),
        }
    }
}

impl std::error::Error for DeviceLibraryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::archive::{NewMember, write};
    use crate::container::{elf::Machine, embed};
    use crate::format::bundle::{BundleImage, to_bytes};
    use crate::format::bundle_text::{self, Comment};
    use std::num::NonZeroU64;

    /// Member, target, bytes.
    fn all(data: &[u8]) -> Result<Vec<(String, String, Vec<u8>)>, DeviceLibraryError> {
        let images = images(
            data,
            PlainObjects::HostCode,
            &mut Unpacking::in_memory(1 << 30),
        )?;
        let rows = images.iter().map(|image| {
            let target = image.target.as_ref().map(ToString::to_string);
            let content = image.content(data).unwrap().into_owned();
            (image.member.clone(), target.unwrap_or_default(), content)
        });
        Ok(rows.collect())
    }

    #[test]
    fn takes_objects_of_a_library_for_a_cpu() {
        let object = embed::elf_object(Machine::X86_64, &[]).unwrap();
        let archive = write(&[NewMember {
            name: "a.o",
            bytes: &object,
            symbols: &[],
        }]);
        assert_eq!(
            images(
                archive.as_slice(),
                PlainObjects::HostCode,
                &mut Unpacking::in_memory(1 << 30)
            )
            .unwrap(),
            []
        );
        let found = images(
            archive.as_slice(),
            PlainObjects::Images,
            &mut Unpacking::in_memory(1 << 30),
        )
        .unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].content(archive.as_slice()).unwrap(), object);
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
        let texts: &[(&str, &[u8])] = &[("hip-amdgcn-amd-amdhsa--gfx906", b"s_nop 0\n")];
        let texts = bundle_text::to_bytes(texts, Comment::Hash).unwrap();
        for (data, place) in [
            (write(&[member("a.s", &texts)]), "member `a.s`: "),
            (texts.clone(), ""),
        ] {
            let problem = all(&data).unwrap_err().to_string();
            let expected = format!(
                "{place}entry `hip-amdgcn-amd-amdhsa--gfx906`: expected an object or bitcode for amdgcn-amd-amdhsa gfx906, found text\n"
            );
            assert!(problem.starts_with(&expected), "{problem}");
        }
        let problem = all(b"text").unwrap_err().to_string();
        assert_eq!(
            problem,
            "expected an archive, bitcode, a bundle or an offload binary"
        );
        let problem = all(b"!<thin>\n").unwrap_err().to_string();
        assert!(
            problem.contains(", found a thin archive\nhint: "),
            "{problem}"
        );
    }
}
