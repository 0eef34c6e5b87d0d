//! Finds every image in the offload binaries of any file, with its place.
//!
//! | file                    | place of offload binaries                                         |
//! |-------------------------|-------------------------------------------------------------------|
//! | offload binaries        | the file                                                          |
//! | ELF                     | sections of type `0x6fff4c0b`, ours of finished images, `.lrodata` |
//! | COFF object             | sections whose name starts with `.llvm.offloading`                |
//! | PE image                | the same; names that the linker cut to `.llvm.of` or `.llvm`      |
//! | Mach-O, also universal  | sections that start with an offload binary                        |
//! | bitcode                 | variables that `llvm.embedded.objects` lists for that section     |
//! | archive, of any form    | its members, which may be archives                                |
//!
//! Reads the headers of objects and archives, and all of an offload binary except its images.
//! Bitcode and compressed offload binaries are read completely: the file does not contain their images byte by byte.

mod error;

use std::borrow::Cow;
use std::io::Write as _;
use std::ops::Range;

use super::archive::Archive;
use super::bundled::{Unpacking, content};
use super::coff::{CoffError, Listing};
use super::elf::{self, Elf, FINISHED_SECTION, OFFLOADING_SECTION};
use super::large::{self, LARGE_SECTION};
use super::macho;
use crate::format::bitcode;
use crate::format::bytes::{OutOfBounds, ReadAt, unless_unread};
use crate::format::magic::Magic;
use crate::format::offload_binary::{self, BinaryEntry, OffloadBinary};
use crate::format::unpacked::Unpacked;

pub use error::{FindError, FindProblem};
#[doc(inline)]
pub use offload_formats_core::settings::INFLATE_LIMIT;

/// An image and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundImage {
    /// Names of the archive members that contain the image, the outermost first. For a universal
    /// Mach-O file, the names of processors.
    pub members: Vec<Vec<u8>>,
    /// Number of the section that contains the image. In ELF it is the index of the section
    /// header; other formats count from 1.
    pub section: Option<u32>,
    /// Tells if a linker wrapper would link the image.
    pub standing: Standing,
    /// Index of the offload binary in its section or file.
    pub binary: usize,
    /// Range of that offload binary, in `bytes` or else in the file.
    pub binary_range: Range<u64>,
    /// Index of the entry in that offload binary.
    pub index: usize,
    /// The entry, whose image is in `bytes` or else in the file.
    pub entry: BinaryEntry,
    /// Unpacked bytes, if the file does not contain them as they are: objects embedded in bitcode,
    /// and compressed offload binaries.
    pub bytes: Option<Unpacked>,
}

impl FoundImage {
    /// Returns the bytes of the image. `data` is the data that it was found in.
    pub fn content<'a, R: ReadAt<'a>>(&self, data: R) -> Option<Cow<'a, [u8]>> {
        content(&self.entry.image, self.bytes.as_ref(), data)
    }
}

/// Tells if the images of a section or file are input of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// A file of offload binaries: input, because the caller named the file.
    Raw,
    /// A section that the host linker leaves out, or bitcode that becomes one: input.
    Excluded,
    /// A section that programs load. Its images are usually linked and registered already;
    /// without a registration, a Rust `static` placed them there.
    Allocated,
    /// Our section of linked and registered images: never input.
    Finished,
}

/// A result of [`find()`]: an image, or a part of the file that was not searched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundItem {
    /// An image.
    Image(FoundImage),
    /// A member of a thin archive. Its content is another file, which the caller can open and search.
    Outside {
        /// Names of the archive members, the outermost first. The last is the path of the
        /// file, relative to the archive's folder.
        members: Vec<Vec<u8>>,
        /// Size of the file in bytes, according to the archive.
        size: u64,
    },
    /// An object of a format without a known place for images.
    Unread {
        /// Names of the archive members that contain the object, the outermost first.
        members: Vec<Vec<u8>>,
        /// The object's format.
        format: Magic,
    },
}

/// Depth of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Input of a linker wrapper: sections are found by type, and names are not read.
    Inputs,
    /// Every image.
    All,
}

/// Finds every image in the offload binaries in `data`, and lists what it did not search: members of thin archives, and
/// objects of WebAssembly and AIX. Files of other formats contain no offload binaries. Images in bundles, fat binaries and
/// code objects are found by `container::inventory`.
///
/// The result has the order of members, sections and offload binaries. Compressed offload binaries are inflated in
/// memory, up to [`INFLATE_LIMIT`] bytes in all.
///
/// # Errors
///
/// Fails if a file, member or offload binary is invalid, compressed offload binaries claim too much memory, or `data` cannot
/// be read.
pub fn find<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundItem>, FindError> {
    find_within(data, &mut Unpacking::in_memory(INFLATE_LIMIT))
}

/// Finds every image in `data`, as [`find`] does. Compressed offload binaries are inflated as far as `unpacking`
/// allows.
///
/// # Errors
///
/// Fails as [`find`] does, and if an inflated offload binary cannot be written.
pub fn find_within<'d, R: ReadAt<'d>>(
    data: R,
    unpacking: &mut Unpacking,
) -> Result<Vec<FoundItem>, FindError> {
    let size = data.size().unwrap_or(0);
    look(data, 0..size, Look::All, unpacking)
}

/// Finds every image in the offload binaries in `data`, as [`find`] does, for callers that open no other files.
///
/// # Errors
///
/// Fails as [`find`] does, and for a thin archive, whose members are other files.
pub fn images<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundImage>, FindError> {
    images_within(data, &mut Unpacking::in_memory(INFLATE_LIMIT))
}

/// Finds every image in `data`, as [`images`] does, within `unpacking` as [`find_within`] does.
///
/// # Errors
///
/// Fails as [`images`] does.
pub fn images_within<'d, R: ReadAt<'d>>(
    data: R,
    unpacking: &mut Unpacking,
) -> Result<Vec<FoundImage>, FindError> {
    all_here(find_within(data, unpacking)?)
}

/// Finds the images that a linker wrapper links: those of [`images`] except the finished ones. To find those, [`images`]
/// reads the section names of ELF files; this function does not. `unpacking` is that of [`find_within`].
///
/// # Errors
///
/// Fails as [`images`] does.
#[cfg(feature = "tools")]
pub fn link_inputs<'d, R: ReadAt<'d>>(
    data: R,
    unpacking: &mut Unpacking,
) -> Result<Vec<FoundImage>, FindError> {
    let size = data.size().unwrap_or(0);
    link_inputs_in(data, 0..size, unpacking)
}

/// Finds the link inputs of the file in a range of `data`.
pub(super) fn link_inputs_in<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<FoundImage>, FindError> {
    all_here(look(data, range, Look::Inputs, unpacking)?)
}

fn all_here(items: Vec<FoundItem>) -> Result<Vec<FoundImage>, FindError> {
    let images = items.into_iter().filter_map(|item| match item {
        FoundItem::Image(image) => Some(Ok(image)),
        FoundItem::Outside { members, .. } => Some(Err(FindError {
            members,
            problem: FindProblem::Thin,
        })),
        FoundItem::Unread { .. } => None,
    });
    images.collect()
}

fn look<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    look: Look,
    unpacking: &mut Unpacking,
) -> Result<Vec<FoundItem>, FindError> {
    let size = range.end.saturating_sub(range.start);
    let mut finder = ImageFinder {
        data,
        look,
        left: size.saturating_mul(OVERLAP),
        unpacking,
        members: Vec::new(),
        found: Vec::new(),
    };
    match unless_unread(data, finder.file(range), FindProblem::Read) {
        Ok(()) => Ok(finder.found),
        Err(problem) => Err(FindError {
            members: finder.members,
            problem,
        }),
    }
}

struct ImageFinder<'m, R> {
    data: R,
    look: Look,
    /// Remaining limit on the size of all offload binaries, in bytes.
    left: u64,
    /// Limit on inflated offload binaries, and what keeps them.
    unpacking: &'m mut Unpacking,
    /// Names of the archive members around the current file.
    members: Vec<Vec<u8>>,
    found: Vec<FoundItem>,
}

/// Limits amplification by overlapping sections: the size of all offload binaries, in multiples of
/// the file size.
const OVERLAP: u64 = 16;

impl<'d, R: ReadAt<'d>> ImageFinder<'_, R> {
    fn file(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        match Magic::at(self.data, range.clone()) {
            Magic::OffloadBinary => self.binaries(range, None, Standing::Raw),
            Magic::Elf => self.elf(range),
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => self.archive(range),
            Magic::Bitcode => self.bitcode(range),
            Magic::Coff | Magic::DosProgram => self.coff(range),
            Magic::MachO => self.macho(range),
            Magic::MachOUniversal => self.universal(range),
            format @ (Magic::Wasm | Magic::Xcoff) => {
                let members = self.members.clone();
                self.found.push(FoundItem::Unread { members, format });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &[u8], range: Range<u64>) -> Result<(), FindProblem> {
        self.members.push(name.to_vec());
        self.file(range)?;
        self.members.pop();
        Ok(())
    }

    fn archive(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        if self.members.len() >= error::MAX_DEPTH {
            return Err(FindProblem::Depth);
        }
        let archive = Archive::parse(self.data, range).map_err(FindProblem::Archive)?;
        for member in archive.members {
            match member.content {
                Some(content) => self.member(member.name, content)?,
                None => {
                    let mut members = self.members.clone();
                    members.push(member.name.to_vec());
                    let size = member.size;
                    self.found.push(FoundItem::Outside { members, size });
                }
            }
        }
        Ok(())
    }

    fn elf(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let elf = Elf::parse(self.data, range).map_err(FindProblem::Elf)?;
        let names = match self.look {
            Look::Inputs => None,
            Look::All => Some(elf.names().map_err(FindProblem::Elf)?),
        };
        for section in elf.sections() {
            let name = match names {
                Some(names) if section.index > 0 => names.of(&section).map_err(FindProblem::Elf)?,
                _ => b"",
            };
            if name == LARGE_SECTION.as_bytes() {
                let range = elf.check(&section).map_err(FindProblem::Elf)?;
                for part in large::parts(self.data, name, range) {
                    if Magic::at(self.data, part.clone()) == Magic::OffloadBinary {
                        self.binaries(part, Some(section.index), Standing::Allocated)?;
                    }
                }
                continue;
            }
            let finished = large::usual_name(name) == FINISHED_SECTION.as_bytes();
            let standing = match section.section_type {
                _ if finished => Standing::Finished,
                elf::SHT_LLVM_OFFLOADING if section.excluded() => Standing::Excluded,
                elf::SHT_LLVM_OFFLOADING if section.allocated() => Standing::Allocated,
                // Neither flag: no known tool writes it, and no program loads it.
                elf::SHT_LLVM_OFFLOADING => Standing::Excluded,
                _ => continue,
            };
            let range = elf.check(&section).map_err(FindProblem::Elf)?;
            self.binaries(range, Some(section.index), standing)?;
        }
        Ok(())
    }

    fn coff(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        /// Shortest remainder of a section name: PE images keep eight bytes, and lld keeps
        /// the part before the second period.
        const CUT: usize = ".llvm".len();
        let listing = match Listing::parse(self.data, range) {
            Ok(Some(listing)) => listing,
            Ok(None) => return Ok(()),
            Err(CoffError::Anonymous) => {
                let (members, format) = (self.members.clone(), Magic::Coff);
                self.found.push(FoundItem::Unread { members, format });
                return Ok(());
            }
            Err(problem) => return Err(FindProblem::Coff(problem)),
        };
        for section in listing.sections() {
            let name = listing.name(&section).map_err(FindProblem::Coff)?;
            let of = |whole: &str| {
                let (name, whole) = (name, whole.as_bytes());
                let is_cut = listing.image && name.len() >= CUT && whole.starts_with(name);
                name.starts_with(whole) || is_cut && self.is_binary(&section)
            };
            let standing = match section.removed() {
                _ if of(FINISHED_SECTION) => Standing::Finished,
                _ if !of(OFFLOADING_SECTION) => continue,
                true => Standing::Excluded,
                false => Standing::Allocated,
            };
            if (self.look, standing) == (Look::Inputs, Standing::Finished) {
                continue;
            }
            let number = u32::try_from(section.number).expect("section counts have 32 bits");
            let outside = |problem| FindProblem::Section { number, problem };
            let range = listing.check(&section).map_err(outside)?;
            self.binaries(range, Some(number), standing)?;
        }
        Ok(())
    }

    fn macho(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        for section in macho::sections(self.data, &range).map_err(FindProblem::MachO)? {
            let (number, offset) = (section.number, section.offset);
            let content = OutOfBounds::check("content", offset, section.size, range.end);
            let content = content.map_err(|problem| FindProblem::Section { number, problem })?;
            if Magic::at(self.data, content.clone()) == Magic::OffloadBinary {
                let standing = match section.excluded {
                    true => Standing::Excluded,
                    false => Standing::Allocated,
                };
                self.binaries(content, Some(number), standing)?;
            }
        }
        Ok(())
    }

    fn universal(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let slices = macho::slices(self.data, &range).map_err(FindProblem::MachO)?;
        let mut end = range.start;
        for (name, slice) in slices.into_iter().flatten() {
            // In ascending order, so that no slice contains itself or is read twice.
            let size = slice.end.saturating_sub(slice.start);
            let here = OutOfBounds::check("slice", slice.start, size, range.end);
            let here = here.map_err(FindProblem::Slice)?;
            if here.start <= end {
                return Err(FindProblem::Overlap);
            }
            end = here.end.saturating_sub(1);
            match Magic::at(self.data, here.clone()) {
                Magic::MachO | Magic::Archive | Magic::Bitcode => self.member(&name, here)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn bitcode(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let objects = bitcode::embedded_objects(self.data, range).map_err(FindProblem::Bitcode)?;
        let mut first = 0;
        for (object, bytes) in objects.into_iter().enumerate() {
            let wrong = |problem| FindProblem::Embedded { object, problem };
            let walked = offload_binary::walk(&bytes[..], 0..bytes.len() as u64).map_err(wrong)?;
            let count = walked.len();
            let scratch = &self.unpacking.scratch;
            let unpacked = scratch.keep(bytes.len() as u64, |out| out.write_all(&bytes));
            let unpacked = unpacked.map_err(|problem| FindProblem::Output {
                kind: problem.kind(),
            })?;
            for (binary, parsed) in (first..).zip(walked) {
                let place = (None, binary, Standing::Excluded);
                self.add(parsed, &bytes[..], Some(&unpacked), place)?;
            }
            first += count;
        }
        Ok(())
    }

    fn is_binary(&self, section: &super::coff::ListedSection<'_>) -> bool {
        let end = section.offset.saturating_add(section.size);
        Magic::at(self.data, section.offset..end) == Magic::OffloadBinary
    }

    fn binaries(
        &mut self,
        range: Range<u64>,
        section: Option<u32>,
        standing: Standing,
    ) -> Result<(), FindProblem> {
        let size = range.end.saturating_sub(range.start);
        self.left = self.left.checked_sub(size).ok_or(FindProblem::Overlap)?;
        let binaries = offload_binary::walk(self.data, range);
        let binaries =
            binaries.map_err(|problem| FindProblem::OffloadBinary { section, problem })?;
        for (binary, parsed) in binaries.into_iter().enumerate() {
            self.add(parsed, self.data, None, (section, binary, standing))?;
        }
        Ok(())
    }

    /// Adds the images of an offload binary in `data`, which is the file or the unpacked `bytes`.
    fn add<'b, B: ReadAt<'b>>(
        &mut self,
        parsed: OffloadBinary,
        data: B,
        bytes: Option<&Unpacked>,
        (section, binary, standing): (Option<u32>, usize, Standing),
    ) -> Result<(), FindProblem> {
        if parsed.compressed.is_some() {
            let inflated = parsed.unpack(data, self.unpacking.left, &self.unpacking.scratch);
            let inflated = inflated.map_err(|problem| FindProblem::Compressed {
                section,
                binary,
                problem,
            })?;
            let size = inflated.size();
            self.unpacking.left = self.unpacking.left.saturating_sub(size);
            let whole = OffloadBinary::parse(&inflated.open(), 0, size);
            let whole = whole.map_err(|mut problem| {
                problem.index = binary;
                FindProblem::Inflated { section, problem }
            })?;
            let place = (section, binary, standing);
            self.push(whole, Some(&inflated), place);
        } else {
            self.push(parsed, bytes, (section, binary, standing));
        }
        Ok(())
    }

    fn push(
        &mut self,
        parsed: OffloadBinary,
        bytes: Option<&Unpacked>,
        (section, binary, standing): (Option<u32>, usize, Standing),
    ) {
        let binary_range = parsed.range();
        for (index, entry) in parsed.entries.into_iter().enumerate() {
            self.found.push(FoundItem::Image(FoundImage {
                members: self.members.clone(),
                section,
                standing,
                binary,
                binary_range: binary_range.clone(),
                index,
                entry,
                bytes: bytes.cloned(),
            }));
        }
    }
}

#[cfg(test)]
mod tests;
